# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages of Debian suites and architectures other than this machine's own.

Everything goes through apt with private lists and a private, empty package
status, so apt itself verifies signatures and checksums and resolves
dependencies, and the machine's own state is never touched.  The mirror is
the one that apt is already configured with.
"""

import os
import pathlib
import shutil
import subprocess

MULTIARCH = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
LOADER = {"amd64": "ld-linux-x86-64.so.2", "arm64": "ld-linux-aarch64.so.1"}


class Failure(Exception):
    """A package is not available; the text has the reason."""


def run(argv, **options):
    """Run a command quietly and return its standard output."""
    argv = [str(arg) for arg in argv]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, text=True, errors="replace",
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    except FileNotFoundError as error:
        raise Failure(f"{error.filename} is not there (is it installed?)") from error
    if done.returncode != 0:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("E: ")]
        tail = "; ".join((errors or lines)[-4:])
        raise Failure(f"'{' '.join(argv[:4])} ...' exited with {done.returncode}: {tail}")
    return done.stdout


def machine_architecture():
    return run(["dpkg", "--print-architecture"]).strip()


def own_codename():
    for line in pathlib.Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.partition("=")[2].strip('"')
    return ""


def mirror():
    """Return the address and keyring of the Debian mirror apt uses."""
    address = os.environ.get("PROBING_TEST_MIRROR")
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    if not os.path.exists(keyring):
        raise Failure("the package debian-archive-keyring is not installed")
    if address:
        return address, keyring
    targets = run(["apt-get", "indextargets", "--format", "$(REPO_URI)|$(RELEASE)",
                   "Created-By: Packages"])
    for line in targets.splitlines():
        uri, _, release = line.partition("|")
        if release and release == own_codename():
            return uri, keyring
    raise Failure("apt is configured with no mirror of Debian's main archive "
                  "(PROBING_TEST_MIRROR can name one)")


class Suite:
    """One suite for one architecture, with its apt lists below `cache`."""

    def __init__(self, cache, name, architecture, sources=False):
        self.name = name
        self.architecture = architecture
        self.sources = sources
        kind = "source" if sources else architecture
        self.folder = pathlib.Path(cache) / ".apt" / f"{name}-{kind}"
        self._config = None

    def _prepare(self):
        """Write the private configuration and read the package lists, once."""
        if self._config:
            return self._config
        address, keyring = mirror()
        for name in ("lists/partial", "archives/partial"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        (self.folder / "status").touch()
        kind = "deb-src" if self.sources else "deb"
        (self.folder / "sources.list").write_text(
            f"{kind} [signed-by={keyring}] {address} {self.name} main\n")
        config = self.folder / "apt.conf"
        config.write_text(f"""\
APT::Architecture "{self.architecture}";
#clear APT::Architectures;
APT::Architectures {{ "{self.architecture}"; }};
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Languages "none";
Acquire::Retries "3";
Dir::State::Lists "{self.folder}/lists";
Dir::State::status "{self.folder}/status";
Dir::Cache::archives "{self.folder}/archives";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
Dir::Etc::sourcelist "{self.folder}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Install-Pkgs;
#clear DPkg::Post-Invoke;
""")
        run(["apt-get", "-q", "-c", config, "-o", "APT::Update::Error-Mode=any", "update"])
        self._config = config
        return config

    def _plan(self, command, packages):
        """The file names of a command's complete download: apt leaves out files that an interrupted run
        has already brought."""
        nothing = self.folder / "nothing"
        (nothing / "partial").mkdir(parents=True, exist_ok=True)
        plan = run([*command, "-o", f"Dir::Cache::archives={nothing}", "--print-uris", *packages],
                   cwd=nothing)
        return [line.split()[1] for line in plan.splitlines() if line.startswith("'")]

    def closure(self, packages):
        """Download packages with all they depend on; return the .deb files."""
        config = self._prepare()
        command = ["apt-get", "-q", "-y", "-c", config, "install"]
        names = self._plan(command, packages)
        run([*command, "--download-only", *packages])
        return [self.folder / "archives" / name for name in names]

    def download(self, packages):
        """Download exactly these packages; return the .deb files."""
        config = self._prepare()
        folder = self.folder / "single"
        folder.mkdir(exist_ok=True)
        command = ["apt-get", "-q", "-c", config, "download"]
        names = self._plan(command, packages)
        run([*command, *packages], cwd=folder)
        return [folder / name for name in names]

    def source(self, package, destination):
        """Download a source package's files; return its upstream tarball."""
        config = self._prepare()
        destination = pathlib.Path(destination)
        destination.mkdir(parents=True, exist_ok=True)
        run(["apt-get", "-q", "-c", config, "source", "--download-only", package], cwd=destination)
        tarballs = sorted(destination.glob("*.orig.tar.*"))
        tarballs = [path for path in tarballs if path.suffix != ".asc"]
        if not tarballs:
            raise Failure(f"the source package {package} has no upstream tarball")
        return tarballs[-1]

    def forget_downloads(self):
        """Remove the downloaded packages, which are no longer needed."""
        for name in ("archives", "single"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self._config = None


def unpack(debs, root, merged_usr=True):
    """Unpack packages into `root`, with lib, lib64, bin and sbin inside usr."""
    root = pathlib.Path(root)
    for name in ("bin", "sbin", "lib", "lib64") if merged_usr else ():
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        if not (root / name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")
    for deb in debs:
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)],
                              stdout=subprocess.PIPE) as tar:
            done = subprocess.run(["tar", "-x", "--keep-directory-symlink", "-C", str(root)],
                                  stdin=tar.stdout, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0 or tar.returncode != 0:
            raise Failure(f"{deb.name} could not be unpacked: {done.stderr.strip()[-300:]}")

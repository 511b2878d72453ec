# SPDX-License-Identifier: GPL-3.0-or-later
"""`make deb` and `make static`: their packages, used in roots other than the build machine's."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest
import support

PROGRAM = pathlib.Path(os.environ["PROBING_BINARY"])
ROOTS = [each for each in support.INTERPRETERS if each.chroot and not each.debug_build]
if not support.LONG:
    ROOTS = ROOTS[:1] + ROOTS[1:][-1:]  # the oldest and the newest
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

SBOM = pathlib.Path(__file__).resolve().parents[3] / "build-aux/make-sbom"

# In a mount namespace of its own: a copy of the root, with the package unpacked into it.
INSTALL = 'mount -t tmpfs none "$4" && cp -a "$0/." "$4" && dpkg-deb -x "$1" "$4" && ' \
    'mkdir -p "$4/proc" "$4/tmp" && mount -t proc none "$4/proc" && ' \
    'PYTHONPATH=/usr/lib/python3/dist-packages exec chroot "$4" "$2" -c "$3"'
USED = """
import os, subprocess, threading
def run(*words):
    print(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout.decode())
def here():
    secret = 1234
    run("/usr/bin/probing", "--version")
    run("/usr/bin/probing-inject", "--version")
    run("/usr/bin/probing", str(os.getpid()), "bt", "--locals")
    run("/usr/bin/probing", str(os.getpid()), "eval", "6 * 7")
    run("/usr/bin/probing", "gdb", "--print")
threading.Thread(target=int).start()
here()
import probing
with probing.attach(os.getpid()) as p:
    print("library:", len(p.threads()))
"""


@pytest.fixture(scope="module")
def deb():
    found = sorted(PROGRAM.parent.glob("probing_*.deb"))
    if not found:
        pytest.skip("not built: make deb")
    return found[-1]


@pytest.fixture
def static():
    path = PROGRAM.parent / "probing-static"
    if not path.exists():
        pytest.skip("not built: make static")
    return path


def listing(deb):
    out = subprocess.run(["dpkg-deb", "-c", deb], stdout=subprocess.PIPE, check=True).stdout.decode()
    return {line.split()[5]: (line.split()[0], line.split()[1]) for line in out.splitlines()}


def test_the_package_has_all_that_install_puts_there(deb):
    files = listing(deb)
    for name in ("bin/probing", "bin/probing-inject", "lib/probing/libprobing-agent.so",
                 "lib/libprobing.so.1", "share/man/man1/probing.1.gz", "share/man/man1/probing-inject.1.gz",
                 "share/bash-completion/completions/probing", "share/zsh/site-functions/_probing",
                 "share/fish/vendor_completions.d/probing.fish", "share/doc/probing/copyright",
                 "lib/python3/dist-packages/probing.pth", "lib/python3/dist-packages/probing/__init__.py"):
        assert "./usr/" + name in files, name
    assert {owner for _, owner in files.values()} == {"root/root"}
    assert all(mode[5] != "w" and mode[8] != "w" for mode, _ in files.values() if mode[0] != "l")
    assert not [name for name in files if "__pycache__" in name or "libprobing.so.1.0" not in name and
                name.endswith((".c", ".o"))]
    control = subprocess.run(["dpkg-deb", "-f", deb], stdout=subprocess.PIPE, check=True).stdout.decode()
    assert re.search(r"^Depends: libc6 \(>= 2.28\)$", control, re.M), control


@needs_root
@pytest.mark.skipif(not ROOTS, reason="no interpreter here has a root of its own")
@pytest.mark.parametrize("interpreter", ROOTS, ids=repr)
def test_the_package_works_where_it_is_installed(deb, interpreter, tmp_path):
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", INSTALL, interpreter.chroot, deb, interpreter.chroot_exe, USED,
         tmp_path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=120,
        env={"PATH": os.environ["PATH"]})
    out = done.stdout.decode()
    assert done.returncode == 0, done
    for expected in ("probing 1", "probing-inject", "secret = 1234", "\n42\n", "gdbplugin", "library: "):
        assert expected in out, done


def test_static_needs_nothing(static, target, newest, tmp_path):
    """In a root that has this one file and /proc."""
    process = target("crashing.py", interpreter=newest)
    header = subprocess.run(["readelf", "-lWd", static], stdout=subprocess.PIPE, check=True).stdout
    assert b"INTERP" not in header and b"NEEDED" not in header
    if os.geteuid():
        pytest.skip("needs root")
    script = 'cp "$0" "$1/probing" && mkdir -p "$1/proc" && mount -t proc none "$1/proc" && ' \
        'exec chroot "$1" /probing "$2" bt --native'
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, static, tmp_path, str(process.pid)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == 0 and b"<module>" in done.stdout, done


def test_static_brings_its_agent(static, target, newest, tmp_path):
    """Copied to where nothing is beside it."""
    process = target("crashing.py", interpreter=newest)
    program = tmp_path / "probing"
    shutil.copy(str(static), str(program))
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    for _ in range(2):
        done = subprocess.run([str(program), str(process.pid), "eval", "6 * 7"], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, timeout=60)
        assert done.stdout == b"42\n", done
    mapped = {line.split()[5] for line in open("/proc/%d/maps" % process.pid) if "libprobing-agent" in line}
    path, = mapped
    assert path.startswith("/var/cache/probing/agent-" if not os.geteuid() else str(tmp_path)), path
    assert os.stat(path).st_mode & 0o777 == 0o644


@pytest.mark.skipif(bool(os.geteuid()), reason="needs root")
@pytest.mark.parametrize("taken", [False, True], ids=["free", "taken"])
@pytest.mark.parametrize("home", [{}, {"HOME": "/no/such/folder"}, {"HOME": "/"}], ids=str)
def test_static_of_a_user_without_a_home(static, home, taken):
    """A container often has none: the agent comes from the user's folder below /tmp."""
    user, folder = 64123, pathlib.Path(tempfile.mkdtemp(dir="/tmp"))
    below = pathlib.Path("/tmp/probing-%d" % user)
    if taken:  # by another user
        below.mkdir()
    try:
        folder.chmod(0o755)
        shutil.copy(str(static), str(folder / "probing"))
        rights = {"user": user, "group": user, "extra_groups": [], "cwd": "/", "env": {"PATH": "/usr/bin:/bin", **home}}
        with subprocess.Popen(["python3", "-c", "import time; print(flush=True); time.sleep(1000)"], stdout=subprocess.PIPE,
                              **rights) as process:
            process.stdout.readline()
            done = subprocess.run([folder / "probing", str(process.pid), "eval", "6 * 7"], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, check=False, timeout=60, **rights)
            process.kill()
        assert done.stdout == b"42\n", done
        made, = below.parent.glob("%s.*" % below.name) if taken else [below]
        assert (made.stat().st_uid, made.stat().st_mode & 0o777) == (user, 0o700)
    finally:
        shutil.rmtree(str(folder))
        for path in below.parent.glob("%s*" % below.name):
            shutil.rmtree(str(path), ignore_errors=True)


@pytest.mark.skipif(not support.ON_MUSL, reason="no Python on musl")
@pytest.mark.parametrize("interpreter", support.ON_MUSL[:1], ids=repr)
def test_static_knows_targets_on_musl(static, interpreter):
    with support.Program([interpreter.exe, "-c", "def here():\n    print('ready', flush=True)\n"
                          "    input()\nhere()"], env=interpreter.env) as process:
        assert process.line() == "ready"
        done = subprocess.run([static, str(process.pid), "bt"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False, timeout=60)
        assert done.returncode == 0 and b"here" in done.stdout, done


def test_the_list_of_what_is_linked_in():
    """Packages of the page are named only if it is in."""
    for words, has_page in (((), False), (("--page",), True)):
        listed = json.loads(subprocess.run([str(SBOM), *words, "1.0.0", "gcc", "-lelf"], stdout=subprocess.PIPE, check=True).stdout.decode())
        ours = [each for each in listed["components"] if each.get("purl", "").startswith("pkg:npm/")]
        assert bool(ours) == has_page and all("licenses" in each for each in ours), ours
        assert any(each["name"].startswith("libc6") for each in listed["components"]) or not shutil.which("dpkg"), listed

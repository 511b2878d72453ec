# SPDX-License-Identifier: GPL-3.0-or-later
"""The wheel: its content, and that an installation works."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile

import pytest
import support
from environment import need
from wheels import USUAL, Installed, environment, installed, pip_of, wheel  # noqa: F401

ROOT = pathlib.Path(__file__).resolve().parents[3]
LIBC = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2"}
TAG = re.compile(r"probing-[\d.]+-py3-none-(manylinux_2_\d+|linux)_(x86_64|aarch64)\.whl")


def needed(path):
    text = subprocess.run(["readelf", "-d", str(path)], stdout=subprocess.PIPE, check=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", text.decode()))


def test_name_and_size(wheel):
    assert TAG.fullmatch(wheel.name)
    assert wheel.stat().st_size < 10 << 20


def test_binaries_need_libc_only(wheel, tmp_path):
    """If they need more, where archives are missing, the wheel says that it is for this system."""
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path)
    binaries = [path for path in tmp_path.rglob("*")
                if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]
    assert sorted(path.name for path in binaries) == [
        "libprobing-agent.so", "libprobing.so", "probing"]
    others = {(path.name, name) for path in binaries for name in needed(path)
              if not name.startswith("ld-linux") and name not in LIBC}
    assert ("-linux_" in wheel.name) == bool(others), others
    if others:
        pytest.skip("this wheel is for this system alone")


@pytest.mark.parametrize("python", USUAL, ids=repr)
def test_uninstall_leaves_nothing(python, wheel, tmp_path):
    pip = pip_of(python.exe)
    if not pip or python.version < (3, 7):
        pytest.skip("no pip that installs it")
    ours = Installed(tmp_path / "venv", python.exe, wheel)
    ours.output("-m", "probing", "--version")
    done = subprocess.run([ours.python, pip, "uninstall", "-q", "-y", "--disable-pip-version-check", "probing"], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.stderr == b""
    subprocess.run([python.exe, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    left, bare = ({str(path.relative_to(folder)) for path in folder.rglob("*") if "__pycache__" not in path.parts}
                  for folder in (tmp_path / "venv", tmp_path / "bare"))
    assert not left - bare


def test_the_program_is_no_script(installed):
    with open(installed.program, "rb") as file:
        assert file.read(4) == b"\x7fELF"
    version = subprocess.run([installed.program, "--version"], stdout=subprocess.PIPE, check=True)
    package = installed.output("-c", "import probing; print('probing', probing.__version__)")
    assert version.stdout.decode().startswith(package)


def test_the_program_finds_agent_and_plugin(installed):
    line = subprocess.run([installed.program, "gdb", "--print"], stdout=subprocess.PIPE, check=True)
    plugin = line.stdout.decode().split()[1]
    assert os.path.exists(plugin)
    assert os.path.realpath(plugin).startswith(os.path.realpath(installed.site))
    # Before Python 3.7 there is no GIL without a thread, and the code would have to wait for us.
    code = "import subprocess, os, threading; threading.Thread(target=int).start(); " \
        "print(subprocess.check_output([%r, str(os.getpid()), 'eval', " \
        "'6 * 7']).decode().strip())" % installed.program
    assert installed.output("-c", code) == "42\n"


def test_importing_the_package_imports_nothing_else(installed):
    code = "import sys; before = set(sys.modules); import probing; " \
        "print(sorted(name for name in set(sys.modules) - before " \
        "if not name.startswith('probing')))"
    if installed.version >= (3, 7):
        assert installed.output("-S", "-c", "import sys; sys.path.insert(0, %r); %s"
                                % (installed.site, code)) == "[]\n"


def test_the_library_loads(installed):
    code = "import ctypes, os, probing; " \
        "l = ctypes.CDLL(os.path.join(os.path.dirname(probing.__file__), 'libprobing.so')); " \
        "l.probing_version.restype = ctypes.c_char_p; print(l.probing_version().decode())"
    version = installed.output("-c", "import probing; print(probing.__version__)")
    assert installed.output("-c", code) == version


def test_all_of_the_package_is_there(installed):
    site = pathlib.Path(installed.site)
    for source, there in ((ROOT / "package/probing", site / "probing"),
                          (ROOT / "gdbplugin", site / "probing/gdbplugin")):
        for path in [*source.rglob("*.py"), *source.rglob("py.typed")]:
            assert (there / path.relative_to(source)).read_bytes() == path.read_bytes()
    assert (site / "probing/py.typed").exists()


ADDED = "import os, site, sys\nbefore = set(sys.modules)\nsite.addsitedir(sys.argv[1])\n" \
    "with open('/proc/self/maps') as file:\n    loaded = 'libprobing-agent' in file.read()\n" \
    "print(loaded, *sorted(set(sys.modules) - before))\n"


@pytest.mark.parametrize("python", support.one_per_version(first=(3, 6)), ids=repr)
def test_the_hook_of_each_version(wheel, python, tmp_path):
    """Including versions without environments: without a variable it imports nothing."""
    site, other = tmp_path / "site", tmp_path / "other"
    with zipfile.ZipFile(wheel) as file:
        file.extractall(site)
    other.mkdir()
    (other / "other.pth").write_text("import os\n")

    def added(folder, **variables):
        out = subprocess.run([python.exe, "-c", ADDED, str(folder)], stdout=subprocess.PIPE, check=True,
                             env={**environment(variables), **{
                                 name: value for name, value in python.env.items()
                                 if name in ("PYTHONHOME", "LD_LIBRARY_PATH")}})
        return out.stdout.decode().split()

    plain = added(other)
    assert plain[0] == "False" and added(site) == plain
    hooked = added(site, PROBING="1")
    assert hooked[0] == "True" and set(hooked[1:]) - set(plain) == {"probing_startup"}


WAITING = "import sys\nrate = 0.25\ndef train(epoch):\n    print('ready', flush=True)\n" \
    "    sys.stdin.read()\ntrain(3)\n"


def test_the_package_reads_a_process(installed):
    with subprocess.Popen([installed.python, "-c", WAITING], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        code = "import probing\nwith probing.attach(%d) as p:\n" \
            "    frame, = [f for f in p.threads()[0].frames if 'epoch' in f.locals]\n" \
            "    print(frame.locals['epoch'])\n" % process.pid
        assert installed.output("-c", code) == "3\n"
        script = subprocess.run([installed.program, "script", "-c", "print(len(p.threads()))",
                                 str(process.pid)], stdout=subprocess.PIPE, check=True,
                                env=environment({"PYTHON": installed.python}))
        assert script.stdout == b"1\n"
        process.stdin.close()


def backends(folder, tmp_path):
    """Pip 19 asks the real setuptools, later ones ours, which runs make."""
    (tmp_path / "make").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "make").chmod(0o755)
    asked = [("build_wheel('.')", "build-aux", b"probing: 'make wheel' failed")]
    if importlib.util.find_spec("setuptools"):
        asked.append(("get_requires_for_build_wheel({})", "", b"pip 20.3 or later is needed"))
    for call, path, said in asked:
        done = subprocess.run([sys.executable, "-c", "from setuptools import build_meta as b; b." + call],
                              cwd=folder, stderr=subprocess.PIPE, check=False,
                              env=environment({"PYTHONPATH": path, "PATH": "%s:%s" % (tmp_path, os.environ["PATH"])}))
        assert done.returncode and said in done.stderr, done


def test_the_sources_build(tmp_path):
    """`make sdist` has everything for `make`: the goal with the most needs, compiled in the long form."""
    need("git")
    if not (ROOT / ".git").exists():
        pytest.skip("these sources are no clone of git")
    subprocess.run(["make", "-s", "sdist", "O=%s" % tmp_path], cwd=str(ROOT), check=True,
                   stdout=subprocess.DEVNULL)
    archive, = tmp_path.glob("probing-*.tar.gz")
    with tarfile.open(str(archive)) as file:
        file.extractall(str(tmp_path))
    folder = str(archive)[:-len(".tar.gz")]
    plan = subprocess.run(["make", "-n", "all", "wheel"], cwd=folder, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False)
    assert plan.returncode == 0, plan.stderr
    assert b"make-wheel" in plan.stdout
    # As a pip does that is too old for the wheel.
    old = subprocess.run([sys.executable, "setup.py", "egg_info"], cwd=folder, stderr=subprocess.PIPE, check=False)
    assert old.returncode and b"pip 20.3 or later is needed" in old.stderr, old
    backends(folder, tmp_path)
    if support.LONG:
        subprocess.run(["make", "-s", "-j2", "O=made", "all"], cwd=folder, check=True)
        said = subprocess.run([folder + "/made/probing", "--version"], stdout=subprocess.PIPE, check=True)
        assert said.stdout.startswith(b"probing ")

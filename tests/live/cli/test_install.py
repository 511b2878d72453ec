# SPDX-License-Identifier: GPL-3.0-or-later
"""`make install` and `make uninstall`: the example of docs/library.md works with a prefix of one's own, and
nothing is left."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import support
from support import wait_for_all_asleep

ROOT = Path(__file__).resolve().parents[3]
BUILD = Path(support.BINARY).resolve().parent
# As given to make: a path without a space, if the sources' path has one.
FOLDER = os.path.relpath(BUILD, ROOT) if ROOT in BUILD.parents else str(BUILD)
pytestmark = pytest.mark.skipif(
    not (ROOT / "GNUmakefile").exists() or not shutil.which("make") or not shutil.which("gcc")
    or not shutil.which("pkg-config"), reason="needs the sources, make, gcc and pkg-config")


@pytest.fixture(scope="module", autouse=True)
def built():
    """Nothing is built here: other tests run the program meanwhile."""
    if not (BUILD / "config.mk").exists() or subprocess.run(
            ["make", "-q", "-C", ROOT, "O=%s" % FOLDER, "all"], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        pytest.skip("%s is not what make builds of these sources" % support.BINARY)


def make(*words):
    done = subprocess.run(["make", "-C", ROOT, "O=%s" % FOLDER, *words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False)
    assert done.returncode == 0, done.stdout.decode()
    return done.stdout.decode()


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*")
                  if path.is_symlink() or not path.is_dir())


def test_library_example_in_a_prefix(target, tmp_path):
    prefix, process = tmp_path / "prefix", target("sleeper.py")
    wait_for_all_asleep(process.pid, 1)
    make("-s", "install", "prefix=%s" % prefix)
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith(("LD_", "PKG_CONFIG", "PROBING_"))}
    environment["PKG_CONFIG_PATH"] = str(prefix / "lib/pkgconfig")
    shutil.copy(ROOT / "docs/examples/stacks.c", tmp_path)
    subprocess.run("gcc stacks.c $(pkg-config --cflags --libs probing) -o stacks", shell=True,
                   cwd=tmp_path, env=environment, check=True, timeout=60)
    done = subprocess.run([tmp_path / "stacks", str(process.pid)], env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 0 and b"is idle in sleep, line 13" in done.stdout, done
    assert subprocess.run([prefix / "bin/probing", "--version"], env=environment, check=False,
                          stdout=subprocess.PIPE).returncode == 0


def test_everybody_can_read_what_is_installed(tmp_path):
    """Also with a umask that gives others nothing."""
    before = os.umask(0o077)
    try:
        make("-s", "install", "DESTDIR=%s" % (tmp_path / "stage"), "prefix=/usr")
    finally:
        os.umask(before)
    there = [path for path in (tmp_path / "stage").rglob("*") if not path.is_symlink()]
    assert len(there) > 100
    for path in there:
        needed = 0o555 if path.is_dir() or "bin" in path.parts else 0o444
        assert path.stat().st_mode & needed == needed, path


def test_uninstall_leaves_nothing(tmp_path):
    stage, own = tmp_path / "stage", "lib/probing/own"
    names = "DESTDIR=%s" % stage, "prefix=/opt/x"
    make("-s", "install", *names)
    assert len(files_below(stage)) > 10
    (stage / "opt/x" / own).touch()
    make("-s", "uninstall", *names)
    assert files_below(stage / "opt/x") == [own], "other programs' files stay, and nothing else"
    make("-s", "uninstall", *names)
    (stage / "opt/x" / own).unlink()
    make("-s", "uninstall", *names)
    assert not (stage / "opt/x/lib/probing").exists()
    assert not (stage / "opt/x/share/probing").exists()


def test_loader_is_told_only_of_what_it_will_load():
    assert "ldconfig" in make("-n", "V=1", "install")
    assert "ldconfig" not in make("-n", "V=1", "install", "DESTDIR=/tmp/x")
    assert "-rpath" in make("-n", "V=1", "install")
    assert "-rpath" not in make("-n", "V=1", "install", "prefix=/usr")

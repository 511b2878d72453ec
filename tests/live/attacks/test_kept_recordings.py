# SPDX-License-Identifier: GPL-3.0-or-later
"""Recordings in the background are found by the number of a process: through a folder that another user
may have made, and at a path where another user may have put something else."""
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

import support
from environment import FAILED, OK, wait_until
from files_support import (  # noqa: F401 (fixtures)
    AS_USER, USER, folder, give, needs_root, program, run, theirs, write)
from test_later_features import BUSY

pytestmark = needs_root
SECRET = b"only root may read this line\n"
OTHER = USER + 1


@pytest.fixture(name="process")
def fixture_process():
    with program(BUSY, "burn", "burn.py") as process:
        yield process


def start_of(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[19]


def plant(place, process, path):
    """A note like a recorder's, by the owner of the folder."""
    text = "%s background\n%s\n" % (start_of(process.pid), path)
    return write(place / ("perf-%d-%d" % (process.pid, process.pid)), text.encode(), 0o600,
                 os.stat(place).st_uid)


def knows_nothing(process, **options):
    done = run(process.pid, "perf", "--last", "60s", **options)
    assert done.returncode == FAILED and not done.stdout, done
    assert b"no recording of process %d" % process.pid in done.stderr, done
    done = run(process.pid, "perf", "--stop", **options)
    assert done.returncode == FAILED and not done.stdout, done
    assert process.alive()


def test_a_folder_of_another_user(folder, theirs, process, monkeypatch):
    """Its files are not trusted, and nothing is written there."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    theirs.rename(folder / "probing")
    theirs = folder / "probing"
    plant(theirs, process, write(folder / "secret", SECRET, 0o600))
    before = sorted(os.listdir(theirs))
    knows_nothing(process)
    done = run(process.pid, "inject", "-P", "--json")
    assert done.returncode == OK, done
    recording = json.loads(done.stdout)["recording"]
    assert run(process.pid, "perf", "--stop").returncode == OK
    assert Path(recording).parent == Path("/tmp/probing-0") and sorted(os.listdir(theirs)) == before
    os.unlink(recording)


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770])
def test_a_folder_that_others_may_write_to(folder, process, monkeypatch, mode):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    place = folder / "probing"
    place.mkdir()
    place.chmod(mode)
    plant(place, process, write(folder / "secret", SECRET, 0o600))
    knows_nothing(process)


def test_a_link_in_the_place_of_the_folder(folder, process, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    place = folder / "elsewhere"
    place.mkdir(mode=0o700)
    plant(place, process, write(folder / "secret", SECRET, 0o600))
    os.symlink(place, folder / "probing")
    os.chown(folder / "probing", USER, USER, follow_symlinks=False)
    knows_nothing(process)


def test_notes_of_another_user_are_not_asked(folder, process):
    """Root searches its own recorders, whatever the target's user has noted."""
    place = Path("/tmp/probing-%d" % USER)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)
    try:
        plant(give(place), process, write(folder / "secret", SECRET, 0o600))
        with tempfile.TemporaryDirectory() as runtime:
            knows_nothing(process, env=dict(os.environ, XDG_RUNTIME_DIR=runtime))
    finally:
        shutil.rmtree(place)


@pytest.mark.parametrize("owner", [0, OTHER], ids=["root", "other"])
def test_a_folder_that_was_taken(process, owner):
    """Another user has taken the folder's name: another folder is used and found, with a warning."""
    place = Path("/tmp/probing-%d" % USER)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o755)
    os.chown(place, owner, owner)
    try:
        plant(place, process, "/etc/passwd")
        environment = {"PATH": os.environ["PATH"]}
        with open(support.BINARY, "rb") as binary, tempfile.TemporaryDirectory(dir="/tmp") as copies:
            os.chmod(copies, 0o755)
            copy = write(Path(copies) / "probing", binary.read(), 0o755)

            def theirs(*words):
                return subprocess.run([str(copy), str(process.pid), *words], env=environment,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, timeout=60, check=False, **AS_USER)

            done = theirs("perf", "--last", "60s")
            assert done.returncode == FAILED and b"no recording" in done.stderr, done
            done = theirs("inject", "-P", "--json")
            assert done.returncode == OK, done
            assert b"/tmp/probing-%d belongs to user %d" % (USER, owner) in done.stderr, done
            recording = json.loads(done.stdout)["recording"]
            other = Path(recording).parent
            assert re.fullmatch(r"/tmp/probing-%d\.[0-9a-f]+" % USER, str(other))
            assert (other.stat().st_uid, other.stat().st_mode & 0o777) == (USER, 0o700)
            assert theirs("perf", "--last", "60s").returncode == OK
            assert theirs("perf", "--stop").returncode == OK
            assert sorted(os.listdir(place)) == ["perf-%d-%d" % (process.pid, process.pid)]
    finally:
        shutil.rmtree(place)
        for other in Path("/tmp").glob("probing-%d.*" % USER):
            shutil.rmtree(other)


@pytest.mark.parametrize("put", ["link", "fifo", "file", "nothing", "link to a recording"])
def test_another_file_in_the_place_of_the_recording(folder, theirs, process, monkeypatch, put):
    """Root's recording is in a folder of the user, who may rename files there."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    ring = theirs / "ring.profile"
    done = run(process.pid, "perf", "-b", "-o", ring)
    assert done.returncode == OK, done
    assert run(process.pid, "perf", "--last", "60s").returncode == OK
    os.rename(ring, theirs / "moved.profile")
    if put == "link":
        os.symlink(write(folder / "secret", SECRET, 0o600), ring)
    elif put == "link to a recording":
        os.symlink(theirs / "moved.profile", ring)
    elif put == "fifo":
        os.mkfifo(ring)
    elif put == "file":
        give(write(ring, (theirs / "moved.profile").read_bytes()))
    done = run(process.pid, "perf", "--last", "60s", timeout=30)
    assert done.returncode in (FAILED, 4) and not done.stdout, done
    assert b"ring.profile" in done.stderr and SECRET.strip() not in done.stderr, done
    # The rest is written nowhere, which ends the recorder before the command or by it.
    done = run(process.pid, "perf", "--stop")
    assert done.returncode == FAILED and not done.stdout and (
        b"ended early: cannot write %s/ring.profile" % bytes(theirs) in done.stderr
        or b"nothing records" in done.stderr), done
    # Nobody but root may end it.
    assert (folder / "secret").read_bytes() == SECRET if put == "link" else True


def test_another_user_cannot_end_it(folder, process, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    done = run(process.pid, "inject", "-P", "--json")
    said = json.loads(done.stdout)
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run(["sh", "-c", "kill %d" % said["recorder"]], check=True, stderr=subprocess.PIPE, **AS_USER)
    assert os.stat(said["recording"]).st_mode & 0o077 == 0
    assert os.stat(Path(said["recording"]).parent).st_mode & 0o077 == 0
    assert run(process.pid, "perf", "--stop").returncode == OK
    wait_until(lambda: not os.path.exists("/proc/%d/cwd" % said["recorder"])
               or not os.access("/proc/%d/cwd" % said["recorder"], os.F_OK))

# SPDX-License-Identifier: GPL-3.0-or-later
"""The rule `lock_file` of `probing why`: a thread asks again and again for a file that is locked, or left behind."""
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import packages
import pytest

import support
from environment import wait_until
from rank_job import as_user
from test_why import why

LOCKS = 13
USER = 65534
SEES_ALL = os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"
# Code of our own, in files and functions of the libraries' names.
BATON = """
import os, time
class FileBaton:
    def __init__(self, path):
        self.lock_file_path, self.fd = path, None
    def try_acquire(self):
        self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
    def wait(self):
        while os.path.exists(self.lock_file_path):
            time.sleep(0.05)
"""
FILELOCK = """
import fcntl, os, time
class FileLock:
    def __init__(self, path):
        self.lock_file = path
    def acquire(self):
        lock_filename = self.lock_file
        while True:
            fd = os.open(lock_filename, os.O_RDWR | os.O_CREAT)
            try:
                return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(fd)
            time.sleep(0.05)
"""
BATON_WAITS = "from %storch.utils.file_baton import FileBaton\nbaton = FileBaton(sys.argv[1])\nbaton.wait()"
FILELOCK_WAITS = "from filelock import FileLock\nFileLock(sys.argv[1]).acquire()"
PORTALOCKER_WAITS = "import portalocker\nportalocker.Lock(sys.argv[1], timeout=1000).acquire()"
FASTENERS_WAITS = "import fasteners\nfasteners.InterProcessLock(sys.argv[1]).acquire()"
LOCKED = """
import fcntl, sys
file = open(sys.argv[1], "a+")
fcntl.%s(file, fcntl.LOCK_EX)
print(flush=True)
input()
"""


def modules(folder):
    for name, text in (("torch/__init__.py", ""), ("torch/utils/__init__.py", ""), ("torch/utils/file_baton.py", BATON),
                       ("filelock/__init__.py", "from ._api import FileLock\n"), ("filelock/_api.py", FILELOCK)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return "import sys\nsys.path.insert(0, %r)\n" % str(folder)


@pytest.fixture
def stand_ins(tmp_path):
    return modules(tmp_path / "modules")


def started(source, path, exe=sys.executable):
    return support.Program([exe, "-c", "import sys\nprint(flush=True)\n" + source, path])


def locked(path, way="flock"):
    program = support.Program([sys.executable, "-c", LOCKED % way, path])
    program.line()
    return program


def judge(pid, rule="lock_file"):
    code, out, _ = why("--json", str(pid))
    [target] = json.loads(out)["targets"]
    return code, [each for each in target["findings"] if each["rule"] == rule]


def until_found(pid, rule="lock_file"):
    last = []

    def is_found():
        last[:] = judge(pid, rule)
        return last[1]
    wait_until(is_found)
    code, [finding] = last
    assert code == LOCKS
    return finding


def test_a_file_that_was_left_behind(stand_ins, tmp_path):
    file = tmp_path / "lock"
    file.touch()
    with started(stand_ins + BATON_WAITS % "", file) as program:
        finding = until_found(program.pid)
        assert " waits for the lock file %s, which has been there for " % file in finding["sentence"]
        assert finding["sentence"].endswith("no process has open: it was left behind; in `FileBaton.wait` file_baton.py:10")
        assert finding["confidence"] == ("medium" if SEES_ALL else "low") and not finding["pids"]
        file.unlink()
        assert program.wait()[0] == 0


def test_a_file_that_somebody_has_made(stand_ins, tmp_path):
    file = tmp_path / "lock"
    makes = stand_ins + "from torch.utils.file_baton import FileBaton\nFileBaton(sys.argv[1]).try_acquire()\nprint(flush=True)\ninput()"
    with started(makes, file) as holder:
        holder.line(), holder.line()
        with started(stand_ins + BATON_WAITS % "", file) as program:
            finding = until_found(program.pid)
    assert ", which process %d python3" % holder.pid in finding["sentence"] and " has open; in " in finding["sentence"]
    assert (finding["confidence"], finding["pids"]) == ("medium", [holder.pid])


def test_a_file_that_another_process_has_locked(stand_ins, tmp_path):
    file = tmp_path / "lock"
    with locked(file) as holder, started(stand_ins + FILELOCK_WAITS, file) as program:
        finding = until_found(program.pid)
    assert ", which process %d python3" % holder.pid in finding["sentence"] and " has locked; in " in finding["sentence"]
    assert (finding["confidence"], finding["pids"]) == ("medium", [holder.pid])


def test_a_parent_that_holds_what_its_child_asks_for(stand_ins, tmp_path):
    file = tmp_path / "lock"
    forks = stand_ins + "import os\nfrom filelock import FileLock\nmine = FileLock(sys.argv[1])\nmine.acquire()\n" \
        "child = os.fork()\nif not child:\n    FileLock(sys.argv[1]).acquire()\nprint(child, flush=True)\nos.waitpid(child, 0)"
    with started(forks, file) as program:
        program.line()
        child = int(program.line())
        finding = until_found(child)
        behind = until_found(program.pid, "child")
    assert finding["pids"] == [program.pid]
    assert " has locked, and which waits for %d; in " % child in finding["sentence"]
    assert behind["pids"] == [child] and behind["tids"] == [program.pid] and behind["confidence"] == "medium"
    assert " waits for process %d, where thread %d " % (child, child) in behind["sentence"]
    assert " waits for the lock file %s, which process %d python3" % (file, program.pid) in behind["sentence"]


def test_two_locks_of_one_process(stand_ins, tmp_path):
    source = stand_ins + "from filelock import FileLock\nFileLock(sys.argv[1]).acquire()\n" + FILELOCK_WAITS
    with started(source, tmp_path / "lock") as program:
        finding = until_found(program.pid)
    assert ", which this process has locked itself; in " in finding["sentence"] and not finding["pids"]


def test_a_lock_that_changes_its_holder(stand_ins, tmp_path):
    """Two processes that take turns: neither is stuck."""
    turns = stand_ins + "import fcntl, os, time\nfrom filelock import FileLock\nwhile True:\n" \
        "    FileLock(sys.argv[1]).acquire()\n    time.sleep(0.1)\n    os.close(3)\n    time.sleep(0.02)"
    with started(turns, tmp_path / "lock") as first, started(turns, tmp_path / "lock") as second:
        first.line(), second.line()
        assert judge(first.pid)[1] == [] or judge(second.pid)[1] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_the_process_of_another_user():
    """A program can name any file, and so any process that has locked it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        source, file = modules(Path(folder) / "modules") + FILELOCK_WAITS, Path(folder) / "lock"
        with locked(file) as holder:
            file.chmod(0o666)
            with support.Program(as_user(USER, ["/usr/bin/python3", "-c", source, file])) as program:
                finding = until_found(program.pid)
    assert (finding["confidence"], finding["pids"]) == ("low", [holder.pid])


@pytest.mark.parametrize("package, source, way", [
    ("filelock", FILELOCK_WAITS, "flock"), ("portalocker", PORTALOCKER_WAITS, "flock"), ("fasteners", FASTENERS_WAITS, "lockf")])
def test_real_packages(package, source, way, tmp_path):
    file = tmp_path / "lock"
    with locked(file, way) as holder, started(source, file, packages.need(package)) as program:
        assert until_found(program.pid)["pids"] == [holder.pid]


def test_the_baton_of_torch(tmp_path):
    if subprocess.run([sys.executable, "-c", "import torch"], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("torch is not installed for %s" % sys.executable)
    file = tmp_path / "lock"
    file.touch()
    with started(BATON_WAITS % "", file) as program:
        assert "it was left behind" in until_found(program.pid)["sentence"]

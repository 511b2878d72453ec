# SPDX-License-Identifier: GPL-3.0-or-later
"""Verdicts on jobs of MPI without torch, whose ranks wait by computing (programs/training/mpi_ranks.py)."""
import contextlib
import glob
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

import support
from environment import PROGRAMS, wait_until
from rank_job import check_signs

PROGRAM = PROGRAMS / "training" / "mpi_ranks.py"
WORLD = 4


def python_with_mpi():
    """The first of the usual interpreters that has mpi4py, and $PROBING_MPI_PYTHON before all."""
    for python in filter(None, (os.environ.get("PROBING_MPI_PYTHON"), "/usr/bin/python3", sys.executable)):
        if not subprocess.run([python, "-c", "import mpi4py"], stderr=subprocess.DEVNULL, check=False).returncode:
            return python
    return pytest.skip("mpi4py is not installed")


@pytest.fixture(name="start")
def fixture_start(tmp_path):
    """Starts a job; its name is the pid of mpirun."""
    run = os.environ.get("PROBING_MPIRUN", "mpirun")
    if not shutil.which(run):
        pytest.skip("openmpi is not installed")
    python = python_with_mpi()
    options = [] if "mpich" in run else ["--allow-run-as-root", "--oversubscribe"]
    stack = contextlib.ExitStack()

    def start(case):
        file = str(tmp_path / "at")
        log = stack.enter_context(open(tmp_path / "log", "wb"))
        job = subprocess.Popen([run, *options, "-n", str(WORLD), python, str(PROGRAM), case, file],
                               stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        stack.callback(job.wait)
        stack.callback(lambda: os.killpg(job.pid, signal.SIGKILL))
        wait_until(lambda: len(glob.glob(file + ".*")) == WORLD or job.poll() is not None, 200)
        assert job.poll() is None, (tmp_path / "log").read_text()
        return job.pid

    with stack:
        yield start


def hang(pid, *words):
    done = subprocess.run([support.BINARY, "cluster", *(words or ["hang"]), str(pid), "--json"],
                          capture_output=True, check=False, timeout=120, text=True)
    found = json.loads(done.stdout)
    return check_signs(found) if "verdict" in found else found


def until(pid, verdict):
    """Ranks take their time until they wait."""
    found = {}

    def is_there():
        found.update(hang(pid))
        return found["verdict"] == verdict

    with contextlib.suppress(AssertionError):
        wait_until(is_there, 120)
    assert found["verdict"] == verdict, found
    return found


@pytest.mark.parametrize("case,verdict,ranks,texts", [
    ("sleep", "late", [2], ["never entered MPI_Allreduce", "stall mpi_ranks.py"]),
    ("busy", "late", [2], ["has not yet entered MPI_Allreduce", "compute mpi_ranks.py"]),
    ("lower", "late", [2], ["never", "stall mpi_ranks.py"]),
    ("gather", "late", [2], ["never", "stall mpi_ranks.py"]),
    ("split", "late", [2], ["never entered MPI_", "stall mpi_ranks.py"]),
    ("mismatch", "mismatch", [2], ["MPI_Barrier", "MPI_Allreduce"]),
    ("failed", "late", [2], ["is the only one that does not wait, while all others are in MPI_Barrier", "cannot be read"]),
    ("request", "late", [2], ["stall mpi_ranks.py"]),
    ("probe", "late", [2], ["stall mpi_ranks.py"]),
    ("divide", "late", [2], ["never entered MPI_Comm_split", "stall mpi_ranks.py"]),
    ("tag", "mismatch", [0, 1], ["rank 0 is in MPI_", "rank 1 in MPI_Ssend", "waits for them in MPI_Barrier"])])
def test_hung_job(start, case, verdict, ranks, texts):
    found = until(start(case), verdict)
    if os.environ.get("PROBING_MATRIX"):
        with open(os.environ["PROBING_MATRIX"], "a", encoding="utf-8") as file:
            file.write(json.dumps({"fault": "mpi_" + case, "job": os.environ.get("PROBING_MPIRUN", "mpirun"), "right": found["ranks"] == ranks, **found}) + "\n")
    assert found["ranks"] == ranks and found["confidence"] != "high", found
    for text in texts:
        assert text in found["sentence"], found


def test_job_that_moves(start):
    assert until(start("moving"), "moves")["ranks"] == []


def test_that_ranks_that_poll_move_is_a_guess(start):
    """They come to other places of one loop from look to look, and ask for what never comes."""
    pid = start("poll")
    found = [hang(pid) for _ in range(10)]
    assert all(each["confidence"] == "low" for each in found), found
    assert "it may ask for what never comes" in "".join(each["sentence"] for each in found), found


def test_a_moving_job_is_not_called_hung(start):
    """All ranks wait by computing, at one place in all looks: that they hang is a guess then."""
    pid = start("tight")
    found = [hang(pid) for _ in range(5)]
    assert all(each["verdict"] == "moves" or each["confidence"] == "low" for each in found), found


def is_rank(path, session):
    """Others may end meanwhile. The launcher, whose pid is that of the session, has the same arguments."""
    with contextlib.suppress(OSError):
        pid = int(path.split("/")[2])
        return pid != session and str(PROGRAM).encode() in pathlib.Path(path).read_bytes() and os.getsid(pid) == session
    return False


def test_a_job_without_a_processor_is_not_called_hung(start):
    """Ranks that want a processor and get none do not rest."""
    pid = start("tight")
    cpu = min(os.sched_getaffinity(0))
    ranks = [int(path.split("/")[2]) for path in glob.glob("/proc/[0-9]*/cmdline") if is_rank(path, pid)]
    assert len(ranks) == WORLD, ranks
    for rank in ranks:
        for task in map(int, os.listdir("/proc/%d/task" % rank)):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(task, {cpu})
    busy = [sys.executable, "-c", "import os; os.sched_setaffinity(0, {%d}); print(flush=True)\nwhile True: pass" % cpu]
    with contextlib.ExitStack() as stack:
        # Each session has its own share: the four ranks get a ninth of one processor.
        for _ in range(8):
            stack.enter_context(support.Program(busy, start_new_session=True)).line()
        found = [hang(pid) for _ in range(3)]
    assert all(each["verdict"] == "moves" or each["confidence"] == "low" for each in found), found


def test_the_tree_shows_the_operation(start):
    pid = start("sleep")
    until(pid, "late")
    done = subprocess.run([support.BINARY, "cluster", "dump", str(pid)], capture_output=True, check=True, text=True)
    assert "MPI_Allreduce" in done.stdout and "sched_yield" not in done.stdout


def test_waits_in_mpi_count_as_waits(start):
    pid = start("busy")
    until(pid, "late")
    found = hang(pid, "slow", "--duration", "3s")
    assert found["slow"] == 2, found

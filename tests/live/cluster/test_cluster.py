# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing cluster` over the ranks of a real job: gloo, torch's data loader, stopped and dead ranks."""
import contextlib
import json
import os
import signal
import socket
import subprocess

import pytest

import support
from environment import PROGRAMS, wait_until

PYTHON = "/usr/bin/python3"
PROGRAM = PROGRAMS / "training" / "ranks.py"
MOVES, ABSENT, MISMATCH, LATE, CYCLE, DEVICE = 0, 11, 12, 13, 14, 15
STRANGER = 2001


class Job:
    """Three ranks on this machine."""

    WORLD = 3

    def __init__(self, stack, file, stranger=False):
        if subprocess.run([PYTHON, "-c", "import torch"], stderr=subprocess.DEVNULL,
                          check=False).returncode:
            pytest.skip("torch is not installed for " + PYTHON)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.file = file
        self.name = "127.0.0.1:%d" % port
        self.ranks = []
        for rank in range(self.WORLD):
            env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank),
                       LOCAL_RANK=str(rank), WORLD_SIZE=str(self.WORLD), OMP_NUM_THREADS="1",
                       PYTHONDONTWRITEBYTECODE="1", HOME="/")
            command = [PYTHON, PROGRAM, file]
            if stranger and rank == self.WORLD - 1:
                command = ["setpriv", "--reuid", str(STRANGER), "--regid", str(STRANGER),
                           "--clear-groups", *command]
            self.ranks.append(stack.enter_context(
                support.Program(command, env=env, start_new_session=True)))
            stack.callback(end_group, self.ranks[-1].pid)
        for rank in self.ranks:
            assert rank.line(timeout=120) == "ready"

    def pids(self):
        return [rank.pid for rank in self.ranks]

    def do(self, word, *ranks):
        for rank in ranks or range(self.WORLD):
            self.ranks[rank].send(word.encode() + b"\n")

    def done(self, *ranks):
        for rank in ranks or range(self.WORLD):
            assert self.ranks[rank].line(timeout=120) == "done"

    def waits(self, *ranks):
        """Until the main threads of these ranks sleep in a collective."""
        for rank in ranks:
            wait_until(lambda rank=rank: "distributed_c10d" in main_wait(self.ranks[rank].pid), 60)

    def cluster(self, *words):
        return subprocess.run([support.BINARY, "cluster", *words], capture_output=True,
                              check=False, timeout=120, text=True)

    def hang(self, expected):
        """The verdict as soon as it is the expected one: ranks take their time to get there."""
        result = None

        def is_there():
            nonlocal result
            result = self.cluster("hang", self.name, "--json", "--interval", "500ms")
            return result.returncode == expected

        with contextlib.suppress(AssertionError):
            wait_until(is_there, 60)
        assert result.returncode == expected, result
        return json.loads(result.stdout)


def end_group(pid):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def main_wait(pid):
    return next((thread["waits_for"] or "") for thread in support.dump(pid)["threads"]
                if thread["tid"] == pid)


@pytest.fixture(name="job")
def fixture_job(tmp_path):
    with contextlib.ExitStack() as stack:
        yield Job(stack, str(tmp_path / "go"))


def test_a_job_from_a_late_rank_to_a_dead_one(job):
    nodes = json.loads(job.cluster("nodes", "--json").stdout)
    here = next(each for each in nodes if job.name in each["job"])
    assert here["complete"] and [rank["pid"] for rank in here["ranks"]] == job.pids()

    assert job.name in job.cluster("attach").stdout

    # Rank 1 reads its stdin, while the others wait for it.
    job.do("gather", 0, 2)
    job.waits(0, 2)
    late = job.hang(LATE)
    assert late["verdict"] == "late" and late["ranks"] == [1] and late["confidence"] == "high"
    assert "rank 1 (pid %d) never entered all_reduce; it is at <module> ranks.py:" % job.pids()[1] \
        in late["sentence"]
    assert "ranks 0,2 are in all_reduce, called at ranks.py:" in late["evidence"]
    tree = job.cluster("dump", str(job.pids()[0])).stdout
    assert "[0-2]" in tree and "[0,2]" in tree and "gather  ranks.py:" in tree
    rows = job.cluster("query", "SELECT _rank FROM python.backtrace WHERE func = 'all_reduce' "
                       "ORDER BY 1", job.name)
    assert rows.stdout.split()[-2:] == ["0", "2"], rows
    job.do("gather", 1)
    job.done()

    # The worker of a data loader keeps rank 2: it has nothing to give yet.
    job.do("gather", 0, 1)
    job.do("load", 2)
    job.waits(0, 1)
    wait_until(lambda: "pipe" in main_wait(job.pids()[2]), 60)
    worker = job.hang(LATE)
    assert worker["ranks"] == [2]
    assert "waits in DataLoader for worker" in worker["sentence"]
    assert "Slow.__getitem__ ranks.py:" in worker["sentence"]
    with open(job.file, "w", encoding="ascii"):
        job.done()

    # Ranks that meet again and again do not hang.
    os.unlink(job.file)
    job.do("loop")
    assert job.hang(MOVES)["verdict"] == "moves"

    os.kill(job.pids()[0], signal.SIGSTOP)
    stopped = job.hang(ABSENT)
    assert stopped["ranks"] == [0] and "is stopped by a signal" in stopped["sentence"]
    os.kill(job.pids()[0], signal.SIGCONT)
    with open(job.file, "w", encoding="ascii"):
        job.done()

    job.do("gather", 0, 1)
    job.do("lock", 2)
    cycle = job.hang(CYCLE)
    assert cycle["ranks"] == [2] and "waits for a lock of thread" in cycle["sentence"]

    job.ranks[2].kill()
    gone = job.hang(ABSENT)
    assert 2 in gone["ranks"] and "no process" in gone["evidence"]


def test_ranks_in_different_collectives(job):
    job.do("gather", 0, 2)
    job.do("spread", 1)
    found = job.hang(MISMATCH)
    assert "broadcast, called at ranks.py:" in found["sentence"]
    assert "all_reduce, called at ranks.py:" in found["sentence"]


def test_all_receive_and_none_sends(job):
    job.do("receive")
    job.waits(0, 1, 2)
    assert "all 3 ranks are in recv" in job.hang(MISMATCH)["sentence"]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_a_rank_of_another_user_is_not_of_the_job(tmp_path):
    """Whoever claims a rank by his environment gets into no other user's job."""
    os.chmod(tmp_path, 0o755)
    with contextlib.ExitStack() as stack:
        job = Job(stack, str(tmp_path / "go"), stranger=True)
        nodes = [each for each in json.loads(job.cluster("nodes", "--json").stdout)
                 if job.name in each["job"]]
        by_user = {each["uid"]: [rank["pid"] for rank in each["ranks"]] for each in nodes}
        assert by_user == {0: [*job.pids()[:2], None], STRANGER: [None, None, job.pids()[2]]}
        several = job.cluster("dump", job.name)
        assert several.returncode == 2 and "2 jobs run on this machine" in several.stderr


def test_no_job():
    result = subprocess.run([support.BINARY, "cluster", "dump", "torch 192.0.2.1:1"],
                            capture_output=True, check=False, text=True)
    assert result.returncode == 1 and "no job on this machine is 'torch 192.0.2.1:1'" in \
        result.stderr
    usage = subprocess.run([support.BINARY, "cluster", "mend"], capture_output=True, check=False)
    assert usage.returncode == 2 and b"nodes, dump, hang, query" in usage.stderr

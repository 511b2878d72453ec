# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing list --job`: the ranks of jobs, found by the environments that launchers give them."""
import json
import os
import signal

import pytest

import jobs
import support
from environment import OK, USAGE, wait_until

PYTHON = "/usr/bin/python3"
# No two tests may have the same job, as they would be one.
PORT = str(os.getpid() % 60000 + 1000)
CHILD = """
import subprocess, sys, time
if len(sys.argv) > 2:
    print("ready", flush=True)
    time.sleep(1000)
child = subprocess.Popen([sys.executable, __file__, sys.argv[1], "child"], stdout=subprocess.PIPE)
child.stdout.readline()
print("ready", flush=True)
time.sleep(1000)
"""


@pytest.fixture
def ranks():
    with jobs.ranks(PYTHON, 3, source=CHILD, MASTER_PORT=PORT) as started:
        try:
            yield started
        finally:
            for rank in started:
                for child in support.children(rank.pid):
                    os.kill(child, signal.SIGKILL)


def own(probing):
    """The job of this test."""
    done = probing("list", "--job", "--json")
    assert done.code == OK, done
    found = [job for job in json.loads(done.out) if job["job"] == "torch %s:%s" % (jobs.ADDRESS, PORT)]
    assert len(found) == 1, done.out
    return found[0]


def test_ranks_and_children(probing, ranks):
    job = own(probing)
    assert (job["world_size"], job["complete"], job["missing"]) == (3, True, [])
    assert job["launcher"] == os.getpid() and job["uid"] == os.getuid()
    expected = []
    for number, rank in enumerate(ranks):
        child, = support.children(rank.pid)
        expected += [(rank.pid, None, number), (child, rank.pid, number)]
    assert [(each["pid"], each["python_parent"], each["rank"])
            for each in job["processes"]] == expected


def test_text(probing, ranks):
    done = probing("list", "-j")
    assert done.code == OK, done
    lines = done.out.split("\n")
    assert lines[0].split()[:4] == ["PID", "PYTHON", "THREADS", "AGENT"]
    at = lines.index("torch %s:%s · 3 of 3 ranks · uid %d · started by %d" % (
        jobs.ADDRESS, PORT, os.getuid(), os.getpid()))
    assert [int(line.split()[0]) for line in lines[at + 1:at + 7:2]] == [rank.pid for rank in ranks]
    assert all("└─ " in line for line in lines[at + 2:at + 7:2])


def test_a_rank_that_is_gone(probing):
    """For a job on the loopback all expected ranks are known to be local."""
    with jobs.ranks(PYTHON, 4, MASTER_ADDR="127.0.0.1", MASTER_PORT=PORT) as ranks:
        for number in (1, 2):
            os.kill(ranks[number].pid, signal.SIGKILL)
            wait_until(lambda: not is_running(ranks[number].pid))
        lines = probing("list", "--job").out.split("\n")
        name = "torch 127.0.0.1:%s · 2 of 4 ranks · " % PORT
        at, = [i for i, line in enumerate(lines) if line.startswith(name)]
        assert lines[at + 1] == "  no process here has rank 1-2"
        job, = [each for each in json.loads(probing("list", "--job", "--json").out)
                if each["job"] == "torch 127.0.0.1:" + PORT]
        assert job["missing"] == [1, 2] and [each["rank"] for each in job["processes"]] == [0, 3]


def is_running(pid):
    """False once a process has ended, also if it is a zombie."""
    try:
        return support.thread_status(pid, pid)["State"][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_usage(probing):
    done = probing("list", "--job", "--tree")
    assert done.code == USAGE and "--job shows children below their ranks" in done.err

# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes with the variables of a rank that are none, or ranks of another job with the same name."""
import contextlib
import json
import os
import signal
import subprocess
import tempfile

import pytest

import jobs
import support
from environment import wait_until

PYTHON = "/usr/bin/python3"
OK, USAGE, ABSENT, UNKNOWN, LEFT = 0, 2, 11, 16, 17
LOOPBACK = "127" + jobs.ADDRESS[2:]

RANK = r"""
import os, sys, time
child = os.fork() if "child" in sys.argv else -1
if child:
    rank = os.environ.get("RANK", os.environ.get("SLURM_PROCID"))
    os.write(1, b"ready %s %d %d\n" % (rank.encode(), os.getpid(), child))  # whole: others write there, too
time.sleep(1000)
"""

# Two ranks with one launcher, in a network of their own.
CONTAINER = "for rank in 0 1; do RANK=$rank %s \"$1\" & done; wait"

# Holds a process as a debugger does, from the line on that it reads.
TRACER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_ulong, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
SEIZE, INTERRUPT, pid = 0x4206, 0x4207, int(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
assert not libc.ptrace(SEIZE, pid, None, None), os.strerror(ctypes.get_errno())
assert not libc.ptrace(INTERRUPT, pid, None, None), os.strerror(ctypes.get_errno())
os.waitpid(pid, 0x40000000)
print("stopped", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def program():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "rank.py")
        with open(path, "w", encoding="ascii") as file:
            file.write(RANK)
        yield path


@pytest.fixture
def stack():
    with contextlib.ExitStack() as opened:
        yield opened


def environment(address=jobs.ADDRESS, port=29510, world=2, **variables):
    return dict(os.environ, MASTER_ADDR=address, MASTER_PORT=str(port), WORLD_SIZE=str(world),
                LOCAL_WORLD_SIZE=str(world), PYTHONDONTWRITEBYTECODE="1", **variables)


def end(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def end_group(pid):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def start(stack, words, env, count=1, **options):
    """Starts it; the output of its ranks: {rank: (pid, child or -1)}."""
    process = stack.enter_context(support.Program(words, env=env, **options))
    started = {}
    if options.get("start_new_session"):
        stack.callback(end_group, process.pid)
    for _ in range(count):
        word, rank, pid, child = process.line().split()
        assert word == "ready"
        started[int(rank)] = int(pid), int(child)
        # A shell's children, and children of children, do not end with it.
        for each in (int(pid), int(child)):
            if each > 0 and each != process.pid:
                stack.callback(end, each)
    return process, started


def nodes(name, *words):
    done = jobs.cluster("cluster", "nodes", "--json", *words)
    found = [job for job in json.loads(done.stdout or "[]") if name in job["job"]]
    return [[rank["pid"] for rank in job["ranks"]] for job in found], done


@pytest.mark.skipif(os.getuid() != 0 or subprocess.run(["unshare", "-n", "true"], check=False,
                                                       stderr=subprocess.DEVNULL).returncode,
                    reason="no network namespaces here")
def test_containers_with_the_same_address(stack, program):
    """Each has a loopback interface of its own, so the address says nothing."""
    pids = []
    for _ in range(2):
        _, ranks = start(stack, ["unshare", "-n", "sh", "-c", CONTAINER % PYTHON, "sh", program],
                         environment(LOOPBACK), 2, start_new_session=True)
        pids.append([ranks[rank][0] for rank in (0, 1)])
    name = "%s:29510" % LOOPBACK
    found, done = nodes(name)
    assert sorted(found) == sorted(pids), (pids, done)
    assert "is taken to be" not in done.stderr, done
    for job in pids:
        assert nodes(name, job[1])[0] == [job]
    several = jobs.cluster("cluster", "dump", name)
    assert several.returncode == USAGE and "2 jobs run on this machine" in several.stderr, several


def test_a_rank_of_an_earlier_run(stack, program):
    """It did not end, and is older than the ranks of the job that runs."""
    env = environment()
    _, old = start(stack, ["sh", "-c", "RANK=1 %s \"$0\"; true" % PYTHON, program], env, start_new_session=True)
    ranks = [start(stack, [PYTHON, program], dict(env, RANK=str(rank)), start_new_session=True)[0].pid
             for rank in (0, 1)]
    name = "%s:29510" % jobs.ADDRESS
    found, done = nodes(name)
    assert found == [ranks], (ranks, old, done)
    said = "rank 1 is taken to be process %d, but process %d has the same job and rank in its environment" % (
        ranks[1], old[1][0])
    assert said in done.stderr, done
    hang = jobs.cluster("cluster", "hang", name)
    assert hang.stderr.count(said) == 1 and hang.returncode == UNKNOWN, hang


@pytest.mark.parametrize("launcher", ["torch", "slurm", "unknown task"])
def test_what_a_dead_rank_has_left(stack, program, launcher):
    """Its child has its variables, and is not the rank, also if Slurm does not say which process it has started."""
    options = {"start_new_session": True}
    if launcher != "torch":
        # Both are in the process group of their parent, which runs.
        leader = stack.enter_context(support.Program(["sleep", "1000"], preexec_fn=os.setpgrp)).pid
        options = {"preexec_fn": lambda: os.setpgid(0, leader)}
        env = environment(SLURM_JOB_ID=str(1000000 + os.getpid()), SLURM_STEP_ID="0", SLURM_NTASKS="2")
        name, variable = "slurm %d.0" % (1000000 + os.getpid()), "SLURM_PROCID"
        words = [PYTHON, program, "child"] if launcher == "unknown task" else \
            ["sh", "-c", "SLURM_TASK_PID=$$ exec %s \"$0\" child" % PYTHON, program]
    else:
        env, name, variable = environment(), "%s:29510" % jobs.ADDRESS, "RANK"
        words = [PYTHON, program, "child"]
    started = [start(stack, words, dict(env, **{variable: str(rank)}), **options) for rank in (0, 1)]
    pids = [process.pid for process, _ in started]
    assert nodes(name)[0] == [pids]
    child = started[1][1][1][1]
    started[1][0].kill()
    assert os.path.exists("/proc/%d" % child)
    found, done = nodes(name)
    assert found == [[pids[0], None]], (pids, child, done)
    hang = jobs.cluster("cluster", "hang", name)
    assert hang.returncode == LEFT and "left: rank 1 has no process, and nobody waits for it; rank 0 " in hang.stdout, hang
    rows = jobs.cluster("cluster", "query", "--json", "SELECT _rank FROM process.info", name)
    assert json.loads(rows.stdout) == [{"_rank": 0}], rows
    assert rows.stderr == "probing: warning: rank 1 has no process, and no rows\n", rows


def sleeps_between_looks(pid):
    """True once it sleeps in a timed wait: one round over the ranks is done, and another will follow."""
    with open("/proc/%d/wchan" % pid, encoding="ascii") as file:
        return "nanosleep" in file.read()


def test_a_rank_that_is_stopped_for_a_moment(stack, program):
    """As profilers stop threads: only a thread stopped in every round is held by a debugger."""
    rank = start(stack, [PYTHON, program], environment(world=1, RANK="0"))[0].pid
    tracer = stack.enter_context(support.Program([PYTHON, "-c", TRACER, rank]))
    assert tracer.line() == "ready"
    name = "%s:29510" % jobs.ADDRESS
    with subprocess.Popen([support.BINARY, "cluster", "hang", "--interval", "4s", name], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True) as command:
        wait_until(lambda: sleeps_between_looks(command.pid), 60)
        tracer.send(b"stop\n")
        assert tracer.line() == "stopped"
        out, err = command.communicate(timeout=120)
    assert command.returncode != ABSENT and "is stopped by a debugger" not in out, (out, err)
    held = jobs.cluster("cluster", "hang", "--interval", "200ms", name)
    assert held.returncode == ABSENT and "rank 0 (pid %d) is stopped by a debugger" % rank in held.stdout, held


def test_ranks_that_are_dealt_out_in_turn():
    """Ranks 0 and 2 are all that this machine has: nobody says that rank 1 were here and gone."""
    shared = {"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": "29571"}
    with jobs.ranks(PYTHON, 1, RANK="0", LOCAL_RANK="0", **shared), jobs.ranks(PYTHON, 1, RANK="2", LOCAL_RANK="1", **shared):
        found, = json.loads(jobs.cluster("cluster", "nodes", "--json", jobs.ADDRESS + ":29571").stdout)
    assert [rank["rank"] for rank in found["ranks"]] == [0, 2] and not found["complete"], found

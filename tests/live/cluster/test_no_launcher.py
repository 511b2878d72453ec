# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks without a launcher's variables: of torch.multiprocessing, and of Ray."""
import contextlib
import json
import os
import socket

import pytest

import jobs
import support
import training
from environment import OK, wait_until
from rank_job import LATE, end_group

PYTHON = "/usr/bin/python3"

# Ray gives its workers a title, over their environment, and Ray Train sets variables in the process.
RAY = """
import ctypes, os, sys, time
ctypes.CDLL(None).prctl(15, b"ray::RayTrainWo", 0, 0, 0)
os.environ.update(RANK=sys.argv[1], WORLD_SIZE="2", LOCAL_RANK=sys.argv[1], MASTER_ADDR=sys.argv[2],
                  MASTER_PORT="29500")
print("ready", flush=True)
time.sleep(1000)
"""

# Like a torch program started by Slurm; then it starts a program, as data loaders start a fork server.
TAKES_ITS_PLACE = """
import os, subprocess, sys
os.environ.update(RANK=os.environ["SLURM_PROCID"], WORLD_SIZE="2", MASTER_ADDR=sys.argv[1], MASTER_PORT="29500")
child = subprocess.Popen([sys.executable, "-c", "import sys; print('ready', flush=True); sys.stdin.read()"])
child.wait()
"""


def the_job(name):
    """The job of that name in the output of `nodes`."""
    done = jobs.cluster("cluster", "nodes", "--json", name)
    assert done.returncode == OK, done
    job, = json.loads(done.stdout)
    return job


def test_what_a_rank_starts_is_no_rank():
    with contextlib.ExitStack() as stack:
        ranks = [stack.enter_context(support.Program(
            [PYTHON, "-c", TAKES_ITS_PLACE, jobs.ADDRESS],
            env=dict(os.environ, SLURM_JOB_ID=jobs.ADDRESS, SLURM_STEP_ID="0", SLURM_PROCID=rank, SLURM_NTASKS="2")))
                 for rank in "01"]
        for rank in ranks:
            assert rank.line() == "ready"
        job = the_job(jobs.ADDRESS)
        assert job["job"] == "slurm %s.0" % jobs.ADDRESS
        assert [(each["rank"], each["pid"]) for each in job["ranks"]] == \
            [(number, rank.pid) for number, rank in enumerate(ranks)]


@pytest.mark.parametrize("slurm", [False, True], ids=["alone", "slurm"])
def test_ranks_that_a_program_starts_itself(slurm):
    """Also in a job of Slurm: then all processes have the variables of its one task."""
    training.check()
    variables = {"SLURM_JOB_ID": jobs.ADDRESS, "SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with contextlib.ExitStack() as stack:
        parent = stack.enter_context(support.Program(
            [PYTHON, support.HERE / "programs/training/spawned.py", port], start_new_session=True,
            env=dict(os.environ, **(variables if slurm else {}))))
        stack.callback(end_group, parent.pid)
        for _ in range(3):
            assert parent.line(timeout=120) == "ready"
        job = the_job(parent.pid)
        assert job["job"] == ("slurm %s.0" % jobs.ADDRESS if slurm else "torch started by %d" % parent.pid)
        assert job["world_size"] == 3 and job["complete"]
        assert [each["rank"] for each in job["ranks"]] == [0, 1, 2]

        done = None

        def is_found():
            nonlocal done
            done = jobs.cluster("cluster", "hang", "--json", parent.pid)
            return done.returncode == LATE and json.loads(done.stdout)["confidence"] == "high"

        wait_until(is_found, 60)
        found = json.loads(done.stdout)
        assert found["ranks"] == [1] and "never entered all_reduce; it is at load spawned.py:" in found["sentence"]


def test_ranks_of_ray():
    with contextlib.ExitStack() as stack:
        ranks = [stack.enter_context(support.Program([PYTHON, "-c", RAY, rank, jobs.ADDRESS]))
                 for rank in range(2)]
        for rank in ranks:
            assert rank.line() == "ready"
        job = the_job(jobs.ADDRESS)
        assert job["job"] == "torch %s:29500" % jobs.ADDRESS
        assert [(each["rank"], each["local_rank"], each["pid"]) for each in job["ranks"]] == \
            [(number, number, rank.pid) for number, rank in enumerate(ranks)]

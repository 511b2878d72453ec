# SPDX-License-Identifier: GPL-3.0-or-later
"""Real jobs of Ray on this machine, in the long form and where ray is installed: plain actors, and Ray Train, which
trains in a thread of its own."""
import contextlib
import json
import os
import tempfile

import pytest

import jobs
import packages
import slurm
import support
import training
from environment import OK, PROGRAMS, wait_until
from launched_job import free_port
from rank_job import LATE


def find_ray():
    """A Python with torch, and the folder of Ray for it."""
    for torch in training.OTHERS:
        folder = packages.FOLDER / ("ray-" + torch.name)
        if folder.exists():
            return torch, str(folder)
    return pytest.skip("no ray here: 'make test-packages' gets it")


def check_job(way):
    torch, path = find_ray()
    # Ray's sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="ray") as folder, contextlib.ExitStack() as stack:
        # Its daemons are no children of ours.
        stack.callback(slurm.end_all, "RAY_TEST=" + folder)
        file, port = os.path.join(folder, "go"), str(free_port())
        job = stack.enter_context(support.Program(
            [torch.exe, PROGRAMS / "training" / "ray_job.py", file, way, folder, port],
            env=dict(os.environ, RAY_USAGE_STATS_ENABLED="0", RAY_TEST=folder, OMP_NUM_THREADS="1",
                     PYTHONPATH=path, **torch.env)))
        assert job.line(timeout=600) == "ready"
        done = None

        def is_late():
            nonlocal done
            done = jobs.cluster("cluster", "hang", "--json", job.pid)
            found = json.loads(done.stdout) if done.returncode == LATE else {}
            return found.get("ranks") == [1] and found["confidence"] == "high"

        wait_until(is_late, 600)
        found = json.loads(done.stdout)
        assert "never entered all_reduce; it is at stall ray_job.py:" in found["sentence"], found
        done = jobs.cluster("cluster", "attach", "--json", job.pid)
        assert done.returncode == OK, done
        each, = json.loads(done.stdout)
        assert [rank["rank"] for rank in each["ranks"]] == [0, 1, 2] and each["complete"], each
        assert all("ray::" in rank["command"] for rank in each["ranks"]), each
        assert "all_reduce" in each["ranks"][0]["main_thread"] and "stall" in each["ranks"][1]["main_thread"], each
        with open(file, "w", encoding="ascii"):
            assert job.line(timeout=600) == "done"


if support.LONG:
    @pytest.mark.parametrize("way", ["actors", "train"])
    def test_a_job_of_ray(way):
        check_job(way)

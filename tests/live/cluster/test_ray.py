# SPDX-License-Identifier: GPL-3.0-or-later
"""Real jobs of Ray on this machine, in the long form and where ray is installed: plain actors, and Ray Train, which
trains in a thread of its own."""
import contextlib
import json
import os
import signal
import tempfile

import pytest

import jobs
import packages
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


# Ray's own time limits that a busy machine exceeds.
PATIENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_gcs_server_port_wait_time_s": "300",
           "RAY_worker_register_timeout_seconds": "600", "RAY_health_check_failure_threshold": "1000",
           "RAY_agent_register_timeout_ms": "600000", "RAY_DASHBOARD_STARTUP_TIMEOUT_S": "300",
           "RAY_memory_monitor_refresh_ms": "0", "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "600"}


def session(number):
    """Processes of a session: its daemons are no children of ours, and their workers hide their environment."""
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            if os.getsid(int(name)) == number:
                yield int(name)


def end_session(number):
    """Ends all of them. The first one is our child, and is waited for elsewhere."""
    def is_over():
        left = list(session(number))
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return left in ([], [number])

    wait_until(is_over, 100)


def check_job(way):
    torch, path = find_ray()
    # Ray's sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="ray") as folder, contextlib.ExitStack() as stack:
        file, port = os.path.join(folder, "go"), str(free_port())
        job = stack.enter_context(support.Program(
            [torch.exe, PROGRAMS / "training" / "ray_job.py", file, way, folder, port],
            env=dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=path, **PATIENT, **torch.env), start_new_session=True))
        stack.callback(end_session, job.pid)
        assert job.line(timeout=600) == "ready"
        done = good = None

        def is_late():
            """Rank 1 checks for its file now and then; the others take their time to reach the collective."""
            nonlocal done, good
            done = jobs.cluster("cluster", "hang", "--json", job.pid)
            found = json.loads(done.stdout) if done.returncode == LATE else {}
            good = found.get("ranks") == [1] and found["confidence"] == "high" and \
                "never entered all_reduce; it is at stall ray_job.py:" in found["sentence"]
            return good

        with contextlib.suppress(AssertionError):
            wait_until(is_late, 600)
        assert good, (done, job.errors())
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

# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing cluster hang PID` of a program without ranks: its workers, of multiprocessing, concurrent.futures, and, where
they are installed ($PROBING_POOLS_PYTHON), Ray, Dask and Celery. Several kinds are from public reports."""
import contextlib
import json
import os
import signal
import subprocess
import tempfile

import pytest

import jobs
import support
from environment import PROGRAMS, wait_until
from rank_job import check_signs

PROGRAM = PROGRAMS / "training" / "pools.py"
PYTHON = "/usr/bin/python3"
OTHER = os.environ.get("PROBING_POOLS_PYTHON", PYTHON)
MODULES = {"ray": "ray", "dask": "distributed", "celery": "celery"}

# Case, verdicts, texts of the sentence.
KINDS = [
    ("pool_stuck", ["late"], ["has not finished its work", "stuck pools.py"]),
    ("pool_lost", ["unknown"], ["which all wait for work"]),
    ("executor_stuck", ["late"], ["has not finished its work", "stuck pools.py"]),
    ("executor_lock", ["late"], ["has not finished its work", "take pools.py"]),
    ("join_process", ["late"], ["has not finished its work", "stuck pools.py"]),
    ("two_stuck", ["late"], ["and 1 more have work to do", "stuck pools.py"]),
    ("busy", ["moves"], ["moves"]),
    ("ray_itself", ["cycle"], ["(ray::Actor.call) waits for itself"]),
    ("ray_each_other", ["cycle"], ["2 workers wait for each other", "ray::Actor.call"]),
    ("ray_stuck", ["late"], ["(ray::Actor.hang) has not finished its work", "stuck pools.py"]),
    ("dask_stuck", ["late"], ["has not finished its work", "stuck"]),
    ("celery_stuck", ["late"], ["has not finished its work", "stuck pools.py"]),
]


def session(number):
    """The processes of a session."""
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            if os.getsid(int(name)) == number:
                yield int(name)


def end(pid):
    # Ray's daemons have sessions of their own.
    known = list(support.descendants(pid))
    # A pool starts workers anew as long as it lives.
    os.kill(pid, signal.SIGKILL)
    for each in (*known, *session(pid)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


@contextlib.contextmanager
def running(case):
    """It has printed "ready"."""
    module = MODULES.get(case.split("_", maxsplit=1)[0])
    if module and subprocess.run([OTHER, "-c", "import " + module], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("%s is not installed" % module)
    # Ray's sockets need a short path.
    with tempfile.TemporaryDirectory(prefix="p") as folder, contextlib.ExitStack() as stack:
        program = stack.enter_context(support.Program(
            [OTHER if module else PYTHON, PROGRAM, case, folder], start_new_session=True,
            env=dict(os.environ, RAY_USAGE_STATS_ENABLED="0", C_FORCE_ROOT="1",
                     PYTHONDONTWRITEBYTECODE="1")))
        stack.callback(end, program.pid)
        assert program.line(timeout=200) == "ready"
        yield program.pid


def hang(pid):
    return check_signs(json.loads(jobs.cluster("cluster", "hang", "--json", pid).stdout))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind[0])
def test_kind(kind):
    case, verdicts, texts = kind
    found = {}

    def is_there():
        found.update(hang(pid))
        return found["verdict"] in verdicts and all(text in found["sentence"] for text in texts)

    with running(case) as pid:
        with contextlib.suppress(AssertionError):
            wait_until(is_there, 60)
        if os.environ.get("PROBING_MATRIX"):
            with open(os.environ["PROBING_MATRIX"], "a", encoding="utf-8") as file:
                file.write(json.dumps({"fault": case, "job": case.split("_")[0], "right": is_there(), **found}) + "\n")
        assert is_there(), found
        assert set(found["pids"]) <= {pid, *support.descendants(pid)} and "ranks" not in found


def test_what_is_no_such_program():
    """A program without Python, and a saved file of what has no ranks."""
    with subprocess.Popen(["sleep", "60"]) as process:
        done = jobs.cluster("cluster", "hang", process.pid)
        process.kill()
    assert done.returncode == 1 and "that process is no rank, nor above one" in done.stderr, done
    with running("pool_stuck") as pid:
        done = jobs.cluster("cluster", "hang", pid, "--save", "/tmp/never")
        assert done.returncode == 2 and "--save is for ranks" in done.stderr, done
        # All else needs ranks, as before.
        done = jobs.cluster("cluster", "dump", pid)
        assert done.returncode == 1 and "that process is no rank" in done.stderr, done

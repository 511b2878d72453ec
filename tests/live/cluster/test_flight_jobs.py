# SPDX-License-Identifier: GPL-3.0-or-later
"""`cluster hang` of real jobs whose torch has a flight recorder of gloo, with the agent that asks it."""
import contextlib
import subprocess

import pytest

import support
import training
from rank_job import LATE, MISMATCH, Job

# Version 2.6 has only NCCL's recorder.
TORCHES = [torch for torch in training.OTHERS if torch.name != "torch-2.6.0"]


@pytest.fixture(name="torch", params=TORCHES or [training.Torch("other", "", {}, False)], ids=repr, scope="module")
def fixture_torch(request):
    request.param.check()
    return request.param


@pytest.fixture(name="job", scope="module")
def fixture_job(tmp_path_factory, torch):
    with contextlib.ExitStack() as stack:
        yield Job(stack, str(tmp_path_factory.mktemp("job") / "go"), torch=torch)


def inject(job):
    for pid in job.pids():
        subprocess.run([support.BINARY, str(pid), "inject"], check=True, capture_output=True)


def test_who_is_late(job):
    """Without an agent nothing is loaded, and the stacks decide; with it the group's sequence numbers do."""
    job.do("grouped", 0, 1)
    found = job.hang(LATE, "never entered all_reduce;", ranks=[1])
    assert found["rests_on"].endswith("; no flight recorder: no agent is loaded")
    with open("/proc/%d/maps" % job.pids()[0], encoding="utf-8") as maps:
        assert "libprobing" not in maps.read()
    inject(job)
    found = job.hang(LATE, "never entered all_reduce #1 of group 1;", ranks=[1])
    assert found["confidence"] == "high" and found["rests_on"].endswith("; the flight recorders of ranks 0-2")
    assert "flight recorder: rank 0 has called all_reduce #1 of group 1 ((4,) float32); rank 1 has not: it has " \
        "called none there\n" in found["evidence"]
    job.release(0, 1)

    # Ranks 0 and 2 wait in C++, where only the recorder knows the operation.
    job.do("later")
    found = job.hang(LATE, "never entered all_reduce #1 of group default_pg;", ranks=[1])
    assert found["confidence"] == "high"
    job.release()
    job.do("sharded")
    job.hang(LATE, "never entered all_reduce #5 of group default_pg; it is at stall", ranks=[2])
    job.release()
    # Messages between two ranks have no such numbers; the stacks decide.
    job.do("pipeline")
    job.hang(LATE, "what rank", "it is at stall ranks.py:", ranks=[1])
    job.release()


def test_calls_of_different_kinds(tmp_path, torch):
    with contextlib.ExitStack() as stack:
        job = Job(stack, str(tmp_path / "go"), torch=torch)
        inject(job)
        job.do("spread", 1)
        job.do("gather", 0, 2)
        found = job.hang(MISMATCH, "rank 1 called broadcast of (4,) float32 at ranks.py:", ranks=[1])
        assert found["confidence"] == "high"
        assert ", as #1 of group default_pg, where rank 0 called all_reduce of (4,) float32 at ranks.py:" in \
            found["sentence"]

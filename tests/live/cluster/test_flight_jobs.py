# SPDX-License-Identifier: GPL-3.0-or-later
"""`cluster hang` of real jobs whose torch has a flight recorder, with and without the agent that asks it."""
import contextlib
import json

import pytest

import support
import training
from rank_job import LATE, MISMATCH, MOVES, Job

TORCHES = [torch for torch in training.OTHERS if torch.name != "torch-2.6.0"] or [training.OTHERS and None]


@pytest.fixture(name="job", params=TORCHES, ids=repr)
def fixture_job(request, tmp_path):
    if not request.param:
        pytest.skip("no torch with a flight recorder of gloo is here: 'make test-torch' gets one")
    with contextlib.ExitStack() as stack:
        yield Job(stack, str(tmp_path / "go"), torch=request.param)


def inject(job, *ranks):
    for rank in ranks or range(job.world):
        done = job.probing(str(job.pids()[rank]), "inject")
        assert done.returncode == 0, done


def test_numbers_in_verdicts(job):
    job.do("grouped", 0)
    job.do("gather", 2)
    found = job.hang(LATE)
    assert "no flight recorder: no agent is loaded" in found["rests_on"] and "#" not in found["sentence"], found
    inject(job)
    found = job.hang(LATE)
    assert found["ranks"] == [1], found

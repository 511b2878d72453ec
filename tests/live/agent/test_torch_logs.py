# SPDX-License-Identifier: GPL-3.0-or-later
"""training_logs of a program that says nothing to probing: variables of the frames that call step()."""
import contextlib
import json

import pytest

import training
from environment import OK, wait_until


@pytest.fixture(params=training.TORCHES, ids=repr)
def torch(request):
    return request.param


@contextlib.contextmanager
def running(torch, probing, mode):
    with torch.start("told.py", mode) as program:
        assert program.line(timeout=400) == "ready"
        assert probing(program.pid, "config", "torch.profiling=0.000001").code == OK
        yield program


def query(probing, program, sql):
    done = probing(program.pid, "query", "-f", "json", sql)
    return json.loads(done.out) if done.code == OK else []


def rows(probing, program, count=30):
    wait_until(lambda: len(query(probing, program, "SELECT step FROM training_logs")) >= count)
    return query(probing, program, "SELECT * FROM training_logs ORDER BY timestamp")


def test_variables(probing, torch):
    with running(torch, probing, "train") as program:
        found = rows(probing, program)
        for one, other in zip(found, found[1:]):
            steps = other["step"] - one["step"]
            assert steps > 0 and 0 <= other["epoch"] - one["epoch"] <= 1 + steps // 10
            assert (other["duration"] is None or other["duration"] > 10) and other["loss"] > 0
        wait_until(lambda: query(probing, program, "SELECT max(epoch) > min(epoch) AS more FROM training_logs")[0]["more"])
        metrics = json.loads(found[-1]["metrics"])
        assert metrics["acc1"] == 0.5 and abs(metrics["lr"] - 0.01) < 1e-6 and len(metrics) == 2
        # As people type it, and beside the table of steps.
        done = probing(program.pid, "query", "SELECT epoch, avg(loss) FROM training_logs GROUP BY epoch")
        assert done.code == OK and done.out.count("\n") >= 4, done
        assert query(probing, program, "SELECT count(*) AS n FROM training_logs JOIN python.torch_step_timing "
                     "USING (step)")[0]["n"] > 20
        assert probing(program.pid, "config", "torch.profiling=off").code == OK
        assert program.alive()


def test_variables_of_the_module(probing, torch):
    with running(torch, probing, "module") as program:
        found = rows(probing, program, 10)
        assert all(row["loss"] > 0 and row["metrics"] is None for row in found)


def test_nothing_is_told(probing, torch):
    with running(torch, probing, "gone") as program:
        wait_until(lambda: query(probing, program, "SELECT count(*) AS n FROM python.torch_step_timing WHERE "
                                 "local_step > 40")[0]["n"])
        assert not query(probing, program, "SELECT * FROM training_logs")

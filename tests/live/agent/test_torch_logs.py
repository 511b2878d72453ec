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
def running(torch, probing, mode, script="told.py"):
    with torch.start(script, mode) as program:
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
        assert metrics == {"acc1": 0.5} and abs(found[-1]["lr"] - 0.01) < 1e-6
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


TOLD = {
    "logging": {"epoch": 3, "loss": 0.25, "lr": 0.001, "metrics": None},
    "text": {"loss": None, "metrics": {"validation_loss": 0.5, "users": 4}},
    "tqdm": {"epoch": 3, "loss": 0.25, "metrics": None},
    "dict": {"epoch": 3, "loss": 0.25, "metrics": {"top5": 0.75}},
    "bar": {"epoch": 3, "loss": 0.25, "metrics": None},
    "describe": {"epoch": 3, "loss": 0.25, "metrics": None},
    "writer": {"loss": 0.25, "metrics": {"acc/a": 1, "acc/b": 2}},
    "wandb": {"epoch": 3, "loss": 0.25, "grad_norm": 2, "metrics": None},
    "csv": {"epoch": 3, "loss": 0.25, "metrics": None},
}


@pytest.mark.parametrize("logger", sorted(TOLD))
def test_what_loggers_are_given(probing, torch, logger):
    with running(torch, probing, logger, "tells.py") as program:
        row = rows(probing, program, 2)[-1]
        row["metrics"] = row["metrics"] and json.loads(row["metrics"])
        assert {name: row[name] for name in TOLD[logger]} == TOLD[logger], row


def test_other_texts(probing, torch):
    with running(torch, probing, "server", "tells.py") as program:
        wait_until(lambda: query(probing, program, "SELECT count(*) AS n FROM python.torch_step_timing WHERE "
                                 "local_step > 20")[0]["n"])
        assert not query(probing, program, "SELECT * FROM training_logs")

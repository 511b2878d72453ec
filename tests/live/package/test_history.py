# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of steps keep what their ring has dropped: least, mean and highest values of 10 steps, of 100 and so on."""
import json
import os
import subprocess
from pathlib import Path

import pytest

import support
import training
from environment import OK, PROGRAMS, wait_until

PACKAGE = support.ROOT / "package"
STEPS = 100000


def query(probing, pid, sql):
    done = probing(pid, "query", "-f", "json", sql)
    assert done.code == OK and not done.err, done
    return json.loads(done.out)


@pytest.fixture(scope="module")
def long(newest):
    env = {"PROBING_AGENT": str(Path(support.BINARY).with_name("libprobing-agent.so"))}
    with support.Program([newest.exe, PROGRAMS / "long_training.py", PACKAGE, str(STEPS)],
                         env={**os.environ, **newest.env, **env}) as program:
        assert program.line(timeout=400) == "done"
        yield program


def check_each_once(found, last):
    """Rows are of steps that follow each other, newer ones of fewer."""
    assert found[-1]["step"] == last and found[-1]["steps"] == 1
    assert len({row["steps"] for row in found}) >= 2
    for one, other in zip(found, found[1:]):
        assert other["step"] - other["steps"] == one["step"] and other["steps"] <= one["steps"], (one, other)
    assert found[0]["step"] == found[0]["steps"]


def test_each_step_is_in_one_row(probing, long):
    found = query(probing, long.pid, "SELECT step, steps FROM training_logs ORDER BY step")
    check_each_once(found, STEPS)
    assert sum(row["steps"] == 1 for row in found) >= 16000 and len(found) < STEPS


def test_least_mean_and_highest(probing, long):
    for table, column in (("training_logs", "grad_norm / 2"), ("python.variables", "number")):
        name = column.partition(" ")[0]
        found, = query(probing, long.pid, f"SELECT sum({column} * steps) AS sum, sum(steps) AS steps, min({name}_min) AS least, "
                       f"max({name}_max) AS highest, max({name}) AS newest, sum({name}_min IS NULL) AS whole, "
                       f"sum(steps = 1) AS single FROM {table}")
        assert found["steps"] == STEPS and found["whole"] == found["single"]
        assert found["sum"] == pytest.approx(STEPS * (STEPS + 1) / 2)
        factor = 1 + ("/" in column)
        assert found["least"] == factor and found["newest"] == factor * STEPS
    row, = query(probing, long.pid, "SELECT step, epoch, lr, lr_min, lr_max, steps FROM training_logs ORDER BY step LIMIT 1")
    first, last = row["step"] - row["steps"] + 1, row["step"]
    assert (row["lr_max"], row["lr_min"]) == (1 / first, 1 / last) and row["epoch"] == last // 1000
    assert row["lr"] == pytest.approx(sum(1 / number for number in range(first, last + 1)) / row["steps"])


def test_not_a_number(probing, long):
    found = query(probing, long.pid, "SELECT step, loss_min, loss_max FROM training_logs WHERE loss IS NULL")
    assert len(found) == 1 and 777 <= found[0]["step"] < 777 + 1000
    assert found[0]["loss_min"] is not None and found[0]["loss_max"] == found[0]["step"]


def test_as_one_table(probing, long):
    done = probing(long.pid, "query", "SELECT * FROM training_logs LIMIT 3")
    assert done.code == OK and "loss_min" not in done.out and "_per_" not in probing(long.pid, "query", "SHOW TABLES").out
    since, = query(probing, long.pid, "SELECT timestamp FROM training_logs WHERE step = %d" % (STEPS - 5))
    assert len(query(probing, long.pid, "SELECT step FROM training_logs WHERE timestamp > %r" % since["timestamp"])) == 5


def test_a_week_of_steps(probing, tmp_path):
    """All levels: 30 million steps of 20 ms are a week. They are written at once, by the agent's own entrance."""
    agent, made, count = Path(support.BINARY).with_name("libprobing-agent.so"), tmp_path / "long_steps", support.count(12, 30) * 10 ** 6
    subprocess.run(["cc", "-O2", "-I", support.ROOT, PROGRAMS / "long_steps.c", "-o", made, agent, "-Wl,-rpath,%s" % agent.parent],
                   check=True)
    with support.Program([made, str(count)]) as program:
        assert program.line(timeout=400) == "done"
        found = query(probing, program.pid, "SELECT step, steps, duration, duration_min, duration_max FROM python.torch_step_timing "
                      "ORDER BY step")
    assert {row["steps"] for row in found} == {1, 10, 100, 1000, 10000}
    check_each_once(found, count)
    for row in found:
        first, last = row["step"] - row["steps"] + 1, row["step"]
        assert row["duration"] == pytest.approx((first + last) / 2)
        assert row["steps"] == 1 or (row["duration_min"], row["duration_max"]) == (first, last), row


@pytest.mark.parametrize("torch", [training.SYSTEM], ids=repr)
def test_steps_of_torch(probing, torch):
    with torch.start("little.py") as program:
        assert program.line(timeout=400) == "ready"
        assert probing(program.pid, "config", "torch.profiling=0.000001").code == OK
        for _ in range(100):
            program.send(b"s" * 180)
            for _ in range(180):
                assert program.line(timeout=100) == "step"
        wait_until(lambda: query(probing, program.pid, "SELECT max(steps) AS most FROM python.torch_step_timing")[0]["most"] == 10)
        found = query(probing, program.pid, "SELECT local_step AS step, steps, duration, duration_min, duration_max, backward, "
                      "kind FROM python.torch_step_timing ORDER BY local_step")
        check_each_once(found, found[-1]["step"])
        assert found[-1]["step"] > 17900
        for row in found:
            if row["steps"] > 1:
                assert row["duration_min"] <= row["duration"] <= row["duration_max"] and row["kind"] is None

# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing inject` into a program that trains begins to record, and queries wait for the first rows."""
import json
import os
import subprocess

import pytest

import support
import training
from environment import OK, USAGE

SAYS = "the next 10 steps of torch are recorded, then one in 100, and memory each second"


@pytest.fixture(params=training.TORCHES, ids=repr)
def little(request):
    with request.param.start("little.py") as program:
        assert program.line(timeout=400) == "ready"
        yield program


def steps(program, count):
    for _ in range(count):
        program.send(b"x")
        assert program.line() == "step"


def rows(probing, program, sql):
    done = probing(program.pid, "query", "-f", "json", sql)
    assert done.code == OK, done
    return json.loads(done.out)


def config(probing, program, key):
    return float(probing(program.pid, "config", key).out)


def test_steps_are_recorded(probing, little):
    steps(little, 2)
    done = probing(little.pid, "inject")
    assert done.code == OK and done.err.count("\n") == 1 and SAYS in done.err, done
    steps(little, 15)
    kinds = [row["kind"] for row in rows(probing, little, "SELECT kind FROM python.torch_step_timing ORDER BY step")]
    # The first one is that in which the agent was loaded.
    assert len(kinds) in (14, 15) and kinds[0] == "discovery" and kinds[1:10] == ["sampled"] * 9, kinds
    assert {row["module"] for row in rows(probing, little, training.TYPED[0])} >= {"model.0", "model.2"}
    assert rows(probing, little, "SELECT * FROM memory_usage")
    # Once loaded, an inject changes nothing.
    assert probing(little.pid, "config", "probing.torch.profiling=off").code == OK
    assert not probing(little.pid, "inject").err
    assert config(probing, little, "probing.torch.profiling") == 0


def test_bare(probing, little):
    assert not probing(little.pid, "inject", "--bare").err
    assert config(probing, little, "probing.torch.profiling") == config(probing, little, "probing.memory.interval") == 0
    done = probing(little.pid, "query", training.TYPED[0])
    assert done.code == USAGE and "nothing records" in done.err and "waiting" not in done.err, done


def test_json_is_json(probing, little):
    done = probing(little.pid, "inject", "--json")
    assert json.loads(done.out)["pid"] == little.pid and SAYS in done.err


def test_the_environment_decides(probing):
    with training.SYSTEM.start("little.py", env={"PROBING_TORCH_PROFILING": "off"}) as program:
        assert program.line(timeout=400) == "ready"
        assert not probing(program.pid, "inject").err
        assert config(probing, program, "probing.torch.profiling") == 0


def test_programs_without_torch(probing, target):
    process = target("evaluated.py", "idle")
    assert not probing(process.pid, "inject").err
    assert config(probing, process, "probing.memory.interval") == 0


def test_a_query_waits_for_the_first_rows(probing, little):
    assert probing(little.pid, "inject").code == OK
    done = probing(little.pid, "query", "-f", "json", training.TYPED[0])
    assert done.code == OK and json.loads(done.out) == [], done
    assert "waiting up to 5 s" in done.err and "none came in 5 s" in done.err
    with subprocess.Popen([support.BINARY, "-p", str(little.pid), "query", "-f", "json", training.TYPED[0]],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          env=dict(os.environ)) as query:
        said = query.stderr.readline().decode()
        assert said == "probing: python.torch_trace has no rows yet; waiting up to 5 s for the first\n"
        steps(little, 3)
        assert json.loads(query.stdout.read().decode())
    # There are some: no more is said.
    assert not probing(little.pid, "query", training.TYPED[0]).err

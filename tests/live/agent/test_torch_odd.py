# SPDX-License-Identifier: GPL-3.0-or-later
"""Trainings that fail, models that are freed, and objects that only look like torch's."""
import json
import os

import pytest

import support
import training
from environment import FAILED, OK, UNSUPPORTED
from test_torch_steps import ALL, HOOKS, rows, running, set_share, steps  # noqa: F401 (fixtures)

STAND_IN = """
import sys, time
sys.path.insert(0, sys.argv[1])
import torch
print("ready", flush=True)
for line in sys.stdin:
    torch.nn.Module()()
    print("called", flush=True)
"""


@pytest.mark.parametrize("where", ["raise", "hook", "gradient", "optimizer"])
def test_what_raises_is_followed_by_whole_steps(probing, steps, where):  # noqa: F811
    set_share(probing, steps, ALL)
    steps.do("run 3")
    assert steps.do(where) == "broken"
    steps.do("run 3")
    # Nothing is taken for a part of the pass that raised.
    found = rows(probing, steps, "SELECT step, stage, depth, parent, module FROM python.torch_trace "
                                 "WHERE stage IN ('forward', 'recompute', 'backward') ORDER BY local_step, seq")
    assert {row["module"] for row in found if row["stage"] == "recompute"} <= {
        "trainer.net.kept" + each for each in ("", ".inner", ".broken", ".inner.0", ".inner.1", ".inner.2")}
    whole = [row for row in found if row["module"] == "trainer.net"]
    assert {(row["depth"], row["parent"]) for row in whole} == {(0, None)}
    for step in sorted({row["step"] for row in found}):
        stages = [row["stage"] for row in whole if row["step"] == step]
        assert stages.count("backward") == 1 and stages.count("forward") in (1, 2), (step, stages)
    set_share(probing, steps, "torch.profiling=off")
    assert probing(steps.pid, "eval", HOOKS).out == "(0, 0)\n"
    assert len(steps.do("run 2")) == 2


def test_models_that_go_away(probing, steps):  # noqa: F811
    """Each step has a new model: names are found, and freed models are not kept alive."""
    set_share(probing, steps, ALL)
    steps.program.send(b"churn\n")
    found = []
    for _ in range(20):
        done = probing(steps.pid, "perf", "--torch", "--json", "-r", "500", "-d", "1s")
        assert done.code == OK or "no module of torch ran" in done.err, done
        found = json.loads(done.out)["nodes"] if done.code == OK else []
        if any(node["name"] == "forward" for node in found):
            break
    assert any(node["name"] == "forward" for node in found), found
    steps.stop()
    names = {row["module"] for row in rows(probing, steps, "SELECT module FROM python.torch_trace "
                                                           "WHERE stage = 'forward'")}
    assert {"trainer.net", "trainer.net.embed", "trainer.net.blocks.0"} <= names and len(names) < 30, names
    steps.do("run 3")
    done = probing(steps.pid, "eval", "import gc; gc.collect(); import torch; sum(isinstance(each, "
                                      "torch.nn.GRUCell) for each in gc.get_objects())")
    assert done.out == "1\n", done


def test_a_stand_in(probing, tmp_path):
    """A module named torch that is none: clear words, and no harm."""
    folder = tmp_path / "torch"
    folder.mkdir()
    (folder / "__init__.py").write_text("from torch import nn\n")
    (folder / "nn.py").write_text("class Module:\n    def __call__(self):\n        pass\n")
    with support.Program(["/usr/bin/python3", "-c", STAND_IN, tmp_path]) as process:
        assert process.line() == "ready"
        done = probing(process.pid, "perf", "--torch", "-d", "100ms")
        assert done.code == FAILED and "no module of torch ran" in done.err, done
        done = probing(process.pid, "perf", "--torch", "--exact", "-d", "1s")
        assert done.code == UNSUPPORTED and "this torch has no hooks of modules, or is no torch" in done.err
        for table in ("modules", "tensors", "optimizers"):
            done = probing(process.pid, "query", "SELECT count(*) FROM torch." + table)
            assert done.code == OK and "is empty" in done.err, done
        process.send(b"\n")
        assert process.line() == "called"


FORKED = """
import os, sys
import torch
import torch.distributed as dist
print("ready", flush=True)
sys.stdin.readline()
if os.fork():
    os.wait()
    sys.exit()
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
print("%d" % os.getpid(), flush=True)
sys.stdin.readline()
for _ in range(5):
    dist.all_reduce(torch.ones(3))
print("done", flush=True)
sys.stdin.readline()
"""


def test_operations_in_a_child(probing, tmp_path):
    """Operations of a child after fork() are recorded once, though its parent was recorded too."""
    training.check()
    with support.Program([training.PYTHON, "-c", FORKED, tmp_path / "store"]) as process:
        assert process.line(timeout=100) == "ready"
        assert probing(process.pid, "config", ALL).code == OK
        process.send(b"\n")
        child = process.line(timeout=100)
        try:
            assert probing(child, "config", ALL).code == OK
            process.send(b"\n")
            assert process.line(timeout=100) == "done"
            found = json.loads(probing(child, "query", "-f", "json", "SELECT record, count(*) AS n FROM "
                                       "python.comm_collective GROUP BY record ORDER BY record").out)
        finally:
            os.kill(int(child), 9)
    assert found == [{"record": "begin", "n": 5}, {"record": "end", "n": 5}]

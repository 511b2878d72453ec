# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of a model in timed calls; no variable that was read is kept alive."""
import json
import os

import pytest

import support
import training
from environment import OK

MODEL = """
import sys, torch, weakref
class Batch:
    pass
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
    def forward(self, x):
        return self.inner(x)
"""
LOOP = """
for line in sys.stdin:
    %s
    print("done", flush=True)
"""
TRAINER = """
class Trainer:
    def __init__(self):
        self.model = Net()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
    def step(self):
        self.model(torch.ones(1, 4)).sum().backward()
        self.optimizer.step()
"""
STEP = """
def step(model, optimizer):
    model(torch.ones(1, 4)).sum().backward()
    optimizer.step()
"""
OPTIMIZER = "optimizer = torch.optim.SGD(%s.parameters(), lr=0.1)\n"
PART = """
class Pair(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.left = Net()
    def train_left(self, optimizer):
        self.left(torch.ones(1, 4)).sum().backward()
        optimizer.step()
"""
MODULE = """
import types
app = sys.modules["app"] = types.ModuleType("app")
vars(app).update(sys=sys, torch=torch, Net=Net)
exec(%r, vars(app))
"""
PROGRAMS = {
    "a script's variable": ("model", STEP + "model = Net()\n" + OPTIMIZER % "model" +
                            LOOP % "step(model, optimizer)"),
    "a function's variable": ("found", STEP + "def main():\n    found = Net()\n    " + OPTIMIZER % "found" +
                              (LOOP % "step(found, optimizer)").replace("\n", "\n    ") + "\nmain()"),
    "an attribute": ("trainer.model", TRAINER + "trainer = Trainer()\n" + LOOP % "trainer.step()"),
    "an attribute of what only its method has": (
        "self.model", TRAINER + "    def run(self):" + (LOOP % "self.step()").replace("\n", "\n        ") +
        "\nTrainer().run()"),
    "a part of a model": ("pair.left", PART + "pair = Pair()\n" + OPTIMIZER % "pair" +
                          LOOP % "pair.train_left(optimizer)"),
    "another module's variable": (
        "app.model", MODULE % (STEP + "model = Net()\n" + OPTIMIZER % "model" +
                               "def go():\n    step(model, optimizer)\n") + LOOP % "app.go()"),
}


class Steps(support.Program):
    """A program that makes a step for each line, and answers with one."""

    def __init__(self, torch, code):
        torch.check()
        super().__init__([torch.exe, "-c", MODEL + code], env=dict(os.environ, **torch.env))

    def step(self):
        self.send(b"step\n")
        return self.line(timeout=400)


def ask(probing, target, sql):
    done = probing(target, "query", "-f", "json", sql)
    assert done.code == OK, done
    return json.loads(done.out)


@pytest.mark.parametrize("torch", training.TORCHES, ids=repr)
@pytest.mark.parametrize("case", PROGRAMS)
def test_calls_have_the_names_of_modules(probing, torch, case):
    """So that rows of the two tables can be joined."""
    path, code = PROGRAMS[case]
    with Steps(torch, code) as program:
        assert program.step() == "done"
        done = probing(program.pid, "config", "probing.torch.profiling=1")
        assert done.code == OK, done
        for _ in range(4):
            assert program.step() == "done"
        called = {row["module"] for row in ask(
            probing, program.pid, "SELECT module FROM python.torch_trace WHERE stage = 'forward'")}
        there = {row["path"] for row in ask(probing, program.pid, "SELECT path FROM torch.modules")}
    assert called == {path, path + ".inner"} and called <= there, (called, there)


KEEPS = """
def main():
    model, old = Net(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for line in sys.stdin:
        exec("more = 1")
        batch = Batch()
        old.append(weakref.ref(batch))
        model(torch.ones(1, 4)).sum().backward()
        optimizer.step()
        batch = None
        print(len([each for each in old if each()]), locals().get("more"), flush=True)
main()
"""


@pytest.mark.parametrize("torch", training.TORCHES, ids=repr)
@pytest.mark.parametrize("setting", ["probing.torch.profiling=1", "probing.watch=line@main"])
def test_no_variable_is_kept(probing, torch, setting):
    """Up to Python 3.12 reading a frame's variables keeps them alive: a batch would stay until the end."""
    with Steps(torch, KEEPS) as program:
        more = program.step()
        assert probing(program.pid, "config", setting).code == OK
        assert [program.step() for _ in range(5)] == [more] * 5
        table = "python.torch_trace" if "torch" in setting else "python.variables"
        assert ask(probing, program.pid, "SELECT count(*) AS n FROM " + table)[0]["n"] > 0

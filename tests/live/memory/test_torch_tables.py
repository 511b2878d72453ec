# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of torch, and the tensors of `probing memory`, compared with the program's own data."""
import json
import os
import shutil
import subprocess

import pytest

import support
import tables
import training
from test_memory import census


@pytest.fixture(scope="module", params=training.TORCHES, ids=repr)
def resting(request):
    with training.start(request.param) as program:
        assert program.line(timeout=400) == "ready"
        program.truth = training.rest(program)
        yield program


def ask(target, sql):
    done = subprocess.run([support.BINARY, "-t", str(target), "query", "-f", "json", sql],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr.decode()
    return json.loads(done.stdout.decode())


def check_tables(target, truth):
    modules = {row["path"]: row for row in ask(target, "SELECT * FROM torch.modules")}
    assert {path: row["class"].rpartition(".")[2] for path, row in modules.items()} == \
        truth["modules"]
    assert {row["held_in"] for row in modules.values()} == {"train()"}
    assert {row["training"] for row in modules.values()} == {1}
    count = {}
    for name, shape in truth["parameters"].items():
        count[name] = 1
        for size in shape:
            count[name] *= size
    assert modules["model"]["all_parameters"] == sum(count.values())
    assert modules["model"]["all_bytes"] == 4 * sum(count.values())
    assert modules["model"]["parameters"] == 0 and modules["model"]["depth"] == 0
    head = modules["model.head"]
    assert head["parameters"] == count["model.head.weight"] + count["model.head.bias"]
    assert (head["dtype"], head["device"], head["hooks"]) == ("float32", "cpu", 2)
    assert head["parent"] == modules["model"]["address"]

    rows = ask(target, "SELECT * FROM torch.tensors")
    parameters = {row["holder"]: row for row in rows if row["kind"] == "parameter"}
    assert {holder.replace(" in train()", ""): row["shape"]
            for holder, row in parameters.items()} == {
                name: str(tuple(shape)) for name, shape in truth["parameters"].items()}
    assert {row["requires_grad"] for row in parameters.values()} == {1}
    assert [row["holder"] for row in rows if row["kind"] == "buffer"] == ["model.scale in train()"]
    gradients = [row for row in rows if row["kind"] == "gradient"]
    assert {row["holder"] for row in gradients} == set(parameters)
    assert sum(row["bytes"] for row in gradients) == 4 * sum(count.values())
    # A view shares its storage.
    views = ask(target, "SELECT count(*) AS n FROM torch.tensors WHERE shared")
    assert views[0]["n"] == len([row for row in rows if row["shared"]])

    optimizer, = ask(target, "SELECT * FROM torch.optimizers")
    assert optimizer["class"] == "torch.optim.adamw.AdamW"
    assert optimizer["holder"] == "optimizer in train()" and optimizer["lr"] == "0.001"
    assert (optimizer["groups"], optimizer["parameters"]) == (1, len(count))
    assert optimizer["state_bytes"] == truth["state"]


def test_tables(resting):
    check_tables(resting.pid, resting.truth)


@pytest.mark.skipif(not shutil.which("gcore"), reason="gcore is not installed")
def test_tables_of_a_core(resting, tmp_path):
    subprocess.run(["gcore", "-o", tmp_path / "core", str(resting.pid)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    check_tables(tmp_path / ("core.%d" % resting.pid), resting.truth)


def test_memory(probing, resting):
    found = census(probing, resting)
    cpu, = [row for row in found["tensors"] if (row["device"], row["dtype"]) == ("cpu", "float32")]
    own = sum(4 * _product(shape) for shape in resting.truth["parameters"].values())
    # Parameters, their gradients, and two tensors for each in the optimizer.
    assert cpu["bytes"] >= 4 * own and cpu["gradients"] == len(resting.truth["parameters"])
    holders = [row["holder"] for row in found["largest_tensors"]]
    assert "model.embed.weight in train()" in holders
    assert "optimizer.state[model.embed.weight]['exp_avg'] in train()" in holders
    of = {row["type"]: row for row in found["types"]}
    assert of["torch.nn.parameter.Parameter"]["owned"] >= own
    text = probing(str(resting.pid), "memory").out
    assert "\nTensors\n" in text and " in train()\n" in text


def _product(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def test_referrers(resting):
    """Holders of a parameter: its module's dict, and the optimizer."""
    rows = ask(resting.pid, """
        SELECT r.type, r.holder FROM torch.tensors t, python.referrers(t.address) r
        WHERE t.kind = 'parameter' AND t.holder = 'model.head.weight in train()'""")
    holders = {row["holder"]: row["type"] for row in rows}
    assert holders["optimizer.param_groups[0]['params'] in train()"] == "list"
    assert any("head" in holder and holder.endswith("._parameters in train()")
               for holder in holders), holders


def test_referrers_of_nothing(resting):
    row, = ask(resting.pid, "SELECT * FROM python.referrers(4096)")
    assert row["_error"] == "no object was found there" and row["type"] is None


INSIDE = """
import sys, torch
class Inner(torch.nn.Module):
    def forward(self, x):
        print("ready", flush=True)
        sys.stdin.readline()
class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
    def forward(self, x):
        return self.inner(x)
class Trainer:
    def __init__(self):
        self.parts = {"net": Outer()}
    def step(self):
        self.parts["net"](None)
%s
"""
HOLDERS = {
    "a variable of a caller": ("def main():\n    trainer = Trainer()\n    trainer.step()\nmain()",
                               "trainer.parts['net']", "main()"),
    "an object that only its method has": ("Trainer().step()", "self.parts['net']", "Trainer.step()"),
    "nothing else": ("Outer()(None)", "self", None),
}


@pytest.mark.parametrize("torch", training.TORCHES, ids=repr)
@pytest.mark.parametrize("case", HOLDERS)
def test_names_while_a_model_runs(torch, case):
    """Not "self", the name in the model's own methods, while they run."""
    torch.check()
    code, path, place = HOLDERS[case]
    with support.Program([torch.exe, "-c", INSIDE % code], env=dict(os.environ, **torch.env)) as program:
        assert program.line(timeout=400) == "ready"
        rows = ask(program.pid, "SELECT path, held_in FROM torch.modules ORDER BY depth")
    assert [row["path"] for row in rows] == [path, path + ".inner"], rows
    assert {row["held_in"] for row in rows} == {place} or not place, rows


TYPES = """
import json, sys, torch
kept = []
for dtype in sorted({each for each in vars(torch).values() if isinstance(each, torch.dtype)
                     and not str(each).startswith("torch.quint")}, key=str):
    try:
        kept.append(torch.empty(4, dtype=dtype))
    except (RuntimeError, NotImplementedError, TypeError):
        pass
print(json.dumps({str(each.dtype)[6:]: 4 * each.element_size() for each in kept}), flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("torch", training.TORCHES, ids=repr)
def test_types(torch):
    torch.check()
    with support.Program([torch.exe, "-c", TYPES], env=dict(os.environ, **torch.env)) as program:
        truth = json.loads(program.line(timeout=400))
        assert len(truth) > 10
        rows = ask(program.pid, "SELECT dtype, bytes FROM torch.tensors WHERE holder LIKE '%kept[%'")
        assert {row["dtype"]: row["bytes"] for row in rows} == truth


def test_without_torch(target):
    process = target("leaks.py")
    for table in ("modules", "tensors", "optimizers", "processes"):
        answer = tables.query(process.pid, "SELECT * FROM torch." + table)
        assert not answer and any("torch.%s is empty" % table in note for note in answer.notes)


def test_processes(target):
    process = target("leaks.py", env={"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8",
                                      "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"})
    row, = ask(process.pid, "SELECT * FROM torch.processes")
    assert (row["rank"], row["local_rank"], row["world_size"]) == (3, 1, 8)
    assert (row["master"], row["backend"]) == ("10.0.0.1:29500", None)
    assert row["pid"] == process.pid and os.path.exists("/proc/%d" % row["pid"])

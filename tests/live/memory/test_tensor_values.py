# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of tensors on the CPU, read from outside."""
import json
import re

import pytest

import training
from environment import OK

VALUES = {
    "loss": "tensor(0.0234, shape=(), dtype=float32, device='cpu', grad_fn=<AddBackward0>)",
    "acc1": "tensor([71], shape=(1,), dtype=int16, device='cpu')",
    "bad": "tensor([1.0, nan, inf, nan], shape=(4,), dtype=float32, device='cpu', nan=2, inf=1)",
    # What lies in its memory is not what it is.
    "conjugated": "tensor(shape=(1,), dtype=complex64, device='cpu')",
    "empty": "tensor([], shape=(0, 2), dtype=float32, device='cpu')",
    "meta": "tensor(shape=(0,), dtype=float32, device='meta')",
    "leaf": "tensor(2.5, shape=(), dtype=float32, device='cpu')",
    "leaves": "{'leaf': tensor(2.5, shape=(), dtype=float32, device='cpu'), 'weight': Parameter([0.0, 0.0], "
              "shape=(2,), dtype=float32, device='cpu', requires_grad=True)}",
}


@pytest.fixture(scope="module", params=training.TORCHES, ids=repr)
def resting(request):
    with request.param.start("values.py", "resting") as program:
        assert program.line(timeout=400) == "ready"
        yield program


@pytest.mark.parametrize("name", VALUES)
def test_print(probing, resting, name):
    assert probing(str(resting.pid), "print", name).out.strip() == VALUES[name]


def test_nested_tensors_have_no_sizes(probing, resting):
    """Where others have theirs, zeros lie."""
    text = probing(str(resting.pid), "print", "nested").out
    assert "shape" not in text and re.match(r"<torch\.Tensor object at 0x\w+>$", text), text


def test_first_elements(probing, resting):
    text = probing(str(resting.pid), "print", "large").out
    assert text.startswith("tensor([0.0, 1.0, 2.0, ") and "shape=(3000,), dtype=float32, device='cpu')" in text


def test_lengths(probing, resting):
    lengths = {name: probing(str(resting.pid), "print", "len(%s)" % name).out.strip() for name in ("bad", "large", "leaves['weight']", "loss")}
    assert lengths == {"bad": "4", "large": "3000", "leaves['weight']": "2", "loss": ""}  # a number has none


def test_locals(probing, resting):
    text = probing(str(resting.pid), "backtrace", "--locals").out
    for name in ("loss", "acc1", "bad"):
        assert " = " + VALUES[name] + "\n" in text


def test_numbers(probing, resting):
    done = probing(str(resting.pid), "query", "-f", "json",
                   "SELECT name, value, number FROM python.locals WHERE func = 'rest'")
    rows = {row["name"]: row for row in json.loads(done.out)}
    assert {name: rows[name]["value"] for name in VALUES} == VALUES
    assert abs(rows["loss"]["number"] - 0.0234) < 1e-6
    assert rows["acc1"]["number"] == 71 and rows["leaf"]["number"] == 2.5
    assert {rows[name]["number"] for name in ("bad", "large", "conjugated", "nested", "empty", "meta", "leaves")} == {None}


def test_requires_grad(probing, resting):
    """A tensor may have what autograd keeps without needing a gradient."""
    done = probing(str(resting.pid), "query", "-f", "json", "SELECT holder, requires_grad FROM torch.tensors")
    needs = {row["holder"]: row["requires_grad"] for row in json.loads(done.out) if row["holder"]}
    assert needs["leaf in rest()"] != 1 and needs["weight in train()"] == 1


def test_snapshot(probing, resting, tmp_path):
    path = tmp_path / "values.snapshot"
    assert probing(str(resting.pid), "snapshot", "-o", path).code == OK
    done = probing(path, "query", "-f", "json", "SELECT name, value FROM python.locals WHERE func = 'rest'")
    rows = {row["name"]: row["value"] for row in json.loads(done.out)}
    assert {name: rows[name] for name in VALUES} == VALUES


def test_moving(probing):
    """A loss and what was computed from it are of one step, whenever both are there."""
    training.check()
    with training.SYSTEM.start("values.py", "moving") as program:
        assert program.line(timeout=400) == "ready"
        seen = set()
        while len(seen) < 3:
            done = probing(str(program.pid), "query", "-f", "json",
                           "SELECT name, number FROM python.locals WHERE func = 'train' AND name IN ('loss', 'step')")
            rows = {row["name"]: row["number"] for row in json.loads(done.out)}
            # 0.5 in each of 4 elements, by the step's number, which may be one further.
            if rows.get("loss") is not None:
                assert rows["loss"] / 2 in (rows["step"], rows["step"] - 1)
                seen.add(rows["loss"])

# SPDX-License-Identifier: GPL-3.0-or-later
"""probing.torch.nan: the first module with NaN in its output, and since when the loss is none."""
import json

import pytest

import training
from environment import OK, wait_until


@pytest.fixture(params=training.TORCHES, ids=repr)
def torch(request):
    return request.param


class Odd:
    """programs/training/odd.py, with its first steps checked."""

    def __init__(self, torch, probing, mode, *settings):
        self.program, self.probing, self.settings = torch.start("odd.py", mode), probing, settings

    def __enter__(self):
        self.program.__enter__()
        assert self.program.line(timeout=400) == "ready"
        for setting in self.settings:
            done = self.probing(self.program.pid, "config", setting)
            assert done.code == OK, done
        return self

    def __exit__(self, *what):
        return self.program.__exit__(*what)

    def query(self, sql):
        done = self.probing(self.program.pid, "query", "-f", "json", sql)
        return json.loads(done.out) if done.code == OK else []

    def plant(self):
        """The step in which it happens; six more have ended."""
        self.program.send(b"10\n")
        step = int(self.program.line(timeout=100))
        wait_until(lambda: (self.query("SELECT max(step) AS last FROM python.torch_step_timing") or
                            [{"last": 0}])[0]["last"] > step + 6)
        return step

    def finding(self):
        done = self.probing(self.program.pid, "why", "--json")
        [target] = json.loads(done.out)["targets"]
        found = [each for each in target["findings"] if each["rule"] == "nan"]
        return found[0] if found else None


def test_the_module(probing, torch):
    with Odd(torch, probing, "module", "torch.nan=on", "torch.profiling=1") as odd:
        step = odd.plant()
        rows = odd.query("SELECT * FROM python.torch_nan WHERE step = %d ORDER BY rowid" % step)
        first = rows[0]
        assert (first["kind"], first["module"], first["class"]) == ("output", "model.root", "Root"), rows
        assert first["nan"] == first["elements"] == 32 and not first["inf"] and not first["inputs_odd"]
        assert first["inputs"].startswith("float32(4, 8): ") and first["parameters"] is None
        assert [row["module"] for row in rows[1:3]] == ["model.last", "model"] and rows[1]["inputs_odd"] == 1
        assert rows[-1]["kind"] == "loss" and rows[-1]["nan"] == 1
        finding = odd.finding()
        assert finding["sentence"] == (
            "the loss is no finite number since step %d; the first module with NaN in its output was "
            "`model.root`" % step), finding
        assert finding["confidence"] == "high"
        assert "its inputs were finite; its own parameters were finite" in json.dumps(finding["evidence"])
        done = probing(odd.program.pid, "perf", "--torch", "-d", "1s")
        assert done.code == OK and done.out.startswith(finding["sentence"] + "\n  evidence: model.root: Root at"), done


def test_the_batch(probing, torch):
    with Odd(torch, probing, "batch", "torch.nan=on", "torch.profiling=1") as odd:
        step = odd.plant()
        assert odd.finding()["sentence"] == (
            "the loss is no finite number since step %d; the first module with NaN in its output was "
            "`model.first`, which got it with its input" % step)


def test_steps_that_were_not_timed(probing, torch):
    """The steps after the loss are checked. Where it came from is not known any more, and nothing is guessed."""
    with Odd(torch, probing, "module", "torch.nan=on", "torch.profiling=0.000001") as odd:
        step = odd.plant()
        wait_until(lambda: odd.query("SELECT 1 FROM python.torch_nan WHERE kind = 'output'"))
        sentence = odd.finding()["sentence"]
        assert sentence.startswith("the loss is no finite number since step %d; parameters were none at" % step), sentence


def test_a_loss_that_recovers(probing, torch):
    with Odd(torch, probing, "scaler", "torch.nan=on", "torch.profiling=1") as odd:
        step = odd.plant()
        losses = odd.query("SELECT step, nan + inf AS odd FROM python.torch_nan WHERE kind = 'loss'")
        assert losses == [{"step": step, "odd": 1}, {"step": step + 1, "odd": 0}]
        assert odd.finding() is None


def test_nothing_changes(probing, torch):
    """A training that is fine has no rows, and ends with the same parameters to the last bit."""
    ends = []
    for settings in (["torch.nan=on", "torch.profiling=1"], []):
        with Odd(torch, probing, "fine", *settings) as odd:
            if settings:
                wait_until(lambda: odd.query("SELECT count(*) AS n FROM python.torch_step_timing")[0]["n"] > 50)
                assert not odd.query("SELECT * FROM python.torch_nan") and odd.finding() is None
                assert probing(odd.program.pid, "config", "torch.nan=off").code == OK
            odd.program.send(b"stop\n")
            ends.append(odd.program.line(timeout=100).split())
    assert ends[0] == ends[1] and ends[0][0] != "nan"

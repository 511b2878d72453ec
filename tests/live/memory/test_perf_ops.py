# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing perf --torch --ops`: torch's own profiler for a few steps, and that nothing of it stays."""
import json
import signal
import subprocess

import pytest

import support
import training
from environment import FAILED, OK, TIMEOUT, UNSUPPORTED, wait_until

MODULES = {"training.model", "training.model.blocks", "training.model.conv",
           *("training.model.blocks.%d%s" % (i, each) for i in (0, 1) for each in ("", ".up", ".down"))}


class Watchful:
    """programs/training/watchful.py, which trains."""

    def __init__(self, torch, *mode):
        self.program = torch.start("watchful.py", *mode)

    def __enter__(self):
        self.program.__enter__()
        assert self.program.line(timeout=400) == "ready"
        self.pid = self.program.pid
        return self

    def __exit__(self, *what):
        return self.program.__exit__(*what)

    def ask(self, word):
        self.program.send(word.encode() + b"\n")
        return json.loads(self.program.line(timeout=200))


@pytest.fixture(scope="module")
def kineto():
    found = training.with_kineto()
    found.check()
    return found


@pytest.fixture(scope="module")
def shared(kineto):
    with Watchful(kineto) as program:
        yield program


def record(probing, program, *options):
    done = probing(program.pid, "perf", "--torch", "--ops", "--json", *options)
    assert done.code == OK, done
    return json.loads(done.out)


def test_without_kineto(probing):
    """Debian's torch has none; what torch says of itself is what counts."""
    if training.has_kineto(training.SYSTEM):
        pytest.skip("torch of this machine has Kineto")
    with Watchful(training.SYSTEM) as program:
        assert probing(program.pid, "inject", "--bare").code == OK
        before = program.ask("look")
        done = probing(program.pid, "perf", "--torch", "--ops")
        assert done.code == UNSUPPORTED and "was built without Kineto" in done.err, done
        assert program.ask("look") == before


def test_operators(probing, shared):
    truth = shared.ask("profile")
    found = record(probing, shared, "--steps", "2")
    assert len(found["steps_ms"]) == 2 and not found["events_left_out"] and not found["note"]
    assert 0 < found["in_no_operator_ms"] < found["duration_ms"] <= sum(found["steps_ms"]) * 1.01
    calls = {}
    for each in found["operators"]:
        calls[each["name"]] = calls.get(each["name"], 0) + each["calls"]
    for name in ("aten::addmm", "aten::relu", "aten::convolution", "AddmmBackward0", "aten::mean"):
        assert calls[name] == 2 * truth[name], (name, calls[name], truth[name])
    by_place = {(each["name"], each["module"], each["part"]): each for each in found["operators"]}
    up = by_place["aten::addmm", "training.model.blocks.0.up", "forward"]
    assert up["calls"] == 2 and up["class"] == "Linear" and up["flops"] == 2 * 2 * 16 * 48 * 96
    assert json.loads(up["shapes"]) == [[96], [16, 48], [48, 96], [], []]
    lines = (training.PROGRAMS / "training" / "watchful.py").read_text().split("\n")
    assert "self.up(x)" in lines[up["lineno"] - 1] and up["file"].endswith("watchful.py"), up
    conv = by_place["aten::convolution", "training.model.conv", "forward"]
    assert conv["flops"] == 2 * 2 * 16 * 2 * 1 * 9 * 6 * 8, conv
    # What autograd does belongs to the module that it is the backward of.
    back = by_place["AddmmBackward0", "training.model.blocks.1.down", "backward"]
    assert back["calls"] == 2, back
    assert any(each["part"] == "optimizer" for each in found["operators"])
    assert {each["module"] for each in found["operators"] if each["module"]} <= MODULES
    # All time of operators is somebody's own.
    inside = sum(each["self_ms"] for each in found["operators"])
    assert abs(inside + found["in_no_operator_ms"] - found["duration_ms"]) < 0.02 * found["duration_ms"]


def test_text_and_file(probing, shared, tmp_path):
    done = probing(shared.pid, "perf", "--torch", "--ops")
    assert done.code == OK, done
    assert "3 steps of " in done.out and "in no operator" in done.out
    assert "forward of training.model" in done.out and "backward of training.model" in done.out
    assert "cost: a recorded step took " in done.out
    path = tmp_path / "x.trace.json"
    done = probing(shared.pid, "perf", "--torch", "--ops", "--steps", "1", "-o", path)
    assert done.code == OK and "for https://ui.perfetto.dev" in done.out, done
    events = json.loads(path.read_text())["traceEvents"]
    names = {each.get("name") for each in events}
    assert "aten::addmm" in names
    assert any(name and name.startswith("module training.model.blocks.0.up: Linear (") for name in names)


def test_tables(probing, shared):
    record(probing, shared, "--steps", "1")

    def ask(sql):
        done = probing(shared.pid, "query", "-f", "json", sql)
        assert done.code == OK, done
        return json.loads(done.out)

    last = "WHERE step = (SELECT max(step) FROM torch.ops)"
    rows = ask("SELECT * FROM torch.ops " + last)
    (up,) = [row for row in rows if row["name"] == "aten::addmm"
             and row["module"] == "training.model.blocks.0.up"]
    assert up["part"] == "forward" and up["class"] == "Linear" and up["flops"] == 2 * 16 * 48 * 96
    assert 0 < up["self"] <= up["duration"] and up["time_offset"] > 0 and up["lineno"] > 0
    (above,) = [row for row in rows if row["op"] < up["op"] and row["name"] == "aten::linear"
                and row["module"] == up["module"]]
    assert above["depth"] == up["depth"] - 1 and above["duration"] >= up["duration"]
    done = probing(shared.pid, "query", "SELECT * FROM torch.kernels")
    assert done.code == OK or "perf --torch --ops" in done.err, done


def test_nothing_stays(probing, kineto):
    """Functions, hooks, warnings, files, output, memory and speed are as before, and losses to the last bit."""
    with Watchful(kineto) as program:
        record(probing, program)  # the first one initializes Kineto, which torch does once
        before, size = program.ask("look"), program.ask("times")["resident"]
        for _ in range(support.count(4, 40)):
            record(probing, program)
        wait_until(lambda: program.ask("look") == before)  # the agent closes a client's socket a bit later
        assert not any(before["hooks"]) and not any(before["enabled"]) and not before["shared"]
        assert program.ask("times")["resident"] - size < 24 << 20
        losses = program.ask("losses")["losses"]
        with Watchful(kineto) as other:
            wait_until(lambda: other.ask("count") >= len(losses), 300)
            alone = other.ask("losses")["losses"]
            assert alone[:len(losses)] == losses


def test_the_program_profiles_itself(probing, kineto):
    """It finds no profiler of ours in its way, and is not disturbed; or it is told which one runs."""
    with Watchful(kineto, "own") as program:
        for _ in range(3):
            done = probing(program.pid, "perf", "--torch", "--ops", "--duration", "5s")
            assert done.code == UNSUPPORTED, done
            assert "torch.profiler" in done.err, done
        assert program.ask("look")["enabled"] == [False, False]


def test_children_have_no_profiler(probing, kineto):
    with Watchful(kineto, "fork") as program:
        while True:
            done = probing(program.pid, "perf", "--torch", "--ops", "--json", "--steps", "5")
            if done.code == OK:
                break
            assert "the program started a process, before a step was over" in done.err, done
        found = json.loads(done.out)
        assert found["note"] == "it ended early: the program started a process" and 0 < len(found["steps_ms"]) < 5, found
        assert set(program.ask("losses")["children"]) == {"0"}
        assert all(program.ask("look")["functions"])


def test_a_training_that_has_ended(probing, kineto):
    with Watchful(kineto, "idle") as program:
        while len(program.ask("losses")["losses"]) < 5:
            pass
        done = probing(program.pid, "perf", "--torch", "--ops", "--duration", "1s")
        assert done.code == UNSUPPORTED and "no optimizer made a step" in done.err, done
        state = program.ask("look")
        assert all(state["functions"]) and not any(state["hooks"]) and not any(state["enabled"])


def test_modules_that_raise(probing, kineto):
    with Watchful(kineto, "raise") as program:
        found = record(probing, program, "--steps", "4")
        modules = {each["module"] for each in found["operators"]}
        assert "training.model.blocks.1.up" in modules and modules - {None} <= MODULES, modules
        # What comes after an exception is not within the module that it has left.
        assert all(each["part"] != "forward" for each in found["operators"] if each["name"] == "aten::_foreach_add_")


def test_another_thread(probing, kineto):
    with Watchful(kineto, "thread") as program:
        found = record(probing, program)
        assert any(each["module"] for each in found["operators"])


def test_hooks_of_the_program(probing, kineto):
    """Torch iterates over hooks while it calls them: ours come and go between steps."""
    with Watchful(kineto, "hook") as program:
        for _ in range(5):
            record(probing, program, "--steps", "1")
            done = probing(program.pid, "perf", "--torch", "--exact", "--steps", "1")
            assert done.code == OK, done
        assert program.ask("look")["hooks"][2:] == [0, 1]


def test_interrupted(probing, shared):
    """Ctrl-C shows the steps that there are."""
    with subprocess.Popen([support.BINARY, str(shared.pid), "perf", "--torch", "--ops", "--steps", "100", "--json"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_until(lambda: shared.ask("look")["enabled"][0] or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=100)
    if process.returncode == OK:  # else it came before the first step was over
        assert json.loads(out)["steps_ms"]
    else:
        assert process.returncode in (UNSUPPORTED, FAILED, TIMEOUT), (out, err)
    assert not any(shared.ask("look")["enabled"])


@pytest.mark.parametrize("options, words", [
    (["--ops"], "--ops is not for sampling a process"),
    (["--torch", "--ops", "--exact"], "--exact is not for '--torch --ops'"),
    (["--torch", "--ops", "-o", "x.html"], "operators cannot be written as html"),
    (["--torch", "--ops", "--steps", "1000"], "at most 100 steps"),
])
def test_usage(probing, target, options, words):
    process = target("leaks.py")
    done = probing(str(process.pid), "perf", *options)
    assert done.code == 2 and words in done.err, done

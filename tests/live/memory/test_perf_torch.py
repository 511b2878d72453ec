# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing perf --torch`: shares of modules and parts of the step, compared with the program's own
clocks."""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess

import pytest

import support
import training
from environment import UNSUPPORTED


@pytest.fixture(params=training.TORCHES, ids=repr)
def program(request):
    with training.start(request.param) as process:
        assert process.line(timeout=400) == "ready"
        yield process


def shares(found):
    """By path, or the name of a part of the step; a module that is called in several places sums."""
    total = {}
    for node in found["nodes"]:
        name = node["path"] or node["name"]
        total[name] = total.get(name, 0) + node["share"]
    return total


def measured(process, *options):
    """The command's result for some steps, and the program's own measurement of the same time."""
    process.send(b"begin\n")
    assert process.line(timeout=100) == "begun"
    done = subprocess.run(
        [support.BINARY, str(process.pid), "perf", "--torch", "--json", *options],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=500,
        check=False)
    process.send(b"end\n")
    truth = json.loads(process.line(timeout=100))
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout.decode()), truth


def test_shares(program):
    steps = support.count(200, 3000)
    found, truth = measured(program, "--steps", str(steps), "--rate", "500", "--mode", "cpu")
    assert found["steps_exact"] and steps <= found["steps"] <= truth["steps"]
    assert not found["unknown_ns"] and found["mode"] == "cpu"
    seen = shares(found)
    assert 0.9 < seen["forward"] + seen["backward"] + seen["optimizer"] + seen.get("other", 0) < 1.01
    # The program's clocks ran a bit longer, over steps that are all alike.
    bounds = {node["path"] or node["name"]: node for node in found["nodes"]}
    for name, seconds in truth["total"].items():
        share = seconds / truth["seconds"]
        # One that is short may be in none of few samples. Beside others that need the processors,
        # the program and the command both run in slices, and many samples tell no more than one.
        if share < 0.02 or share * found["independent_samples"] < 10:
            continue
        assert name in bounds, (name, share, found["independent_samples"], found["nodes"])
        # Twice the 95 % bounds, which one value in twenty exceeds by chance.
        least, most = (2 * bounds[name]["share_" + which] - bounds[name]["share"] for which in ("low", "high"))
        assert least - 0.03 <= share <= most + 0.03, (name, share, bounds[name])
    # Each is below its caller.
    nodes = found["nodes"]
    for node in nodes:
        if node["path"] and node["path"].startswith("model.layers."):
            above = nodes[node["parent"]]["path"]
            assert node["path"].startswith(above + "."), (node, above)
    assert nodes[0]["name"] == "forward" and nodes[1]["path"] == "model"
    paths = [node["path"] for node in nodes if node["path"]]
    assert paths.index("model.head") > paths.index("model.layers.1")
    assert bounds["model.layers.1.attn"]["class"] == "MultiheadAttention"


@pytest.fixture(params=training.TORCHES, ids=repr)
def ranks(request):
    """Two, of which the first waits for its data loader and for the other one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(request.param.start("parts.py", env=dict(
            MASTER_ADDR="127.0.0.1", MASTER_PORT=port, RANK=each, WORLD_SIZE="2"))) for each in "01"]
        assert found[0].line(timeout=400) == "ready"
        yield found


def test_data_loading_and_communication(ranks):
    rank = ranks[0]
    found, (seconds, data, communication) = measured(rank, "-d", "%ds" % support.count(3, 30), "-r", "200")
    nodes = {node["name"]: node for node in found["nodes"]}
    assert len(nodes) == len(found["nodes"])
    # Both wait, so other programs that need the processors take little from them; the program's clocks
    # run longer than the samples, over steps that are not quite alike on a busy machine.
    for name, true in ("data loading", data / seconds), ("communication", communication / seconds):
        assert nodes[name]["share_low"] - 0.1 <= true <= nodes[name]["share_high"] + 0.1, (
            nodes[name], true, found["nodes"])
        assert nodes[name]["share"] > 0.1
    assert all(node["samples"] > 0 for node in found["nodes"])
    # With --exact, the hooks tell both: the calls of the backend are its own, not waits in C++ within backward.
    found, (seconds, data, communication) = measured(rank, "--exact", "--steps", "10")
    assert found["data_loader"]
    assert abs(data / seconds - found["data_ms"] / found["duration_ms"]) < 0.1
    assert abs(communication / seconds - found["communication_ms"] / found["duration_ms"]) < 0.1


def test_a_step_that_does_not_end(ranks):
    """Nothing runs but the wait for the other rank, which is stopped."""
    os.kill(ranks[1].pid, signal.SIGSTOP)
    for _ in range(20):
        found = json.loads(subprocess.run(
            [support.BINARY, str(ranks[0].pid), "perf", "--torch", "--json", "-d", "1s"],
            stdout=subprocess.PIPE, check=True, timeout=100).stdout)
        if found["nodes"][0]["share"] == 1:
            break
    assert [node["name"] for node in found["nodes"]] == ["communication"] and not found["steps"], found


def sampled(probing, process, *options, until, path=None):
    """The output, printed or in a file, once the samples have these texts: in some steps of a fast
    program, on a busy machine, too few samples hit small parts of a step."""
    for steps in (20, 40, 80, 160, 320, 640):
        done = probing(str(process.pid), "perf", "--torch", "--steps", steps, "-r", "200", *options)
        assert done.code == 0, done
        text = path.read_text() if path else done.out
        if all(re.search(each, text) for each in until):
            return text
    raise AssertionError((until, text))


def test_text_and_files(probing, program, tmp_path):
    text = sampled(probing, program, until=["s {6}layers.0: Block\n", "s  backward\n"])
    assert " steps of " in text and "at least" not in text
    lines = [line.rpartition("s  ")[2] for line in text.split("\n")]
    assert lines.index("forward") + 1 == lines.index("  model: Transformer")
    path = tmp_path / "x.collapsed"
    stacks = sampled(probing, program, "-o", path, path=path, until=[
        "forward;model: Transformer;model.layers.0: Block;", "backward;"])
    assert "_call_impl" not in stacks
    sampled(probing, program, "--cc", until=["\n.*s    AddmmBackward0\n"])
    path = tmp_path / "x.html"
    sampled(probing, program, "-o", path, path=path, until=["model: Transformer"])


def test_no_module(probing, target):
    process = target("leaks.py")
    done = probing(str(process.pid), "perf", "--torch", "-d", "50ms")
    assert done.code == 1 and "no module of torch ran" in done.err


@pytest.mark.parametrize("options, words", [
    (["--steps", "3"], "--steps is not for sampling a process"),
    (["--torch", "--lines"], "--lines is not for --torch"),
    (["--torch", "-o", "x.profile"], "--torch is not for '-o FILE.profile'"),
])
def test_usage(probing, target, options, words):
    process = target("leaks.py")
    done = probing(str(process.pid), "perf", *options)
    assert done.code == 2 and words in done.err


def test_recording(probing, target, tmp_path):
    process = target("leaks.py")
    path = tmp_path / "x.profile"
    assert probing(str(process.pid), "perf", "-d", "50ms", "-o", path).code == 0
    done = probing(str(path), "perf", "--torch")
    assert done.code == 3 and "--torch needs a process that runs; this is a recording" in done.err


PLAIN = """
import torch
model = torch.nn.Linear(10, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
print("ready", flush=True)
while True:
    optimizer.zero_grad()
    model(torch.ones(5, 10)).sum().backward()
    optimizer.step()
"""


def test_steps_that_nobody_counts(probing):
    """Plain SGD counts no steps: that is said, rather than to wait for them for ever."""
    training.check()
    with support.Program([training.PYTHON, "-c", PLAIN]) as process:
        assert process.line(timeout=100) == "ready"
        done = probing(process.pid, "perf", "--torch", "--steps", "3")
        assert done.code == UNSUPPORTED and "--steps cannot end" in done.err, done
        done = probing(process.pid, "perf", "--torch", "--steps", "3", "-d", "200ms")
        assert "--steps cannot end" not in done.err, done

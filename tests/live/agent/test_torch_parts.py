# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of steps in which no module is hooked, beside clocks in the program."""
import json
import subprocess

import pytest

import support
import training
from launched_job import free_port

SHORT = ["closure", "lbfgs", "evaluation", "saves"]
LONG = SHORT + ["plain", "sgd", "trainer", "decorated", "checkpointing", "reentrant", "accumulation", "gan",
                "models", "ema", "hidden", "amp", "loader"]
PARTS = {"forward": "forward", "backward": "backward", "optimizer": "optimizer", "data loading": "data",
         "evaluation (no gradient)": "evaluation", "checkpoint": "checkpoint"}
UNSAMPLED = "FROM python.torch_step_timing WHERE kind = 'unsampled' AND timestamp - duration / 1e3 > %f"
# Of the program, what was wrapped.
LEFT = ("import gc, torch; from torch.utils.data.dataloader import _BaseDataLoaderIter as i; "
        "[f.__code__.co_filename for f in (torch.save, torch.autograd.backward, i.__next__, "
        "getattr(torch, 'compile', torch.save)) if 'agent' in f.__code__.co_filename], "
        "[k.__name__ for k in gc.get_objects() if isinstance(k, type) and "
        "type(vars(k).get('__call__')).__name__ == 'RootCall']")


@pytest.fixture(params=training.TORCHES, ids=repr)
def torch(request):
    return request.param


def run(process, *options):
    done = subprocess.run([support.BINARY, str(process.pid), *options], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=500, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def query(process, sql):
    return json.loads(run(process, "query", "-f", "json", sql))


def wait_for_steps(process, since, count):
    while query(process, "SELECT count(*) AS n " + UNSAMPLED % since)[0]["n"] < count:
        pass


def start_recording(process):
    """Until outermost modules are known."""
    assert process.line(timeout=400) == "ready"
    run(process, "inject")
    wait_for_steps(process, 0, 1)


def clocked(process, count):
    """Steps, and the parts that the program was in meanwhile."""
    process.send(b"begin\n")
    assert process.line(timeout=100) == "begun"
    since = query(process, "SELECT now() AS now")[0]["now"]
    wait_for_steps(process, since, count)
    steps = query(process, "SELECT * " + UNSAMPLED % since)
    process.send(b"end\n")
    return steps, json.loads(process.line(timeout=100))


def during(times, step):
    """Milliseconds in each part."""
    total, last = {}, step["timestamp"]
    for name, begin, end in times:
        passed = min(end, last) - max(begin, last - step["duration"] / 1e3)
        if passed > 0:
            total[name] = total.get(name, 0) + 1e3 * passed
    return total


@pytest.mark.parametrize("kind", LONG if support.LONG else SHORT)
def test_every_step_has_its_parts(torch, kind):
    with torch.start("kinds.py", kind) as process:
        start_recording(process)
        steps, times = clocked(process, support.count(9, 200))
        for step in steps:
            assert all(step[part] >= 0 for part in PARTS.values()), step
            assert sum(step[part] for part in PARTS.values()) + step["communication"] <= step["duration"] + 0.01, step
        whole, truth = sum(step["duration"] for step in steps), {}
        for step in steps:
            for name, passed in during(times, step).items():
                truth[name] = truth.get(name, 0) + passed / whole
        for name, part in PARTS.items():
            ours = sum(step[part] for step in steps) / whole
            assert ours == pytest.approx(truth.get(name, 0), abs=0.03), (name, ours, truth)
        # Not on average only: a step that evaluates, or saves, is that one.
        for name in ("evaluation (no gradient)", "checkpoint"):
            for step in steps if name in truth else []:
                share = during(times, step).get(name, 0) / step["duration"]
                assert abs(step[PARTS[name]] / step["duration"] - share) < 0.1 + 5 / step["duration"], (step, share)
        run(process, "config", "probing.torch.profiling=off")
        assert run(process, "eval", LEFT) == "([], [])\n"


def test_what_slow_steps_waited_for(torch):
    """As the cookbook asks for it."""
    with torch.start("kinds.py", "saves") as process:
        start_recording(process)
        wait_for_steps(process, 0, 6)
        found = query(process, "SELECT * FROM python.torch_step_timing WHERE kind = 'unsampled'")
    saved = [step["step"] for step in found if step["checkpoint"] > 0]
    # Every third one, which begins at the end of a step; some steps between may be sampled.
    assert saved and len({step % 3 for step in saved}) == 1, saved
    assert all(step["forward"] > 0 and step["data"] > 0 for step in found)


def test_nothing_of_ours_where_torch_compiles(torch):
    with torch.start("kinds.py", "plain") as process:
        start_recording(process)
        assert "'Model'" in run(process, "eval", LEFT)
        if run(process, "eval", "import torch; hasattr(torch, 'compile')") == "False\n":
            return  # torch 1.13
        # Where a model is compiled, its class is as it was.
        run(process, "eval", "(torch.compile(torch.nn.Linear(1, 1), backend='eager'), None)[1]")
        assert run(process, "eval", LEFT).endswith(", [])\n")
        since = query(process, "SELECT now() AS now")[0]["now"]
        wait_for_steps(process, since, 3)
        steps = query(process, "SELECT * " + UNSAMPLED % since)
    # The first one may have begun before.
    assert all(step["forward"] is None and step["backward"] is None and step["data"] > 0 for step in steps[1:]), steps


def test_what_is_only_kept_from_the_compiler(torch):
    """As DDP does it with its own functions: nothing is compiled then."""
    # torch 1.13 has no compiler.
    keep = ("import sys, types, torch; torch._dynamo.disable(print) and None if hasattr(torch, 'compile') else "
            "sys.modules.update({'torch._dynamo.eval_frame': types.SimpleNamespace(cached_backends={1: None})})")
    with torch.start("kinds.py", "plain") as process:
        assert process.line(timeout=400) == "ready"
        run(process, "eval", keep)
        assert run(process, "eval", "None in sys.modules['torch._dynamo.eval_frame'].cached_backends.values()") == "True\n"
        run(process, "config", "probing.torch.profiling=0.5")
        # Every other one is timed, and shows the outermost modules.
        wait_for_steps(process, 0, 16)
        step = query(process, "SELECT * " + UNSAMPLED % 0)[-1]
    assert step["forward"] > 0 and step["backward"] > 0 and step["optimizer"] > 0, step


def test_communication(torch):
    """What a rank waits for in operations that the program calls."""
    env = dict(MASTER_ADDR="127.0.0.1", WORLD_SIZE="2", MASTER_PORT=str(free_port()))
    with torch.start("parts.py", env=dict(env, RANK="0")) as rank, torch.start("parts.py", env=dict(env, RANK="1")):
        start_recording(rank)
        wait_for_steps(rank, 0, 5)
        steps = query(rank, "SELECT * FROM python.torch_step_timing WHERE kind = 'unsampled'")
    # The other one is 50 ms late each time, of which 20 ms are waited for here in the data loader.
    whole = sum(step["duration"] for step in steps)
    assert sum(step["data"] for step in steps) > 0.2 * whole
    assert sum(step["communication"] for step in steps) > 0.2 * whole


def test_communication_of_timed_steps(torch):
    """`perf --torch --exact` has it as a part of its own, and leaves no operation wrapped."""
    env = dict(MASTER_ADDR="127.0.0.1", WORLD_SIZE="2", MASTER_PORT=str(free_port()))
    wrapped = "import torch; type(torch._C._distributed_c10d.ProcessGroup.allreduce).__name__"
    with torch.start("parts.py", env=dict(env, RANK="0")) as rank, torch.start("parts.py", env=dict(env, RANK="1")):
        assert rank.line(timeout=400) == "ready"
        before = run(rank, "eval", wrapped)
        found = json.loads(run(rank, "perf", "--torch", "--exact", "--json", "--steps", "5"))
        assert run(rank, "eval", wrapped) == before
    parts = [found[each + "_ms"] for each in ("data", "forward", "evaluation", "backward", "optimizer", "communication", "other")]
    # On a busy machine computing takes longer, too.
    assert found["communication_ms"] > 0.05 * found["duration_ms"] and min(parts) >= 0, found
    assert sum(parts) == pytest.approx(found["duration_ms"])

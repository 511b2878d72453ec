# SPDX-License-Identifier: GPL-3.0-or-later
"""Times of the GPU in sampled steps, with a stand-in for CUDA's driver; memory/test_gpu_training.py has
the real one."""
import json
import shutil
import subprocess

import pytest

import support
from environment import OK, PROGRAMS
from test_torch_steps import ALL, Training, rows, running, set_share, steps  # noqa: F401 (fixtures)

GIGABYTE = 1 << 30
# As if torch were using a GPU.
PRETEND = """
import ctypes, torch
cuda = ctypes.CDLL(%r)
torch.cuda.is_initialized = lambda: True
torch.cuda.is_current_stream_capturing = lambda: False
torch.cuda.memory_stats_as_nested_dict = lambda: {
    "allocated_bytes": {"all": {"current": 1 << 30 | value("recorded"), "peak": 1 << 31}},
    "reserved_bytes": {"all": {"current": 1 << 32}}}
torch._C._cuda_getDevice = lambda: 0
torch._C._cuda_getCurrentRawStream = lambda device: 0x5000
def value(name): return ctypes.c_long.in_dll(cuda, name).value
def put(name, number): ctypes.c_int.in_dll(cuda, name).value = number
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    if not shutil.which("cc"):
        pytest.skip("no compiler for the sample")
    path = tmp_path_factory.mktemp("cuda") / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", path,
                    PROGRAMS / "cuda_driver.c"], check=True)
    return path


@pytest.fixture
def on_gpu(probing, driver, steps):  # noqa: F811
    """Its torch believes that it uses a GPU. It is always the same process, so this is done once."""
    if probing(steps.pid, "eval", "value('faults')").code != OK:
        done = probing(steps.pid, "eval", PRETEND % str(driver))
        assert done.code == OK, done
    put(probing, steps, capturing=0, fails=0)
    return steps


def value(probing, process, name):
    done = probing(process.pid, "eval", "value(%r)" % name)
    assert done.code == OK, done
    return int(done.out)


def put(probing, process, **numbers):
    done = probing(process.pid, "eval", "; ".join("put(%r, %d)" % each for each in numbers.items()))
    assert done.code == OK, done


def off(probing, process):
    """Nothing that was made for it is left, and nothing was done that a driver would not forgive."""
    set_share(probing, process, "torch.profiling=off")
    assert value(probing, process, "created") == value(probing, process, "destroyed")
    assert value(probing, process, "faults") == 0


def test_rows(probing, on_gpu):
    set_share(probing, on_gpu, ALL)
    on_gpu.do("run 12")
    calls = {(row["local_step"], row["seq"], row["stage"]): row for row in rows(
        probing, on_gpu, "SELECT * FROM python.torch_trace WHERE stage != 'data'")}
    found = rows(probing, on_gpu, "SELECT * FROM python.torch_gpu")
    first, last = min(calls)[0], max(calls)[0]
    # Those of the last steps are still to come.
    assert {row["local_step"] for row in found} >= set(range(first, last - 4))
    assert {row["stage"] for row in found} == {"forward", "recompute", "backward", "optimizer", "step"}
    whole = {row["local_step"]: row["duration"] for row in found if row["stage"] == "step"}
    of = {}
    for row in found:
        if row["stage"] == "step":
            continue
        call = calls[row["local_step"], row["seq"], row["stage"]]
        assert (row["module"], row["step"]) == (call["class"] and call["module"], call["step"])
        # This stand-in's clock is the same, and its events are around the hooks' measurements.
        assert row["duration"] * 1.0001 >= call["duration"], (row, call)
        assert row["duration"] <= whole.get(row["local_step"], row["duration"]) * 1.0001, row
        of.setdefault(row["local_step"], set()).add((row["seq"], row["stage"]))
    # Of each call of a step that is long over there is a time.
    for local in range(first, last - 4):
        assert of[local] == {key[1:] for key in calls if key[0] == local}
    assert all(row["allocated_delta"] > 0 for row in calls.values() if row["stage"] == "forward" and
               row["depth"] == 0)
    off(probing, on_gpu)


def test_exact(probing, on_gpu):
    on_gpu.go()
    done = probing(on_gpu.pid, "perf", "--torch", "--exact", "--json", "--steps", "5")
    assert done.code == OK, done
    found = json.loads(done.out)
    # Including those of the last step.
    assert found["steps"] == found["gpu_steps"] == 5
    assert found["gpu_ms"] > found["gpu_optimizer_ms"] > 0
    for node in found["nodes"]:
        assert node["gpu_forward_ms"] * 1.0001 >= node["forward_ms"] + node["recompute_ms"]
        assert node["gpu_backward_ms"] * 1.0001 >= node["backward_ms"] and node["gpu_bytes"] >= 0
    text = probing(on_gpu.pid, "perf", "--torch", "--exact", "--steps", "2")
    assert text.code == OK and " · GPU " in text.out, text
    head, = [line for line in text.out.split("\n") if line.endswith("module")]
    assert head.split() == ["share", "per", "step", "forward", "backward", "self", "GPU", "memory", "calls",
                            "module"]
    for line in text.out.split("\n"):
        if line.endswith("net.rnn: GRUCell") or line.endswith("  rnn: GRUCell"):
            assert len(line.rpartition("  ")[0]) - len("  ") * line.count("  rnn") > 60
    on_gpu.stop()
    off(probing, on_gpu)


def test_nothing_is_recorded_in_a_graph(probing, on_gpu):
    set_share(probing, on_gpu, ALL)
    on_gpu.do("run 6")
    put(probing, on_gpu, capturing=1)
    before = value(probing, on_gpu, "recorded")
    on_gpu.do("run 5")
    assert value(probing, on_gpu, "recorded") == before
    put(probing, on_gpu, capturing=0)
    on_gpu.do("run 5")
    assert value(probing, on_gpu, "recorded") > before
    off(probing, on_gpu)


def test_a_driver_that_refuses(probing, on_gpu):
    put(probing, on_gpu, fails=1)
    set_share(probing, on_gpu, ALL)
    on_gpu.do("run 5")
    assert rows(probing, on_gpu, "SELECT count(*) AS n FROM python.torch_trace")[0]["n"] > 50
    put(probing, on_gpu, fails=0)
    off(probing, on_gpu)


def test_events_of_calls_that_raise_come_back(probing, on_gpu):
    """As many as were needed for the first steps are enough for all later ones."""
    set_share(probing, on_gpu, ALL)
    made = []
    for _ in range(2):
        for _ in range(support.count(15, 1000)):
            on_gpu.do("raise")
            on_gpu.do("run 1")
        made.append(value(probing, on_gpu, "created"))
    assert made[1] - made[0] <= 16, made
    off(probing, on_gpu)

# SPDX-License-Identifier: GPL-3.0-or-later
"""A training on a real GPU: its modules from outside and by hooks, beside torch's own figures.

Run on machines that have an NVIDIA GPU and a Python with torch (this one, or $PROBING_TORCH_PYTHON).
"""
import json
import os
import subprocess
import time

import pytest

import support
from agent import wait_until
from environment import OK, PROGRAMS, UNSUPPORTED
from test_gpu import PYTHON, trains_here

SIZE = int(os.environ.get("PROBING_GPU_SIZE", "16"))
FEW = 0.03  # difference of two tools for a duration
SHORT = 200  # µs: of less on the GPU, what an event itself takes is a part that counts
pytestmark = pytest.mark.skipif(not trains_here(), reason="no NVIDIA GPU with torch here")


class Training:
    """programs/training/gpu.py."""

    def __init__(self):
        self.program = support.Program([PYTHON, PROGRAMS / "training" / "gpu.py", "cuda", SIZE],
                                       env=dict(os.environ, PYTHONUNBUFFERED="1"))
        self.pid = self.program.pid
        assert self.program.line(timeout=300) == "ready"

    def do(self, line):
        self.program.send(line.encode() + b"\n")
        return json.loads(self.program.line(timeout=300))

    def go(self):
        self.program.send(b"go\n")

    def stop(self):
        assert self.do("") == []
        return json.loads(self.program.line(timeout=300))


@pytest.fixture(scope="module")
def training():
    found = Training()
    with found.program:
        yield found


@pytest.fixture
def going(training):
    training.go()
    yield training
    training.stop()


def ask(target, sql):
    done = subprocess.run([support.BINARY, "-t", str(target), "query", "-f", "json", sql],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=300, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr.decode()
    return json.loads(done.stdout.decode())


def exact(probing, pid, steps=20):
    done = probing(pid, "perf", "--torch", "--exact", "--json", "--steps", str(steps))
    assert done.code == OK, done
    return json.loads(done.out)


def test_from_outside(probing, going):
    done = probing(going.pid, "perf", "--torch", "--cc", "--json", "--steps", "100")
    assert done.code == OK, done
    found = json.loads(done.out)
    assert found["steps_exact"] and found["steps"] >= 100 and not found["unknown_ns"]
    names = {(node["path"] or node["name"]).replace("trainer.", "") for node in found["nodes"]}
    assert {"forward", "backward", "optimizer", "model", "model.layers.0", "model.layers.1.mlp.0"} <= names
    # These are run by a thread of autograd's own.
    assert any(name.startswith("AddmmBackward") for name in names), names


def check_tables(target, truth):
    modules = {row["path"]: row for row in ask(target, "SELECT * FROM torch.modules")}
    trained = {path.partition(".")[2]: row for path, row in modules.items()
               if path.startswith("trainer.")}
    assert {path: row["class"].rpartition(".")[2] for path, row in trained.items()} == truth["modules"]
    assert {row["device"] for row in trained.values()} == {"cuda:0", None}
    rows = ask(target, "SELECT * FROM torch.tensors")
    parameters = {row["holder"]: row for row in rows if row["kind"] == "parameter"}
    assert {holder.replace("trainer.", "").partition(" in ")[0]: row["shape"]
            for holder, row in parameters.items()} == {
                name: str(tuple(shape)) for name, shape in truth["parameters"].items()}
    assert {row["device"] for row in parameters.values()} == {"cuda:0"}
    gradients = [row for row in rows if row["kind"] == "gradient"]
    assert {row["device"] for row in gradients} == {"cuda:0"}
    assert sum(row["bytes"] for row in gradients) == sum(row["bytes"] for row in parameters.values())
    # A view of one parameter shares its storage.
    view, = [row for row in rows if row["holder"].partition(" in ")[0] == "trainer.view"]
    head = [row for name, row in parameters.items() if ".head.weight" in name][0]
    assert view["storage"] == head["storage"] and view["shared"] + head["shared"] == 1, (view, head)
    optimizer, = ask(target, "SELECT * FROM torch.optimizers")
    assert optimizer["class"].endswith("AdamW") and optimizer["state_bytes"] == truth["state"]


def test_tables(training):
    check_tables(training.pid, training.do("rest"))


def test_tables_of_a_snapshot(probing, training, tmp_path):
    path = tmp_path / "x.snapshot"
    done = probing(training.pid, "snapshot", "--heap", "-o", path)
    assert done.code == OK, done
    check_tables(path, training.do("rest"))


def test_memory(probing, training):
    parts, (allocated, reserved) = training.do("rest"), training.do("memory")
    found = json.loads(probing(training.pid, "memory", "--json").out)
    kept = [row for row in found["interpreters"][0]["tensors"] if row["device"] == "cuda"]
    own = sum(4 * support_product(shape) for shape in parts["parameters"].values())
    assert 2 * own < sum(row["bytes"] for row in kept) <= allocated <= reserved
    assert {row["device_index"] for row in kept} == {0}
    gpu, = found["gpus"]
    assert found["gpu_error"] is None and reserved < gpu["bytes"] <= gpu["used"] < gpu["total"]
    text = probing(training.pid, "memory").out
    assert "  cuda:0  float32" in text and "\n  GPU 0, NVIDIA" in text
    print(text)


def support_product(shape):
    count = 1
    for size in shape:
        count *= size
    return count


def test_gpu_times(probing, going):
    """Each module's time on the GPU, beside torch.profiler's."""
    found = exact(probing, going.pid, 30)
    assert found["gpu_steps"] >= 30, found
    going.stop()
    truth = going.do("profile 10")
    going.go()
    steps, compared = found["gpu_steps"], []
    for node in found["nodes"]:
        span, kernels = truth[node["path"].replace("trainer.", "")]
        ours = node["gpu_forward_ms"] * 1e3 / steps
        compared.append((node["path"], ours, span, kernels))
    compared.append(("optimizer", found["gpu_optimizer_ms"] * 1e3 / steps, *truth["optimizer"]))
    compared.append(("step", found["gpu_ms"] * 1e3 / steps, *truth["step"]))
    backward = [node for node in found["nodes"] if node["parent"] is None][0]
    compared.append(("backward", backward["gpu_backward_ms"] * 1e3 / steps, *truth["backward"]))
    for row in compared:
        print("%-36s %10.1f µs by events, %10.1f ranges, %10.1f kernels" % row)
    for name, ours, span, kernels in compared:
        if span > SHORT and name != "backward":
            assert min(abs(ours / span - 1), abs(ours / kernels - 1)) < FEW, (name, ours, span, kernels)


def mean_step(probing, pid, share):
    """Milliseconds: the program runs ahead of the GPU, so single steps are meaningless."""
    begin = time.time()
    assert probing(pid, "config", "torch.profiling=" + share).code == OK
    rows = "FROM python.torch_step_timing WHERE timestamp > %f" % begin
    wait_until(lambda: ask(pid, "SELECT count(*) AS n " + rows)[0]["n"] > 300, 200)
    return ask(pid, "SELECT avg(duration) AS ms " + rows)[0]["ms"]


def test_what_it_costs(probing, going):
    """With a busy GPU, nothing but the agent's events and the calls that they replace."""
    found = [mean_step(probing, going.pid, share) for share in ("0.000001", "0.1", "0.000001")]
    print(found)
    assert found[1] < 1.1 * max(found[0], found[2])
    assert probing(going.pid, "config", "torch.profiling=off").code == OK


def test_overhead(probing, going):
    """By the run itself, at the default rate: Python is late in a sampled step, and catches up."""
    assert probing(going.pid, "config", "torch.profiling=on").code == OK

    def of():
        return {row["kind"]: row for row in ask(going.pid, "SELECT * FROM torch.overhead")}
    wait_until(lambda: of().get("sampled", {}).get("pairs", 0) >= 6, 200)
    found = of()
    assert probing(going.pid, "config", "torch.profiling=off").code == OK
    print(found)
    assert found["all"]["overhead"] < 1 and found["unsampled"]["overhead"] < 0.5, found


def test_losses_to_the_last_bit(probing, training):
    found = []
    for share in ("off", "1", "0.5"):
        training.do("anew")
        assert probing(training.pid, "config", "torch.profiling=" + share).code == OK
        found.append(training.do("run 30"))
    assert probing(training.pid, "config", "torch.profiling=off").code == OK
    assert found[0] == found[1] == found[2]


def test_nothing_while_a_graph_is_captured(probing, training):
    assert probing(training.pid, "config", "torch.profiling=1").code == OK
    training.do("run 5")
    assert training.do("capture") is True
    training.do("run 5")
    assert probing(training.pid, "config", "torch.profiling=off").code == OK
    # Calls before and after it have times of the GPU; calls in the graph have none.
    step, = ask(training.pid, """
        SELECT c.step, count(*) AS calls, count(g.duration) AS timed FROM python.torch_calls c
        LEFT JOIN python.torch_gpu g ON g.local_step = c.local_step AND g.seq = c.seq AND g.stage = c.stage
        WHERE c.stage = 'forward' AND c.module LIKE '%.head' GROUP BY c.local_step HAVING count(*) > 1
        ORDER BY c.local_step DESC LIMIT 1""")
    assert step["calls"] == 4 and step["timed"] == 3, step


def test_compiled(probing):
    found = Training()
    with found.program:
        found.do("compile")
        found.go()
        done = probing(found.pid, "perf", "--torch", "--exact")
        assert done.code == UNSUPPORTED and "torch.compile is used" in done.err, done
        done = probing(found.pid, "perf", "--torch", "--steps", "50")
        assert done.code == OK, done
        found.stop()


def test_metrics(going):
    """Over time, compared with nvidia-smi at the same moments."""
    def busy():
        rows = ask(going.pid, "SELECT * FROM gpu_metrics WHERE gpu = 0 ORDER BY timestamp")
        return len(rows) > 10 and min(row["gpu_util"] for row in rows[-10:]) > 50 and rows
    rows = wait_until(busy, 60) or busy()
    rows = ask(going.pid, "SELECT * FROM gpu_metrics WHERE gpu = 0 ORDER BY timestamp")
    said = subprocess.run(["nvidia-smi", "--query-gpu=utilization.gpu,memory.used,power.draw,temperature.gpu",
                           "--format=csv,noheader,nounits"], stdout=subprocess.PIPE, check=True)
    use, memory, power, temperature = map(float, said.stdout.decode().splitlines()[0].split(", "))
    last = rows[-1]
    print(last, use, memory, power, temperature)
    # A share of the last moments, which are other ones; memory may have been freed meanwhile.
    assert last["gpu_util"] > 30 and use > 30, (last, use)
    assert abs(last["memory_used"] / 2 ** 20 - memory) < 512
    assert abs(last["temperature"] - temperature) < 15
    if last["power"] is not None:
        assert abs(last["power"] / power - 1) < 0.5


def test_dump(going):
    """Threads of CUDA have no Python frames, but their own."""
    found = support.dump(going.pid, "--native")
    natives = {frame["func"] for thread in found["threads"] for frame in thread["frames"]
               if frame["kind"] != "python"}
    assert any(thread["os_name"].startswith("cuda") for thread in found["threads"]), found["threads"]
    assert {"poll", "__poll", "ppoll"} & natives or natives, natives

# SPDX-License-Identifier: GPL-3.0-or-later
"""A real GPU: its tables, and a training that is dumped, paused and evaluated in.

Run on machines that have an NVIDIA GPU and a Python with torch (this one, or $PROBING_TORCH_PYTHON).
"""
import os
import shutil
import subprocess
import sys

import pytest

import support
import tables
from agent import wait_until
from pauses import Pause

PYTHON = os.environ.get("PROBING_TORCH_PYTHON", sys.executable)
TRAINS = support.HERE / "programs" / "trains.py"
ROUNDS = support.count(10, 100)
STEPS = 5000


def trains_here():
    code = "import torch; raise SystemExit(not torch.cuda.is_available())"
    return os.path.exists("/dev/nvidiactl") and shutil.which("nvidia-smi") and not subprocess.run(
        [PYTHON, "-c", code], stderr=subprocess.DEVNULL, check=False).returncode


pytestmark = pytest.mark.skipif(not trains_here(), reason="no NVIDIA GPU with torch here")


def driver_says(kind, *fields):
    """Rows of nvidia-smi: a dict by field; missing values are None."""
    done = subprocess.run(
        ["nvidia-smi", "--query-%s=%s" % (kind, ",".join(fields)), "--format=csv,noheader,nounits"],
        stdout=subprocess.PIPE, check=True)
    return [{field: None if cell.startswith("[") else cell
             for field, cell in zip(fields, line.split(", "))}
            for line in done.stdout.decode().splitlines()]


def training(steps=1):
    program = support.Program([PYTHON, TRAINS, steps], env=dict(
        os.environ, CUBLAS_WORKSPACE_CONFIG=":4096:8", PYTHONUNBUFFERED="1"))
    assert program.line(timeout=300) == "ready"
    return program


@pytest.fixture(name="process", scope="module")
def process_fixture():
    with training() as program:
        yield program


def query(sql):
    answer = tables.query(None, sql)
    assert answer.notes == [], answer.notes
    return answer


def test_devices():
    said = driver_says("gpu", "index", "name", "uuid", "pci.bus_id", "compute_cap", "memory.total",
                       "driver_version", "enforced.power.limit")
    rows = query("SELECT * FROM gpu.devices ORDER BY gpu")
    assert len(rows) == len(said) > 0
    for row, truth in zip(rows, said):
        assert row["_error"] is None, row
        assert str(row["gpu"]) == truth["index"]
        assert (row["name"], row["uuid"]) == (truth["name"], truth["uuid"])
        assert row["pci"] == truth["pci.bus_id"]
        assert row["compute_capability"] == truth["compute_cap"]
        assert row["memory_total"] // 2 ** 20 == int(truth["memory.total"])
        assert row["driver_version"] == truth["driver_version"]
        assert row["power_limit"] == float(truth["enforced.power.limit"])
        assert os.path.exists("/dev/nvidia%d" % row["minor"])


def test_utilization(process):
    def works():
        row, = query("SELECT * FROM gpu.utilization WHERE gpu = 0")
        assert row["_error"] is None, row
        return row["gpu_util"] > 0 and row
    wait_until(works, 60)
    row = works() or query("SELECT * FROM gpu.utilization WHERE gpu = 0")[0]
    truth = driver_says("gpu", "memory.total", "memory.used", "temperature.gpu", "clocks.mem")[0]
    assert process.alive()
    assert row["memory_total"] // 2 ** 20 == int(truth["memory.total"])
    # Only one of the two counts the driver's own share.
    assert abs(row["memory_used"] // 2 ** 20 - int(truth["memory.used"])) < 1024
    assert row["memory_used"] + row["memory_free"] <= row["memory_total"]
    assert abs(row["temperature"] - int(truth["temperature.gpu"])) < 15
    assert row["memory_clock"] == int(truth["clocks.mem"])
    assert 0 < row["power"] < 1500 and row["sm_clock"] > 0


def test_processes(process):
    said = {(int(each["pid"]), each["used_memory"])
            for each in driver_says("compute-apps", "pid", "used_memory")}
    rows = query("SELECT * FROM gpu.processes WHERE gpu = 0")
    assert process.alive()
    assert {(row["pid"], None if row["memory_used"] is None else str(row["memory_used"] // 2 ** 20))
            for row in rows} == said


def test_stacks(process):
    """Over some dumps: each stack is in the program's own lines, with torch's frames below them."""
    lines = TRAINS.read_text().splitlines()
    natives = set()
    for _ in range(ROUNDS):
        dump = support.dump(process.pid, "--native", "--locals")
        named = {thread["name"]: thread for thread in dump["threads"]}
        frames = support.python_frames(named["MainThread"])
        assert frames[-1]["func"] == "<module>", frames
        own = [frame for frame in frames if frame["file"] == str(TRAINS)]
        assert own, frames
        for frame in own:
            assert frame["func"] in ("<module>", "train_step"), frame
            assert lines[frame["line"] - 1].strip(), frame
        assert support.python_frames(named["watchdog"])[0]["func"] == "watch"
        natives |= {frame["func"] for frame in named["MainThread"]["frames"]
                    if frame["kind"] != "python"}
        # Those that run the backward pass on the GPU's behalf have no Python frames.
        assert any(thread["os_name"].startswith("pt_autograd") for thread in dump["threads"]), named
    assert any("torch" in name or "THP" in name or "at::" in name for name in natives), natives


def test_eval_and_pause(process, probing):
    done = probing(process.pid, "eval", "--timeout", "30s", "torch.cuda.memory_allocated()")
    assert done.code == 0 and int(done.out) > 4096 * 512 * 4 * 2, done
    with Pause(process.pid) as pause:
        before = probing(process.pid, "eval", "len(losses)").out
        rows = tables.query(process.pid, "SELECT func FROM python.backtrace")
        assert rows and rows[-1]["func"] == "<module>", rows
        name = probing(process.pid, "eval", "next(model.parameters()).device.type")
        assert name.code == 0 and name.out == "'cuda'\n", name
        total = probing(process.pid, "eval", "float(wanted.sum()) == float(wanted.sum())")
        assert total.code == 0 and total.out == "True\n", total
        assert probing(process.pid, "eval", "len(losses)").out == before
        assert pause.interrupt()["reason"] == "interrupted"

    def goes_on():
        return int(probing(process.pid, "eval", "len(losses)").out) > int(before)
    wait_until(goes_on, 60)


def test_training_learns_the_same(probing):
    """Dumps, evaluations, pauses and an agent that is loaded and ejected change no bit of its results."""
    with training(STEPS) as alone:
        alone.send(b"\n")
        expected = alone.line(timeout=600)
    with training(STEPS) as watched:
        for _ in range(ROUNDS):
            support.dump(watched.pid, "--native")
            done = probing(watched.pid, "eval", "len(losses)")
            assert done.code == 0, done
            with Pause(watched.pid) as pause:
                pause.interrupt()
            done = probing(watched.pid, "eject")
            assert done.code == 0, done
        watched.send(b"\n")
        assert watched.line(timeout=600) == expected

# SPDX-License-Identifier: GPL-3.0-or-later
"""Torch steps timed by the agent's hooks: their rows, their side effects, and their removal."""
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

import support
import training
from environment import FAILED, OK, PROGRAMS, UNSUPPORTED, USAGE

PACKAGE = Path(__file__).resolve().parents[3] / "package"
AGENT = Path(support.BINARY).with_name("libprobing-agent.so")
ALL = "probing.torch.profiling=1"


class Training:
    """programs/training/steps.py."""

    def __init__(self, torch):
        self.program = torch.start("steps.py")

    def __enter__(self):
        self.program.__enter__()
        assert self.program.line(timeout=400) == "ready"
        self.pid, self.since = self.program.pid, 0
        return self

    def __exit__(self, *what):
        return self.program.__exit__(*what)

    def do(self, line):
        self.program.send(line.encode() + b"\n")
        return json.loads(self.program.line(timeout=200))

    def go(self):
        self.program.send(b"go\n")

    def stop(self):
        assert self.do("") == []
        return json.loads(self.program.line(timeout=200))


@pytest.fixture(scope="module", params=training.TORCHES, ids=repr)
def running(request):
    with Training(request.param) as found:
        yield found


@pytest.fixture
def steps(running, probing):
    """A process that has made one step. Importing torch takes long, so all tests share the process."""
    if probing(running.pid, "agent").code == OK:
        set_share(probing, running, "torch.profiling=off")
    running.do("anew")
    running.since = time.time()
    return running


def set_share(probing, process, value):
    done = probing(process.pid, "config", value)
    assert done.code == OK, done
    return done.out


def rows(probing, process, sql):
    """Those since the test began."""
    sql = re.sub(r"python\.torch_\w+", lambda name: "(SELECT * FROM %s WHERE timestamp > %f)" % (
        name.group(), process.since) if process.since else name.group(), sql)
    done = probing(process.pid, "query", "-f", "json", sql)
    assert done.code == OK, done
    return json.loads(done.out)


def test_rows(probing, steps):
    assert "steps of torch are timed" in set_share(probing, steps, ALL)
    steps.do("run 4")
    timing = rows(probing, steps, "SELECT * FROM python.torch_step_timing ORDER BY local_step")
    # The second step begins at the end of the first; the program had made one before.
    assert [row["kind"] for row in timing] == ["discovery", "sampled", "sampled"]
    assert [row["step"] for row in timing] == [3, 4, 5]
    assert [row["local_step"] - timing[0]["local_step"] for row in timing] == [0, 1, 2]
    for row in timing:
        parts = row["data"] + row["forward"] + row["backward"] + row["optimizer"]
        assert 0 < parts < row["duration"] and row["micro_steps"] == 1
    trace = rows(probing, steps, "SELECT * FROM python.torch_trace WHERE step = 4 ORDER BY seq")
    forward = [row for row in trace if row["stage"] == "forward"]
    assert [row["module"] for row in forward[:6]] == [
        "trainer.net", "trainer.net.embed", "trainer.net.blocks.0", "trainer.net.blocks.0.inner",
        "trainer.net.blocks.0.inner.0", "trainer.net.blocks.0.inner.1"]
    assert [row["class"] for row in forward[:4]] == ["Model", "Embedding", "Block", "Sequential"]
    by_seq = {row["seq"]: row for row in forward}
    for row in forward[1:]:
        above = by_seq[row["parent"]]
        assert row["depth"] == above["depth"] + 1
        assert above["time_offset"] <= row["time_offset"]
        assert row["module"].startswith(above["module"] + ".")
    # Our own functions are left out of durations and offsets, so they add up, and calls nest.
    for seq, row in by_seq.items():
        inner = [each for each in forward if each["parent"] == seq]
        assert sum(each["duration"] for each in inner) <= row["duration"] + 0.001, row
        end = row["time_offset"]
        for each in inner:
            assert end <= each["time_offset"] + 1e-6, (row, each)
            end = each["time_offset"] + each["duration"]
        assert end <= row["time_offset"] + row["duration"] + 1e-6, row
    count = {}
    for row in trace:
        count[row["module"], row["stage"]] = count.get((row["module"], row["stage"]), 0) + 1
    # One block is called twice; the cell three times; the checkpointed block is run again.
    assert count["trainer.net.blocks.0", "forward"] == 2 and count["trainer.net.blocks.1", "forward"] == 1
    assert count["trainer.net.rnn", "forward"] == 3 and count["trainer.net.rnn", "backward"] == 3
    assert count["trainer.net.kept", "forward"] == count["trainer.net.kept", "recompute"] == 1
    for name in ("trainer.net", "trainer.net.embed", "trainer.net.blocks.0", "trainer.net.blocks.1.inner",
                 "trainer.net.head"):
        assert count[name, "backward"] == count[name, "forward"], name
    assert count["Adam", "optimizer"] == count["data", "data"] == 1
    assert all(row["allocated"] > 1 << 20 for row in forward)


@pytest.fixture(params=training.TORCHES, ids=repr)
def fresh(request):
    with Training(request.param) as found:
        yield found


def test_queries_as_typed(probing, fresh):
    steps = fresh
    set_share(probing, steps, ALL)
    steps.do("run 130")
    some, memory, peaks, frequent, slow = [rows(probing, steps, sql) for sql in training.TYPED]
    assert len(some) == 10 and some[0]["module"] == "trainer.net.embed" and some[0]["step"] == 3
    assert len(memory) == 10 and all(row["step"] > 100 and row["total_memory_mb"] > 1 << 20
                                     for row in memory)
    assert max(row["operation_count"] for row in memory) >= 6
    assert [row["step"] for row in peaks] == list(range(111, 132))
    assert all(row["avg_memory"] <= row["peak_memory"] for row in peaks)
    assert len(frequent) == 10 and {row["frequency"] for row in frequent} <= {6, 12, 18}
    assert slow[0]["operation_name"] == "trainer.net" and slow[0]["call_count"] == 2 * 129


def test_losses_to_the_last_bit(probing, steps):
    found = []
    for share in ("0", "0.5", "1"):
        steps.do("anew")
        set_share(probing, steps, "probing.torch.profiling=" + share)
        losses = steps.do("run %d" % support.count(30, 3000)) + steps.do("accumulate 5")
        set_share(probing, steps, "probing.torch.profiling=off")
        found.append(losses + steps.do("run 5"))
    assert len(found[0]) == support.count(50, 3020) and found[0] == found[1] == found[2]


def test_gradient_accumulation(probing, steps):
    set_share(probing, steps, ALL)
    steps.do("accumulate 4")
    assert rows(probing, steps, "SELECT micro_steps FROM python.torch_step_timing") == \
        [{"micro_steps": 3}] * 3
    found = rows(probing, steps, "SELECT micro_step, stage FROM python.torch_trace WHERE step = 4 "
                 "AND module = 'trainer.net' ORDER BY timestamp")
    assert [(row["micro_step"], row["stage"]) for row in found] == [
        (number, stage) for number in (1, 2, 3) for stage in ("forward", "backward")]


def test_a_module_that_raises(probing, steps):
    set_share(probing, steps, ALL)
    steps.do("run 3")
    assert steps.do("raise") == "broken"
    steps.do("run 2")
    found = rows(probing, steps, "SELECT step, seq, depth, parent FROM python.torch_trace "
                 "WHERE module = 'trainer.net' AND stage = 'forward'")
    assert [(row["depth"], row["parent"]) for row in found] == [(0, None)] * 4
    # Of the call left by an exception, the ended parts are there, and the next call is not within it.
    found = rows(probing, steps, "SELECT depth, count(*) AS count FROM python.torch_trace WHERE step = 5 "
                 "AND stage = 'forward' AND module LIKE '%.inner' GROUP BY depth")
    assert [(row["depth"], row["count"]) for row in found] == [(2, 2 + 4)]


HOOKS = ("import torch.nn.modules.module as m; "
         "len(m._global_forward_pre_hooks), len(m._global_forward_hooks)")


def test_nothing_stays(probing, steps):
    set_share(probing, steps, ALL)
    steps.do("run 3")
    assert probing(steps.pid, "eval", HOOKS).out == "(1, 1)\n"
    assert "no steps of torch are timed" in set_share(probing, steps, "torch.profiling=off")
    assert probing(steps.pid, "eval", HOOKS).out == "(0, 0)\n"
    code = "import torch; torch.optim.Adam.step.__closure__[0].cell_contents.__code__.co_name, " \
           "torch.optim.Adam.step.__closure__[0].cell_contents.__code__.co_filename"
    assert "'<probing agent>'" not in probing(steps.pid, "eval", code).out
    before = rows(probing, steps, "SELECT count(*) AS n FROM python.torch_step_timing")
    steps.do("run 3")
    assert rows(probing, steps, "SELECT count(*) AS n FROM python.torch_step_timing") == before
    set_share(probing, steps, ALL)
    steps.do("run 3")
    done = probing(steps.pid, "eject")
    assert done.code == OK and "unmapped" in done.out, done
    assert len(steps.do("run 3")) == 3


def test_overhead(probing, steps):
    """Compared within the run: steps beside each other are alike but for the hooks."""
    set_share(probing, steps, "torch.profiling=0.3")
    steps.do("run 200")
    set_share(probing, steps, "torch.profiling=off")
    steps.since = 0
    found = {row["kind"]: row for row in rows(probing, steps, "SELECT * FROM torch.overhead")}
    assert list(found) == ["sampled", "unsampled", "hook-free", "all"]
    assert found["sampled"]["steps"] >= 30 and found["sampled"]["pairs"] >= 20
    assert found["sampled"]["overhead_low"] <= found["sampled"]["overhead"] <= \
        found["sampled"]["overhead_high"]
    assert 0 < found["unsampled"]["own"] < found["sampled"]["own"]
    assert found["hook-free"]["duration"] < found["unsampled"]["duration"]
    assert found["all"]["steps"] == found["sampled"]["steps"] + found["unsampled"]["steps"]


def test_watched_expressions(probing, steps):
    told = set_share(probing, steps, "watch=losses@step,len(self.net.blocks),loss,nothing@step")
    assert "steps of torch are watched" in told
    losses = steps.do("run 3")
    found = rows(probing, steps, "SELECT * FROM python.variables WHERE step = 4 AND timestamp > %f"
                 % steps.since)
    assert [(row["name"], row["function"], row["type"]) for row in found] == [
        ("losses@step", "step", "list"), ("len(self.net.blocks)", "step", "int"),
        ("nothing@step", "step", "NameError")]
    assert found[0]["value"] == repr(losses[2:3]) and found[0]["number"] is None
    set_share(probing, steps, "watch=count")
    steps.do("run 2")
    found = rows(probing, steps, "SELECT number, value, function FROM python.variables WHERE name = "
                 "'count'")
    assert [tuple(row.values()) for row in found] == [(1.0, "1", "step")] * 2
    assert rows(probing, steps, "SELECT kind FROM python.torch_step_timing")
    assert "no steps of torch are timed" in set_share(probing, steps, "watch=")


def test_another_model_and_optimizer(probing, steps):
    set_share(probing, steps, ALL)
    steps.do("run 3")
    steps.do("anew")
    steps.do("other 8")
    # Its optimizer is another one, which counts from the beginning; the one beside it counts no steps.
    found = rows(probing, steps, "SELECT step, kind FROM python.torch_step_timing ORDER BY local_step")
    numbers = [row["step"] for row in found]
    assert numbers[:2] == [3, 4] and numbers[-1] <= 8
    assert numbers[2:] == list(range(numbers[2], numbers[2] + len(numbers) - 2)) and len(numbers) > 5
    found = rows(probing, steps, "SELECT DISTINCT module FROM python.torch_trace WHERE depth = 0 AND "
                 "stage = 'forward'")
    assert found == [{"module": "trainer.net"}]


def test_ranks_choose_the_same_steps(probing, steps):
    chosen = []
    for first in (1, 8):
        steps.do("anew")
        steps.since = time.time()
        steps.do("run %d" % first)
        set_share(probing, steps, "probing.torch.profiling=0.3")
        steps.do("run %d" % (80 - first))
        set_share(probing, steps, "probing.torch.profiling=off")
        chosen.append({row["step"] for row in rows(
            probing, steps, "SELECT step FROM python.torch_step_timing WHERE kind != 'unsampled' "
            "AND step > 15")})
    assert chosen[0] == chosen[1] and 5 < len(chosen[0]) < 40


def test_exact(probing, steps):
    steps.go()
    done = probing(steps.pid, "perf", "--torch", "--exact", "--json", "--steps", "5")
    assert done.code == OK, done
    found = json.loads(done.out)
    assert found["steps"] == 5 and found["passes"] == 5
    nodes = found["nodes"]
    assert (nodes[0]["path"], nodes[0]["class"], nodes[0]["parent"]) == ("trainer.net", "Model", None)
    by_path = {node["path"]: node for node in nodes}
    assert by_path["trainer.net.rnn"]["calls"] == 15 and by_path["trainer.net.blocks.0"]["calls"] == 10
    for node in nodes:
        below = [each for each in nodes if each["parent"] == nodes.index(node)]
        # Of a module that is not called again itself, called modules are called again in backward.
        again = [each["recompute_ms"] for each in below if node["recompute_ms"]]
        assert node["self_forward_ms"] == pytest.approx(
            node["forward_ms"] + node["recompute_ms"] - sum(each["forward_ms"] for each in below) - sum(again), abs=1e-4)
    assert found["forward_ms"] == pytest.approx(nodes[0]["forward_ms"], abs=1e-4)
    parts = sum(found[part + "_ms"] for part in ("data", "forward", "backward", "optimizer", "other"))
    assert found["duration_ms"] == pytest.approx(parts, abs=1e-3) and found["other_ms"] > 0
    assert 0 < found["agent_median_ms"] < found["timed_median_ms"]
    text = probing(steps.pid, "perf", "--torch", "--exact", "--steps", "3")
    assert text.code == OK, text
    lines = [line.rpartition("  ")[2] for line in text.out.split("\n")]
    assert "trainer.net: Model" in lines and "optimizer" in lines and "other" in lines
    assert re.search(r" 3 steps timed, \d+ between them · median ", text.out)
    assert "cost: a timed step took" in text.out
    assert probing(steps.pid, "eval", HOOKS).out == "(0, 0)\n"
    steps.stop()


def slices(events):
    """Those of a trace that are in the others, as pairs; none overlaps with another one."""
    inside, stack = [], []
    for event in sorted((each for each in events if each["ph"] == "X"),
                        key=lambda each: (each["ts"], -each["dur"])):
        while stack and stack[-1]["ts"] + stack[-1]["dur"] <= event["ts"] + 0.0005:
            stack.pop()
        if stack:
            assert event["ts"] + event["dur"] <= stack[-1]["ts"] + stack[-1]["dur"] + 0.0005
        inside.append((stack[-1]["name"] if stack else None, event["name"], event["dur"]))
        stack.append(event)
    return inside


def test_exact_files(probing, steps, tmp_path):
    steps.go()
    path = tmp_path / "x.trace.json"
    done = probing(steps.pid, "perf", "--torch", "--exact", "--json", "--steps", "3", "-o", path)
    assert done.code == OK, done
    found, trace = json.loads(done.out), json.loads(path.read_text())
    inside = slices(trace["traceEvents"])
    pairs = {(above, name) for above, name, _ in inside}
    assert {("forward", "trainer.net: Model"), ("backward", "trainer.net: Model"),
            ("trainer.net: Model", "trainer.net.rnn: GRUCell"),
            ("trainer.net.blocks.0: Block", "trainer.net.blocks.0.inner: Sequential")} <= pairs
    # The timed parts cover all of the time once.
    parts = {part: sum(length for above, name, length in inside if above is None and name == part)
             for part in ("forward", "backward", "optimizer", "data loading", "other")}
    assert sum(parts.values()) / 1e3 == pytest.approx(found["duration_ms"], rel=0.01)
    assert parts["forward"] / 1e3 == pytest.approx(found["forward_ms"], rel=0.01)
    assert parts["optimizer"] / 1e3 == pytest.approx(found["optimizer_ms"], rel=0.01)
    for ending, words in ((".collapsed", "forward;trainer.net: Model;trainer.net.rnn: GRUCell "),
                          (".html", "trainer.net.rnn: GRUCell")):
        path = tmp_path / ("x" + ending)
        done = probing(steps.pid, "perf", "--torch", "--exact", "--steps", "2", "-o", path)
        assert done.code == OK and words in path.read_text(), done
    steps.stop()


def exact(steps, *options):
    return subprocess.Popen([support.BINARY, str(steps.pid), "perf", "--torch", "--exact", *options],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_two_at_once(steps):
    """Each client gets its steps, also when another one is done before."""
    steps.go()
    running = [exact(steps, "--json", "--steps", str(count)) for count in (3, 30, 30)]
    found = [json.loads(each.communicate(timeout=300)[0]) for each in running]
    # The steps requested by others are in the rows too.
    assert [each["steps"] >= count for each, count in zip(found, (3, 30, 30))] == [True] * 3, found
    steps.stop()


def test_a_process_that_stands_still(steps, probing):
    """Ctrl-C ends the command also if the process does not end the sampling."""
    steps.go()
    since = time.time()
    with exact(steps, "--steps", "1000000", "-d", "3600s") as command:
        try:
            # Before the agent is loaded, there are no rows and no table.
            while "forward" not in probing(steps.pid, "query", "-f", "csv", "SELECT stage FROM "
                                           "python.torch_calls WHERE timestamp > %f LIMIT 1" % since).out:
                assert command.poll() is None
            os.kill(steps.pid, signal.SIGSTOP)
            while command.poll() is None:
                command.send_signal(signal.SIGINT)
                time.sleep(0.02)
        finally:
            os.kill(steps.pid, signal.SIGCONT)
            command.kill()
    steps.stop()


HOSTILE = """
import ctypes, re, time
class Cell(ctypes.Structure):
    class Value(ctypes.Union):
        _fields_ = [("integer", ctypes.c_int64), ("real", ctypes.c_double), ("text", ctypes.c_char_p)]
    _anonymous_ = ("value",)
    _fields_ = [("kind", ctypes.c_uint32), ("length", ctypes.c_uint32), ("value", Value)]
path = re.search(r"/\\S+libprobing-agent.so", open("/proc/self/maps").read()).group()
agent = ctypes.PyDLL(path)
agent.probing_ring_create.restype = ctypes.c_ssize_t
agent.probing_ring_create.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64]
agent.probing_ring_append.argtypes = [ctypes.c_ssize_t, ctypes.c_int64, ctypes.c_void_p]
def number(value): return Cell(1, 0, Cell.Value(integer=value))
def real(value): return Cell(2, 0, Cell.Value(real=value))
def text(value): return Cell(3, len(value), Cell.Value(text=value))
later = time.time_ns() + 600 * 10**9
calls = agent.probing_ring_create(b"python.torch_calls", CALLS, 8 << 20)
steps = agent.probing_ring_create(b"python.torch_step_timing", STEPS, 2 << 20)
gpu = agent.probing_ring_create(b"python.torch_gpu", GPU, 2 << 20)
assert calls > 0 and steps > 0 and gpu > 0
for local in (1 << 40, -5, (1 << 63) - 1, 7):
    agent.probing_ring_append(steps, later, (Cell * 13)(
        number(1), number(local), text(b"sampled"), number(1), number(1),
        real(float("inf") if local == 7 else 5.0), real(float("nan")), real(-1), real(1e300), real(1.0),
        real(1e30), number(-1), number(1)))
for seq in range(20000):
    agent.probing_ring_append(calls, later, (Cell * 16)(
        number(1), number(1 << 40), number(1), number(seq), number(seq - 1), number(0),
        text(b"m\\x1b[31m%d" % seq), text(b"C\\xff"), text(b"forward" if seq % 3 else b"backward"),
        real(1e11), real(1.0), number(0), number(0), number(0), number(seq << 50), number(1)))
    agent.probing_ring_append(gpu, later, (Cell * 6)(
        number(1), number(1 << 40), number(seq - 2), text(b"m\\x1b[31m"),
        text((b"step", b"forward", b"backward", b"\\x1b")[seq % 4]), real((1e300, -1.0, 1e11)[seq % 3])))
"""


def hostile_code():
    """A process may write anything to its rings: a chain of 20,000 calls, invalid numbers."""
    source = (support.ROOT / "agent/torch/rows.c").read_text()
    columns = ["".join(re.findall('"([^"]*)"', re.search(
        r"%s_columns\[\] =(.*?);" % name, source, re.S).group(1))) for name in ("call", "step", "gpu")]
    text = HOSTILE
    for name, of in zip(("CALLS", "STEPS", "GPU"), columns):
        text = text.replace(name, repr(of.encode()))
    return text


def test_rows_of_a_hostile_process(probing, fresh):
    steps = fresh
    set_share(probing, steps, "torch.profiling=0.001")
    done = probing(steps.pid, "eval", hostile_code())
    assert done.code == OK, done
    steps.go()
    for options in ([], ["--json"]):
        done = probing(steps.pid, "perf", "--torch", "--exact", "--steps", "2", *options)
        assert done.code == OK and "\x1b" not in done.out, done
    steps.stop()
    assert probing(steps.pid, "query", "SELECT * FROM torch.overhead").code == OK


def test_exact_without_steps(probing, steps):
    done = probing(steps.pid, "perf", "--torch", "--exact", "-d", "100ms")
    assert done.code == FAILED and "no training step ended meanwhile" in done.err, done


def test_compiled_models_are_left_alone(probing, steps):
    code = "import sys, types; m = types.ModuleType('torch._dynamo.convert_frame'); " \
           "m.FRAME_COUNTER = 1; sys.modules[m.__name__] = m"
    assert probing(steps.pid, "eval", code).code == OK
    set_share(probing, steps, ALL)
    steps.do("run 3")
    assert {row["kind"] for row in rows(probing, steps, "SELECT kind FROM python.torch_step_timing")} == \
        {"unsampled"}
    steps.go()
    done = probing(steps.pid, "perf", "--torch", "--exact")
    assert done.code == UNSUPPORTED and "torch.compile is used" in done.err, done
    steps.stop()
    assert probing(steps.pid, "eval", "del sys.modules[m.__name__]").code == OK


def test_no_torch(probing, target):
    process = target("leaks.py")
    done = probing(process.pid, "perf", "--torch", "--exact")
    assert done.code == UNSUPPORTED and "torch is not imported in this process" in done.err, done
    told = probing(process.pid, "config", "torch.profiling=on")
    assert told.code == OK and "timed once it is" in told.out, told
    assert probing(process.pid, "eval", "import sys; type(sys.meta_path[0]).__name__").out == "'Later'\n"
    assert probing(process.pid, "config", "torch.profiling=off").code == OK
    code = "any(type(each).__name__ == 'Later' for each in __import__('sys').meta_path)"
    assert probing(process.pid, "eval", code).out == "False\n"


@pytest.mark.parametrize("options, words", [
    (["--exact"], "it is for '--torch --exact'"),
    (["--torch", "--exact", "--cc"], "--cc is not for '--torch --exact'"),
])
def test_usage(probing, target, options, words):
    process = target("leaks.py")
    done = probing(process.pid, "perf", *options)
    assert done.code == USAGE and words in done.err, done


def test_from_the_start_and_told(probing, tmp_path):
    """PROBING_TORCH_PROFILING before torch is imported; probing.step() says which step it is."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    variables = {"PROBING": "1", "PROBING_TORCH_PROFILING": "1", "PROBING_DATA_DIR": str(folder),
                 "PROBING_AGENT": str(AGENT), "PYTHONPATH": str(PACKAGE)}
    training.check()
    code = "import probing_startup; probing_startup.start(); import runpy, sys; " \
           "sys.argv = sys.argv[1:]; sys.path.insert(0, ''); runpy.run_path(sys.argv[0], run_name='__main__')"
    program = support.Program([training.PYTHON, "-c", code, PROGRAMS / "training" / "steps.py", PACKAGE],
                              env=dict(os.environ, **variables))
    with program:
        assert program.line(timeout=400) == "ready"
        program.send(b"told 6\n")
        json.loads(program.line(timeout=100))
        done = probing(program.pid, "query", "-f", "json", "SELECT step, kind FROM "
                       "python.torch_step_timing ORDER BY local_step", env=variables)
        assert done.code == OK, done
        found = [row["step"] for row in json.loads(done.out)]
        assert found[-4:] == [30, 40, 50, 60]


def test_memory_stays(probing, steps):
    """The ring wraps, and no memory of a step is kept: 100,000 of them in the long form."""
    set_share(probing, steps, ALL)
    for _ in range(support.count(1, 20)):
        steps.do("run 100")

    def held():
        return int(probing(steps.pid, "eval", "import gc; gc.collect(); len(gc.get_objects())").out)

    def own_memory():
        status = Path("/proc/%d/status" % steps.pid).read_text()
        return int(re.search(r"RssAnon:\s+(\d+) kB", status).group(1))

    before, memory = held(), own_memory()
    for _ in range(support.count(1, 1000)):
        steps.do("run 100")
    assert held() - before < 100
    assert own_memory() - memory < 4096



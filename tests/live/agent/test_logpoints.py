# SPDX-License-Identifier: GPL-3.0-or-later
"""Logpoints: values at a line, while the program runs on and is left as it was."""

import json
import os
import re
import signal
import subprocess
import time

import pytest

import support
from environment import FAILED, OK, USAGE

LOSS, RETURNS, TURN = 16, 17, 35  # lines of logged.py


@pytest.fixture
def logged(target, shared, tmp_path):
    def start(interpreter, rest=0.001):
        return target("logged.py", shared.path, rest, interpreter=interpreter,
                      env={"PROBING_DATA_DIR": str(tmp_path)})

    return start


class Tracing:
    """`probing PID trace …`, which is followed while it runs."""

    def __init__(self, pid, *words):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PROBING_")}
        self.process = subprocess.Popen(
            [support.BINARY, str(pid), "trace", *map(str, words)], env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def line(self):
        return self.process.stdout.readline().decode()

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out.decode(), err.decode()


def runs_on(shared, turns=3):
    before = shared[0]
    while shared[0] < before + turns:
        time.sleep(0.001)


def watched(probing, process):
    return probing(process.pid, "trace", "list").out


def test_values_of_each_time(logged, shared, probing, interpreter):
    process = logged(interpreter)
    tracing = Tracing(process.pid, "logged.py:%d" % RETURNS, "number, loss, batch, self.none, len(bad)",
                      "--json")
    rows = []
    while len(rows) < 5:
        rows.append(json.loads(tracing.line()))
    numbers = [int(row["values"]["number"]) for row in rows]
    assert numbers == list(range(numbers[0], numbers[0] + 5)), rows
    for row in rows:
        assert row["lineno"] == RETURNS and row["filename"].endswith("logged.py")
        assert row["function_name"] in ("step", "Model.step")
        values, types = row["values"], row["types"]
        assert (values["loss"], types["loss"]) == ("3.0", "float")
        assert values["batch"] == "[%s, 'x\\x1b[2J']" % (3 * int(values["number"])), values
        assert types["self.none"] == "error" and values["self.none"].startswith("AttributeError")
        assert values["len(bad)"].startswith("NameError")
    code, _, errors = tracing.end()
    assert code == OK and re.search(r"recorded \d+ times", errors), errors
    assert "no logpoints" in watched(probing, process)
    runs_on(shared)


def test_conditions_end_and_large_values(logged, probing, newest):
    process = logged(newest)
    done = probing(process.pid, "trace", "logged.py:%d" % TURN, "if", "number % 3 == 0",
                   "number, bad, long, turns", "--for", "1s", "--json")
    assert done.code == OK, done
    rows = [json.loads(line)["values"] for line in done.out.splitlines()]
    assert rows and all(int(row["number"]) % 3 == 0 for row in rows)
    assert rows[0]["bad"].startswith("<") and len(rows[0]["long"]) < 200, rows[0]
    assert "only" not in done.err and "in work" in done.err
    done = probing(process.pid, "trace", "logged.py:%d" % TURN, "if", "nobody", "number", "--for", "1s")
    assert done.out == "" and "the condition raised NameError" in done.err, done


def test_kept_ones_are_listed_cleared_and_recorded(logged, shared, probing, newest, tmp_path):
    process = logged(newest)
    assert probing(process.pid, "trace", "logged.py:%d" % LOSS, "number", "--keep").out == \
        "logpoint 1\n"
    while " hit 0 times" in watched(probing, process):
        assert process.alive()
    listed = watched(probing, process)
    assert re.match(r"1  logged.py:%d  number  hit \d+ times" % LOSS, listed), listed
    assert probing(process.pid, "trace", "clear", "7").code == FAILED
    assert probing(process.pid, "trace", "clear").out == "1 removed\n"
    assert "no logpoints" in watched(probing, process)
    runs_on(shared)
    found = json.loads(probing(process.pid, "query", "SELECT DISTINCT variable_name, lineno, value_type "
                               "FROM python.trace_variables", "-f", "json").out)
    assert found == [{"variable_name": "number", "lineno": LOSS, "value_type": "int"}]
    ring, = tmp_path.glob("%d-*/python.trace_variables.ring" % process.pid)
    rows = json.loads(probing("ring", ring, "--json").out)
    assert rows and {row["variable_name"] for row in rows} == {"number"}
    assert {(row["lineno"], row["value_type"]) for row in rows} == {(LOSS, "int")}


def test_gone_with_its_client(logged, shared, probing, newest):
    process = logged(newest)
    tracing = Tracing(process.pid, "logged.py:%d" % RETURNS, "loss")
    assert "loss=3.0" in tracing.line()
    tracing.end(signal.SIGKILL)
    while "no logpoints" not in watched(probing, process):
        assert process.alive()
    runs_on(shared)


def test_rate_is_limited(logged, probing, newest):
    process = logged(newest, rest=0)
    done = probing(process.pid, "trace", "logged.py:%d" % RETURNS, "loss", "--rate", "10", "--for", "1s")
    assert done.code == OK and 1 <= len(done.out.splitlines()) <= 30, done
    assert re.search(r"recorded \d+ times \(\S+ us each\), \d+ times over the rate were left out", done.err), done


def test_nothing_is_left_after_eject(logged, shared, probing, newest):
    process = logged(newest)
    probing(process.pid, "trace", "logged.py:%d" % LOSS, "number", "--keep")
    runs_on(shared)
    assert probing(process.pid, "agent", "stop").code == OK
    runs_on(shared, 20)
    assert process.alive()


@pytest.mark.parametrize("words, code, text", [
    ([], USAGE, "what is to be recorded"), (["logged.py"], USAGE, "what is to be recorded"),
    (["logged.py", "x"], USAGE, "is not FILE:LINE"), (["logged.py:0", "x"], USAGE, "is not FILE:LINE"),
    (["logged.py:12", "x\ny"], USAGE, "an expression is one line"),
    (["logged.py:%d" % LOSS, "number +"], FAILED, "is no expression"),
    (["logged.py:%d" % LOSS, "if", "1 +", "number"], FAILED, "is no expression"),
    (["logged.py:2000", "number"], FAILED, "has no code that runs")])
def test_mistakes(logged, probing, newest, words, code, text):
    process = logged(newest)
    done = probing(process.pid, "trace", *words)
    assert done.code == code and text in done.err, done
    assert "no logpoints" in watched(probing, process)



def spans(probing, process):
    """Ends of calls: (name, arguments and result, duration, parent)."""
    found = json.loads(probing(
        process.pid, "query", "SELECT b.name, b.attributes AS given, e.attributes AS came, e.duration, "
        "b.parent_id AS parent, b.span_id AS span FROM python.trace_event b JOIN python.trace_event e "
        "USING (span_id) WHERE b.record = 'span_begin' AND e.record = 'span_end' ORDER BY span",
        "-f", "json").out)
    return [dict(row, given=json.loads(row["given"]), came=json.loads(row["came"])) for row in found]


@pytest.fixture
def called(target, tmp_path):
    def start(interpreter):
        return target("called.py", interpreter=interpreter, env={"PROBING_DATA_DIR": str(tmp_path)})

    return start


def test_calls_are_spans(called, probing, interpreter):
    process = called(interpreter)
    full = interpreter.version >= (3, 11)
    tracing = Tracing(process.pid, "--calls", "Model.step", "--json")
    rows = [json.loads(tracing.line()) for _ in range(4)]
    code, _, errors = tracing.end()
    assert code == OK and "called.py:" in errors, errors
    assert re.search(r"recorded \d+ times \([\d.]+ us each\)", errors), errors
    numbers = [int(row["arguments"]["number"]) for row in rows]
    assert numbers == list(range(numbers[0], numbers[0] + 4)), rows
    for row, number in zip(rows, numbers):
        given = row["arguments"]
        assert row["function_name"] == ("Model.step" if full else "step"), row
        assert given["rest"] == "('x',)" and given["scale"] == "2.0" and given["more"] == "{'k': [1, 2]}"
        assert given["self"].startswith("<") and row["duration"] > 0
        if number % 3:
            assert (row["result"], row["type"]) == ("%.1f" % (number * 4), "float"), row
        else:
            assert row["error"] == "KeyError" and "result" not in row, row
    recorded = {row["given"]["number"]: row for row in spans(probing, process)}
    for row, number in zip(rows, numbers):
        assert recorded[str(number)]["duration"] == pytest.approx(row["duration"], rel=0.01, abs=1e-3)
    assert "no logpoints" in watched(probing, process) and process.alive()


def test_calls_nest_and_generators_are_one_call(called, probing, newest):
    process = called(newest)
    names = ["inner", "Model.step", "numbers", "later", "part"]
    for name in names:
        assert probing(process.pid, "trace", "--calls", "called.py:" + name, "--keep").code == FAILED
        assert "logpoint" in probing(process.pid, "trace", "--calls", "__main__." + name
                                     if name == "inner" else name, "--keep").out
    while len({row["name"] for row in spans(probing, process)}) < len(names):
        assert process.alive()
    assert probing(process.pid, "trace", "clear").out == "%d removed\n" % len(names)
    found = spans(probing, process)
    steps = {row["span"] for row in found if row["name"] == "Model.step"}
    assert any(row["parent"] in steps for row in found if row["name"] == "inner")
    for name, result in (("numbers", "'end'"), ("later", None)):
        some = [row["came"] for row in found if row["name"] == name]
        assert some and all("error" not in row for row in some), some
        assert result is None or {row["result"] for row in some} == {result}


def test_calls_with_a_condition_and_a_rate(called, probing, newest):
    process = called(newest)
    done = probing(process.pid, "trace", "--calls", "Model.step", "if", "number % 3 == 0", "--for", "1s",
                   "--rate", "5", "--json")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert rows and all(row["error"] == "KeyError" for row in rows), done
    assert len(rows) <= 15


@pytest.mark.parametrize("words, text", [
    (["--calls", "nobody"], "no function of Python that is called 'nobody'"),
    (["--calls", "len"], "no function of Python"), (["--calls", ""], "takes the name of a function"),
    (["--calls", "step", "x"], "takes the name of a function")])
def test_mistakes_with_calls(called, probing, newest, words, text):
    process = called(newest)
    done = probing(process.pid, "trace", *words)
    assert done.code in (USAGE, FAILED) and text in done.err, done


def test_from_the_prompt_and_from_python(called, probing, newest):
    process = called(newest)
    with_library = dict(os.environ, PYTHONPATH=str(support.HERE.parents[1] / "package"),
                        PROBING_LIBRARY=os.path.join(os.path.dirname(support.BINARY), "libprobing.so"),
                        PROBING_PROGRAM=support.BINARY)
    script = "import probing\n" \
        "with probing.attach(%d) as p:\n" \
        "    with p.trace(calls='Model.step') as point:\n" \
        "        assert 'calls of Model.step' in p.traces()[point.number], p.traces()\n" \
        "    assert not p.traces(), p.traces()\n" \
        "    p.trace('called.py:5', 'number')\n" \
        "    p.clear_traces()\n" \
        "    p.trace('called.py:5', 'number', condition='number > 0')\n" % process.pid
    done = subprocess.run(["/usr/bin/python3", "-c", script], env=with_library, stderr=subprocess.PIPE)
    assert not done.returncode, done.stderr.decode()
    done = subprocess.run([support.BINARY, str(process.pid), "repl"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, input=b"%trace list\n1 + 1\n%trace clear\n%trace clear 77\n")
    lines = done.stdout.decode().splitlines()
    assert "called.py:5 if number > 0  number  hit" in lines[0] and lines[1:] == ["2", "1 removed"], done
    assert b"there is no logpoint 77" in done.stderr


def test_several_begin_at_once(logged, shared, probing, newest):
    """Clients that come at the same moment, before the agent has ever traced, each get their rows."""
    for _ in range(support.count(3, 20)):
        process = logged(newest)
        tracings = [Tracing(process.pid, "logged.py:%d" % RETURNS, "number") for _ in range(4)]
        for tracing in tracings:
            line = tracing.line()
            assert "number=" in line, (line, tracing.end())
        assert all(tracing.end()[0] == OK for tracing in tracings)
        assert "no logpoints" in watched(probing, process)
        runs_on(shared)


FROZEN = """
import time
time.time = lambda: 1000000.5
def tick():
    time.sleep(0.001)
print("ready", flush=True)
while True:
    tick()
"""


def test_a_clock_that_is_set(probing, newest):
    """However the time of day goes, as when a machine gets it anew, a trace ends after its time."""
    with support.Program([newest.exe, "-c", FROZEN], env=newest.env) as process:
        assert process.line() == "ready"
        done = probing(process.pid, "trace", "--calls", "tick", "--for", "300ms")
        assert done.code == OK and "recorded" in done.err, done


BATCHES = """
import sys, threading, weakref
threading.Thread(target=int).start()  # so that 3.6 has a GIL
class Batch:
    pass
def main():
    old = []
    for line in sys.stdin:
        batch = Batch()
        old.append(weakref.ref(batch))
        batch = None
        print(sum([each() is not None for each in old]), flush=True)
print("ready", flush=True)
main()
"""
LET_GO = 1 + BATCHES[:BATCHES.index("batch = None")].count("\n")


def test_no_value_is_kept(probing, interpreter, tmp_path):
    """Up to Python 3.12 reading a frame's variables keeps them alive in the frame."""
    file = tmp_path / "batches.py"
    file.write_text(BATCHES)
    with support.Program([interpreter.exe, file], env=interpreter.env) as process:
        assert process.line() == "ready"
        done = probing(process.pid, "trace", "batches.py:%d" % LET_GO, "if", "batch", "len(old), nobody",
                       "--keep")
        assert done.code == OK, done
        for _ in range(5):
            process.send(b"go\n")
            assert process.line() == "0"
        assert "hit 5 times" in watched(probing, process)


ABANDONED = """
import time
def rows(count):
    for each in range(count):
        yield each
def other():
    yield 1
    raise ValueError("no")
def fails():
    made = other()
    next(made)
    try:
        next(made)
    except ValueError:
        pass
def whole():
    for each in rows(2):
        pass
print("ready", flush=True)
while True:
    next(rows(3))
    fails()
    whole()
    time.sleep(0.001)
"""


def test_generators_that_are_dropped(interpreter):
    """From 3.13 on they end without an event: their locations are not confused with another frame's."""
    with support.Program([interpreter.exe, "-c", ABANDONED], env=interpreter.env) as process:
        assert process.line() == "ready"
        # Most calls are over the rate.
        tracing = Tracing(process.pid, "--calls", "rows", "--json", "--rate", "20")
        told = [json.loads(tracing.line()) for _ in range(support.count(40, 200))]
        assert tracing.end()[0] == OK and process.alive()
        assert {row["function_name"] for row in told} == {"rows"}, told
        assert {row.get("error") for row in told} <= {None, "GeneratorExit"}, told
        assert {row["arguments"]["count"] for row in told if "error" not in row} == {"2"}, told

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
    assert re.search(r"recorded \d+ times, \d+ times over the rate were left out", done.err), done


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


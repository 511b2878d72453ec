# SPDX-License-Identifier: GPL-3.0-or-later
"""A small training under PROBING=1: the queries that people type have its values, while it lives and
after it was killed."""

import json
import subprocess
from pathlib import Path

import pytest
import support
from support import Program

PACKAGE = Path(__file__).resolve().parents[3] / "package"
AGENT = Path(support.BINARY).with_name("libprobing-agent.so")
TRAINING = Path(__file__).resolve().parents[1] / "programs" / "own_training.py"
SOME = support.one_per_version(first=(3, 6))
STEPS = 20

QUERIES = [
    "SELECT operation_name, avg(duration_ms), count(*) FROM profiling_data WHERE timestamp > now() - interval "
    "'5 minutes' GROUP BY operation_name ORDER BY avg(duration_ms) DESC",
    "SELECT epoch, avg(loss), min(loss), count(*) as steps FROM training_logs GROUP BY epoch ORDER BY epoch",
    "SELECT * FROM memory_usage WHERE timestamp > now() - interval '5 min'",
    "SELECT hour(timestamp), avg(memory_mb) FROM memory_usage GROUP BY hour(timestamp)",
]


@pytest.fixture
def variables(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    return {"PROBING_DATA_DIR": str(folder), "PROBING_AGENT": str(AGENT)}


def rows(probing, target, sql, variables):
    done = probing(target, "query", "-f", "json", sql, env=variables)
    assert done.code == 0, done
    return json.loads(done.out)


def check(probing, target, variables):
    spans, epochs, memory, hours = [rows(probing, target, sql, variables) for sql in QUERIES]
    assert {row["operation_name"]: row["count(*)"] for row in spans} == \
        {"load": STEPS, "forward": STEPS, "backward": STEPS}
    assert all(0 <= row["avg(duration_ms)"] < 1000 for row in spans)
    losses = [[1 / (1 + 10 * epoch + number) for number in range(10)] for epoch in range(2)]
    assert [(row["epoch"], row["steps"], row["min(loss)"]) for row in epochs] == \
        [(epoch, 10, min(losses[epoch])) for epoch in range(2)]
    assert [row["avg(loss)"] for row in epochs] == \
        pytest.approx([sum(values) / 10 for values in losses])
    assert memory and all(1 < row["memory_mb"] <= row["peak_mb"] < row["virtual_mb"]
                          for row in memory)
    assert memory[0]["python_blocks"] > 1000 and memory[0]["role"] == "dp=1 pp=0"
    assert sum(row["avg(memory_mb)"] for row in hours) > 1 and len(hours) <= 2
    found = rows(probing, target, "SELECT * FROM python.variables WHERE step = 13", variables)
    assert [(row["name"], row["function"], row["number"], row["type"]) for row in found] == \
        [("loss@train", "train", 1 / 14, "float"), ("acc1@train", "train", 1.3, "float")]
    assert rows(probing, target, "SELECT layer, norm, rank, role FROM user.gradients", variables) == \
        [{"layer": "linear", "norm": epoch + 0.5, "rank": 7, "role": "dp=1 pp=0"}
         for epoch in range(2)]
    events = rows(probing, target, "SELECT attributes ->> 'batch' AS batch FROM python.trace_event "
                  "WHERE name = 'forward' AND record = 'span_begin' ORDER BY timestamp", variables)
    assert [row["batch"] for row in events] == list(range(10)) * 2


@pytest.mark.parametrize("python", SOME, ids=repr)
def test_a_training_and_its_end(probing, python, variables):
    environment = {**python.env, **variables, "PROBING": "1", "RANK": "7",
                   "PROBE_TORCH_EXPRS": "loss@train,acc1@train", "PYTHONPATH": str(PACKAGE)}
    # The hook that the wheel installs.
    code = "import probing_startup; probing_startup.start(); import runpy, sys; " \
           "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    with Program([python.exe, "-c", code, str(TRAINING)], env=environment) as process:
        assert process.line().startswith("ready")
        assert probing(process.pid, "agent").code == 0
        check(probing, process.pid, variables)
        process.kill()
        check(probing, process.pid, variables)


def run(python, code, variables):
    code = "import sys; sys.path.insert(0, %r); import probing\n%s" % (str(PACKAGE), code)
    done = subprocess.run([python.exe, "-c", code], env={**python.env, **variables}, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done
    return done.stdout.decode()


@pytest.mark.parametrize("python", SOME, ids=repr)
def test_a_share_of_the_events(python, variables):
    """All events of a recorded span, none of another one."""
    code = """
probing.config["sample_rate"] = RATE
outer = [probing.event("e") for _ in range(1000)]
kept = []
for _ in range(1000):
    with probing.span("s"):
        kept.append((probing.event("in"), probing.event("complex", value=[1])))
assert all(a == b for a, b in kept)
print(sum(outer), sum(a for a, _ in kept))
"""
    for rate, least, most in (("0", 0, 0), ("0.5", 350, 650), ("1", 1000, 1000)):
        counts = run(python, code.replace("RATE", rate), variables).split()
        assert all(least <= int(count) <= most for count in counts), counts
    counts = run(python, code.replace("RATE", "probing.config['sample_rate']"),
                 {**variables, "PROBING_SAMPLE_RATE": "0"}).split()
    assert counts == ["0", "0"]


@pytest.mark.parametrize("python", SOME, ids=repr)
def test_watched_expressions(probing, python, variables):
    code = """
import os
class Broken:
    def __repr__(self): raise KeyError("x")
def inner(b):
    probing.step()
def outer():
    a, b, c = [1, 2], Broken(), "x" * 300
    inner(b)
scale, late = 2, "GLOBAL"
def without(): probing.step(); late = 1
probing.watch("sum(a) * scale", "b@inner", "c", "missing@inner", "nowhere", "1/0", "late@without",
              "[each * scale for each in a for _ in a]")
outer()
without()
print(os.getpid())
"""
    pid = run(python, code, variables).strip()
    found = rows(probing, pid, "SELECT name, function, number, value, type FROM python.variables",
                 variables)
    assert [tuple(row.values()) for row in found] == [
        ("sum(a) * scale", "outer", 6.0, "6", "int"),
        ("b@inner", "inner", None, "<repr() raised KeyError>", "Broken"),
        ("c", "outer", None, "'" + "x" * 198 + "\u2026", "str"),
        ("missing@inner", "inner", None, "name 'missing' is not defined", "NameError"),
        ("1/0", "inner", None, "division by zero", "ZeroDivisionError"),
        ("[each * scale for each in a for _ in a]", "outer", None, "[2, 2, 4, 4]", "list"),
        ("1/0", "without", None, "division by zero", "ZeroDivisionError"),
        ("late@without", "without", None,
         "cannot access local variable 'late' where it is not associated with a value"
         if python.version >= (3, 11) else "local variable 'late' referenced before assignment",
         "UnboundLocalError")]


def test_a_span_is_entered_once(newest, variables):
    for attempt, text in (("s = probing.span('a')\nwith s:\n  with s: pass", "entered before"),
                          ("probing.span('a').__exit__(None, None, None)", "not entered"),
                          ("probing.span()", "TypeError"), ("probing.span(1)", "TypeError"),
                          ("probing.event()", "TypeError")):
        code = "import sys; sys.path.insert(0, %r); import probing\n%s" % (str(PACKAGE), attempt)
        done = subprocess.run([newest.exe, "-c", code], env={**newest.env, **variables},
                              stderr=subprocess.PIPE, timeout=60)
        assert done.returncode == 1 and text in done.stderr.decode(), done

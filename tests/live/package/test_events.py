# SPDX-License-Identifier: GPL-3.0-or-later
"""probing.event(), span(), step() and table(): their rows, also after SIGKILL."""

import csv
import json
import subprocess
from pathlib import Path

import pytest
import support

PACKAGE = Path(__file__).resolve().parents[3] / "package"
AGENT = Path(support.BINARY).with_name("libprobing-agent.so")
SOME = support.one_per_version(first=(3, 6))


def rows(run, path):
    result = run("ring", path)
    assert result.code == 0, result
    return list(csv.DictReader(result.out.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.fixture
def variables(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    return {"PROBING_DATA_DIR": str(folder), "PROBING_AGENT": str(AGENT)}


@pytest.mark.parametrize("python", SOME, ids=repr)
def test_rows_before_and_after_the_end(probing, target, python, variables):
    process = target("own_events.py", PACKAGE, interpreter=python, env=variables)
    losses, child = Path(process.ready[0]), process.ready[1]
    files = [losses, losses.with_name("python.trace_event.ring"),
             losses.with_name("main.training_logs.ring")]
    before = [rows(probing, file) for file in files]
    process.kill()
    assert [rows(probing, file) for file in files] == before
    check_losses(before[0])
    check_events(before[1], str(process.pid), child, python)
    assert [(row["epoch"], row["step"], row["loss"], row["metrics"]) for row in before[2]] == \
        [("1", "3", "0.5", '{"accuracy": 0.25}'), ("NULL", "4", "0.25", "NULL")]


def check_losses(found):
    assert [(row["step"], row["loss"], row["note"]) for row in found] == \
        [("1", "0.5", r"s\udcffn"), (str(2 ** 62), "NULL", "NULL")]


def check_events(found, pid, child, python):
    shown = {(row["record"], row["name"]): row for row in found}
    assert [name for kind, name in shown if kind == "event"] == \
        ["before", "within"] + ["in task"] * (python.version >= (3, 7)) + ["after", "child"]
    before = json.loads(shown["event", "before"]["attributes"])
    assert (before["text"], before["number"]) == ("n\u00e4me", 1)
    assert "function fail" in before["other"]
    outer, inner = shown["span_begin", "outer"], shown["span_begin", "inner"]
    assert (outer["parent_id"], inner["parent_id"]) == ("NULL", outer["span_id"])
    assert shown["event", "within"]["parent_id"] == inner["span_id"]
    assert float(shown["span_end", "outer"]["duration"]) >= \
        float(shown["span_end", "inner"]["duration"]) > 0
    assert shown["span_end", "failed"]["attributes"] == '{"error": "KeyError"}'
    after = shown["event", "after"]
    assert (after["step"], after["pid"], after["parent_id"]) == ("4", pid, "NULL")
    assert after["tid"] != pid
    assert (shown["event", "child"]["pid"], shown["event", "child"]["tid"]) == (child, child)
    if python.version >= (3, 7):
        gather = shown["span_begin", "gather"]["span_id"]
        spans = {row["span_id"]: row for row in found if row["name"] == "task"}
        assert [row["parent_id"] for row in spans.values()] == [gather, gather]
        assert {row["parent_id"] for row in found if row["name"] == "in task"} == set(spans)


def script(python, code, variables):
    code = "import sys; sys.path.insert(0, %r); import probing\n%s" % (str(PACKAGE), code)
    return subprocess.run([python.exe, "-c", code], env={**python.env, **variables}, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_nothing_is_recorded(newest, variables):
    code = "print(probing.event('a'), probing.step(1), probing.event('b'))\n" \
           "with probing.span('c'): pass\n"
    assert script(newest, code, {**variables, "PROBING": "0"}).stdout == b"False False False\n"
    assert not list(Path(variables["PROBING_DATA_DIR"]).iterdir())
    Path(variables["PROBING_DATA_DIR"]).chmod(0o777)
    result = script(newest, code, variables)
    assert (result.returncode, result.stdout) == (0, b"False False False\n")
    assert result.stderr.decode().splitlines() == [
        "probing: the table %s cannot be made: Operation not permitted: nothing is recorded" % name
        for name in ("python.trace_event", "main.training_logs")]
    result = script(newest, "probing.table('t', {'a': int})", variables)
    assert b"OSError" in result.stderr and b"the table user.t cannot be made" in result.stderr


@pytest.mark.parametrize("schema", ["{}", "{'a b': int}", "{'a': bytes}", "'a number'"])
def test_wrong_schemas(newest, variables, schema):
    result = script(newest, "probing.table('t', %s)" % schema, variables)
    assert result.returncode == 1 and b"user.t cannot be made: Invalid argument" in result.stderr


def test_events_of_an_injected_agent(probing, target, newest, variables):
    """Events use the library already loaded, and eject stays safe."""
    process = target("own_events.py", PACKAGE, interpreter=newest, env=variables)
    assert probing(process.pid, "inject").code == 0
    code = "__import__('probing').event('evaluated')"
    assert probing(process.pid, "eval", code).out == "True\n"
    maps = Path("/proc/%d/maps" % process.pid).read_text()
    assert len({line.split()[4] for line in maps.splitlines() if "libprobing-agent" in line}) == 1
    result = probing(process.pid, "eject")
    assert result.code == 0, result
    events = rows(probing, Path(process.ready[0]).with_name("python.trace_event.ring"))
    assert events[-1]["name"] == "evaluated"


DATACLASS = """
import dataclasses, typing
@probing.table
@dataclasses.dataclass
class Loss:
    step: int
    value: float = 0.0
    note: typing.Optional[str] = None
@probing.table("pairs")
class Pair:
    first: int
    good: bool
assert Loss(1, 0.5, "a").append() and Loss(2).append() and Pair(7, True).append()
try:
    probing.table(dataclasses.make_dataclass("Wrong", [("a", bytes)]))
    raise SystemExit("accepted")
except TypeError as error:
    assert "Wrong.a" in str(error), error
rows = probing.query("SELECT step, value, note FROM user.loss ORDER BY step")
assert rows == [{"step": 1, "value": 0.5, "note": "a"}, {"step": 2, "value": 0.0, "note": None}], rows
assert probing.query("SELECT first, good FROM user.pairs") == [{"first": 7, "good": 1}]
try:
    probing.query("SELECT nosuch FROM user.loss")
    raise SystemExit("accepted")
except probing.Error as error:
    assert "no such column: nosuch" in str(error), error
import sys, types
try:
    rows.df()
except probing.Error as error:
    assert "needs pandas or polars" in str(error), error
for name in "polars", "pandas":
    sys.modules[name] = types.SimpleNamespace(DataFrame=lambda rows, name=name: (name, rows))
    assert rows.df() == (name, list(rows))
print("done")
"""


def test_dataclasses_and_queries_of_the_own_process(variables):
    some = [python for python in SOME if python.version >= (3, 7)][-1]
    variables["PATH"] = str(Path(support.BINARY).parent) + ":" + some.env["PATH"]
    result = script(some, DATACLASS, variables)
    assert result.stdout == b"done\n", result.stderr.decode()

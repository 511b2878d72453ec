# SPDX-License-Identifier: GPL-3.0-or-later
"""python.`EXPRESSION`: values of a process as rows; and where no code may run."""

import json

import pytest
import support
from library import Error, Session
from support import Program

SOME = support.one_per_version()

CODE = r"""
import collections, sys, threading
threading.Thread(target=int).start()  # so that there is a GIL, before 3.7
class Thing:
    def __init__(self, number):
        self.number, self._hidden = number, 1
    def __repr__(self):
        return "Thing(%d)" % self.number
class Frame:
    columns = ["a"]
    def to_dict(self, how):
        return [{"a": 1.5}, {"a": None}]
Point = collections.namedtuple("Point", "x y")
config = {"rate": 0.5, "text": "tab\tline\nback\\slash \u00e4", "large": 2 ** 70}
calls = 0
def call():
    global calls
    calls += 1
    return calls
print("ready", flush=True)
sys.stdin.read()
"""

CASES = [
    ("config", [{"key": "large", "value": str(2 ** 70)}, {"key": "rate", "value": 0.5},
                {"key": "text", "value": "tab\tline\nback\\slash \u00e4"}]),
    ("[{'a': 1}, {'a': True, 'b': None}, {'b': b'x'}]",
     [{"a": 1, "b": None}, {"a": 1, "b": None}, {"a": None, "b": "b'x'"}]),
    ("[Point(1, 2.5)]", [{"x": 1, "y": 2.5}]), ("[(1, 'a')]", [{"c0": 1, "c1": "a"}]),
    ("[Thing(3)]", [{"value": "Thing(3)", "number": 3}]),
    ("Thing(4)", [{"value": "Thing(4)", "number": 4}]),
    ("(n for n in range(2))", [{"value": 0}, {"value": 1}]), ("'ab'", [{"value": "ab"}]),
    ("None", [{"value": None}]), ("[]", []), ("Frame()", [{"a": 1.5}, {"a": None}]),
    ("[{'_pid': 1, 'a b': 2, '': 3, 'A B': 4}]", [{"c0_pid": 1, "a b": 2, "c2": 3, "c3": 4}]),
    ("{2: int}", [{"key": 2, "value": "<class 'int'>"}]),
]


@pytest.fixture(scope="module", params=SOME, ids=repr)
def process(request):
    with Program([request.param.exe, "-c", CODE], env=request.param.env) as program:
        assert program.line() == "ready"
        yield program


def query(probing, pid, sql):
    done = probing(pid, "query", "-f", "json", sql)
    assert done.code == 0, done
    return json.loads(done.out)


def test_values(probing, process):
    for expression, rows in CASES:
        found = query(probing, process.pid, "SELECT * FROM python.`%s`" % expression)
        if isinstance(rows[0] if rows else None, dict) and "key" in rows[0]:
            found.sort(key=lambda row: str(row["key"]))
        assert found == rows, expression


def test_it_is_evaluated_once_for_each_statement(probing, process):
    before = query(probing, process.pid, "SELECT value FROM python.`calls`")[0]["value"]
    rows = query(probing, process.pid, "SELECT a.value AS a, b.value AS b FROM python.`call()` a "
                 "JOIN python.`call()` b JOIN python.`range(3)`")
    assert rows == [{"a": before + 1, "b": before + 1}] * 3
    done = probing(process.pid, "query", "SELECT value FROM python.`call()`; "
                   "SELECT value FROM python.`call()`", "-f", "tsv")
    assert done.out.split() == ["value", str(before + 2), "value", str(before + 3)], done
    names = query(probing, process.pid, "SELECT value FROM python.`sorted(globals())`")
    assert {"text", "names", "run", "find_rows"}.isdisjoint(row["value"] for row in names)


def test_exceptions(probing, process):
    for expression, text in (("1 / 0", "ZeroDivisionError: division by zero"),
                             ("nothing", "NameError: name 'nothing' is not defined"),
                             ("1 +", "SyntaxError"), ("x = 1", "SyntaxError")):
        done = probing(process.pid, "query", "SELECT * FROM python.`%s`" % expression)
        assert done.code == 1 and not done.out and text in done.err, done


def test_where_no_code_runs(probing, process, tmp_path):
    for sql in ("SELECT * FROM python.calls", "SELECT * FROM process.`calls`",
                "SELECT * FROM `calls`"):
        done = probing(process.pid, "query", sql)
        assert done.code == 2 and "no such table" in done.err, done
    done = probing("query", "SELECT * FROM python.`1`")
    assert done.code == 2 and "no target" in done.err
    with Session(process.pid) as session, pytest.raises(Error) as raised:
        list(session.query("SELECT * FROM python.`1`"))
    assert "this query only reads" in str(raised.value)
    assert probing(process.pid, "snapshot", "-o", tmp_path / "s.snapshot").code == 0
    done = probing(tmp_path / "s.snapshot", "query", "SELECT * FROM python.`1`")
    assert done.code != 0 and not done.out

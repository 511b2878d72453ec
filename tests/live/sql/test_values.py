# SPDX-License-Identifier: GPL-3.0-or-later
"""python.attributes and python.items: the parts of objects, as the program itself says them."""

import json
import shutil

import pytest
import support
import tables
from library import Error, Session

PROGRAM = support.HERE / "programs" / "looked_up.py"


@pytest.fixture
def asleep(interpreter):
    with support.Target(interpreter, PROGRAM) as process:
        process.line()
        support.wait_for_sleep(process.pid, "pipe_read")
        yield process


def attributes(session, name, where="1"):
    return session.query("SELECT a.name, a.kind, a.type, a.value FROM python.locals l, "
                         "python.attributes(l.address) a "
                         "WHERE l.name = '%s' AND l.depth = 0 AND %s" % (name, where))


def check(session):
    found = {name: (kind, kind_of, value)
             for name, kind, kind_of, value in attributes(session, "self")}
    assert found["items"] == ("dict", "list", "[[1], [2, 'two']]")
    assert found["Pair"] == ("dict", "Pair", "Pair(x=3, y=4)")
    assert found["doubled"] == ("computed", "property", None)
    assert found["lazy"] == ("computed", "Lazy", None)
    assert "method" not in found and "kind" not in found
    rows = session.query(
        "SELECT b.name, b.kind, b.value, b.class FROM python.locals l, "
        "python.attributes(l.address) a, python.attributes(a.value_address) b "
        "WHERE l.name = 'self' AND l.depth = 0 AND a.name = 'slotted' AND b.kind = 'slot'")
    assert rows == [("left", "slot", "[True]", "Slotted")]
    assert attributes(session, "slice_", "a.kind = 'slot'") == \
        [("start", "slot", "int", "1"), ("stop", "slot", "int", "5"),
         ("step", "slot", "NoneType", "None")]
    rows = session.query(
        "SELECT a.name, a.value, a.class FROM python.locals l, python.attributes(l.address) a "
        "WHERE l.name = 'rows' AND l.depth = 0 AND a.kind = 'local'")
    assert sorted(rows) == [("name", "'table'", None), ("row", "5", None), ("values", "[5, 6]", None)]
    items = session.query("SELECT i.number, i.key, i.type, i.value FROM python.locals l, "
                          "python.items(l.address) i WHERE l.name = 'seen'")
    assert items == [(0, "'argument'", "str", "'given'")]
    rows = session.query(
        "SELECT count(*), min(i.value + 0), max(i.value + 0), max(i.number) FROM python.locals l, "
        "python.attributes(l.address) a, python.items(a.value_address) i "
        "WHERE l.name = 'self' AND a.name = 'queue'")
    assert rows == [(150, 50, 199, 149)]
    where = ("FROM python.locals l, python.attributes(l.address) a, python.items(a.value_address) i "
             "WHERE l.name = 'self' AND a.name = 'queue' AND ")
    for condition, numbers in (("i.number BETWEEN 20 AND 22", [20, 21, 22]), ("i.number > 147.5", [148, 149]),
                               ("i.number >= 2 AND i.number < 4", [2, 3]), ("i.number = 149", [149]), ("i.number < 1", [0]),
                               ("i.number < 0", []), ("i.number > 149", []), ("i.number > 1e300", []),
                               ("i.number BETWEEN 5 AND 3", [])):
        assert session.query("SELECT i.number, i.value + 0 " + where + condition) == [
            (number, 50 + number) for number in numbers], condition


@pytest.mark.every_interpreter
def test_as_the_program_says(asleep):
    with Session(asleep.pid) as session:
        check(session)


@pytest.mark.skipif(not shutil.which("gcore"), reason="gcore is not installed")
def test_core_tells_the_same(asleep, tmp_path):
    with Session(tables.core_of(asleep.pid, tmp_path)) as session:
        check(session)


def test_which_objects_have_a_value(asleep):
    with Session(asleep.pid) as session:
        assert session.query(
            "SELECT count(*) FROM python.objects o, python.attributes(o.address) a "
            "WHERE o.type = '__main__.Node' AND a.name = 'items' AND a.value LIKE '%two%'") == [(1,)]


def test_what_is_no_object(asleep):
    with Session(asleep.pid) as session:
        for table in ("attributes", "items"):
            with pytest.raises(Error) as error:
                session.query("SELECT * FROM python.%s" % table)
            assert "needs to know the address" in str(error.value)
            for address in (0, 1, 8, 4096, -8, 1 << 62, 0x7fffffffffff):
                rows = session.query("SELECT _error FROM python.%s(%d)" % (table, address))
                assert len(rows) == 1 and rows[0][0], (table, address)
            assert session.query("SELECT * FROM python.%s(NULL)" % table) == []
        rows = session.query("SELECT i._error FROM python.locals l, python.items(l.address) i "
                             "WHERE l.name = 'self' AND l.depth = 0")
        assert rows == [("Node objects have no items that can be told",)]


@pytest.mark.every_interpreter
def test_what_a_thread_changes_all_the_time(interpreter):
    """Rows of one object are of one instant, and whole; where not, a row says so."""
    whole = 0
    with support.Target(interpreter, support.HERE / "programs" / "changes.py") as process:
        state = int(process.line())
        with Session(process.pid) as session:
            for _ in range(support.count(30, 1000)):
                rows = session.query("SELECT name, value, _error FROM python.attributes(%d)" % state)
                if any(error for _, _, error in rows):
                    continue
                found = {name: eval(value) for name, value, _ in rows}
                assert found["a"] == found["b"] == found["both"][0], rows
                whole += 1
    assert whole


LARGE = """
items = [None] * 17000000
print("ready", flush=True)
input()
"""


def test_more_items_than_are_read(probing, newest):
    """The first ones are rows, and the last row says that there are more."""
    with support.Program([newest.exe, "-c", LARGE], env=newest.env) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read")
        select = "SELECT %s FROM python.locals l, python.items(l.address) i WHERE l.name = 'items' AND l.depth = 0"
        done = probing(process.pid, "query", "-f", "json", select % "i.number, i.type, i._error" + " LIMIT 2")
        assert done.code == 0 and json.loads(done.out) == [
            {"number": number, "type": "NoneType", "_error": None} for number in (0, 1)], done
        done = probing(process.pid, "query", "-f", "json", select % "count(i.number) AS n, max(i._error) AS error")
        assert done.code == 0 and json.loads(done.out) == [
            {"n": 8000000, "error": "it has more than 8000000 parts: the others are left out"}], done


VALUES = """
import dataclasses, time

@dataclasses.dataclass
class Request:
    id: str
    tokens: int
    share: float
    number_as_text: str
    quoted: str
    secret: str = dataclasses.field(repr=False)

def serve():
    request = Request("chat-1", 7, 2.5, "7", "it's \\\\ \\n", "key")
    line = "one\\ntwo"
    counts = {"one": 1, 1: 2}
    print("ready", flush=True)
    time.sleep(1000)

serve()
"""


@pytest.fixture
def request_of(newest, tmp_path):
    (tmp_path / "values.py").write_text(VALUES)
    with support.Target(newest, tmp_path / "values.py") as process:
        process.line()
        with Session(process.pid) as session:
            yield session


@pytest.mark.parametrize("value, names", [
    ("chat-1", ["id"]), ("'chat-1'", ["id"]), ("7", ["tokens"]), ("'7'", ["number_as_text"]),
    ("it's \\ \n", ["quoted"]), ('"chat-1"', ["id"]), ("chat", []), ("key", []), ("", [])])
def test_a_text_compares_as_typed(request_of, value, names):
    found = attributes(request_of, "request", "a.value = '%s'" % value.replace("'", "''"))
    assert [name for name, *_ in found] == names


def test_other_tables_compare_as_well(request_of):
    assert request_of.query("SELECT name FROM python.locals WHERE value = 'one\ntwo'") == [("line",)]
    assert request_of.query(
        "SELECT i.value FROM python.locals l, python.items(l.address) i WHERE l.name = 'counts' "
        "AND i.key = 'one'") == [("1",)]


def test_numbers_are_numbers(request_of):
    rows = request_of.query(
        "SELECT a.name, a.number FROM python.locals l, python.attributes(l.address) a "
        "WHERE l.name = 'request' AND a.number IS NOT NULL")
    assert rows == [("tokens", 7), ("share", 2.5)]


def test_what_is_hidden_has_no_type(request_of):
    assert attributes(request_of, "request", "a.name = 'secret'") == [("secret", "dict", None, "<hidden>")]

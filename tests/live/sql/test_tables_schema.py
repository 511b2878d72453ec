# SPDX-License-Identifier: GPL-3.0-or-later
"""All tables on all kinds of targets: none fails, none is empty without a reason; and information_schema
is correct."""

import json
import re

import pytest

import tables
from conftest import PROGRAMS
from library import Error, Session
from support import Program, wait_for_all_asleep

pytestmark = pytest.mark.every_interpreter  # of the few that tables.py chooses

TABLES = tables.query(None, "SELECT * FROM information_schema.tables")
COLUMNS = tables.query(None, "SELECT * FROM information_schema.columns")
NAMES = ["%s.%s" % (row["table_schema"], row["table_name"]) for row in TABLES]
# Names of tables that programs record.
COLLECTED = {"python.trace_event", "python.variables", "python.memory", "memory_usage", "memory_allocations",
             "profiling_data", "training_logs", "python.torch_calls", "python.torch_trace",
             "python.torch_gpu", "python.torch_step_timing", "python.comm_collective", "comm_metrics"}
# They need no target, or need an argument.
OF_MACHINE = {name for name in NAMES
              if name.split(".")[0] in ("system", "gpu", "information_schema")}
OF_MACHINE |= {"cpu.utilization", "main.gpu_metrics"}
WITH_ARGUMENT = {"main.generate_series", "main.profile", "python.attributes", "python.elements", "python.items",
                 "python.referrers"}
OF_RECORDINGS = {name for name in NAMES if name.startswith("profile.")}

# As users have typed them.
QUERIES = [
    "SELECT name, value FROM information_schema.df_settings LIMIT 5",
    "SELECT func, file, lineno FROM python.backtrace ORDER BY depth LIMIT 5",
]


@pytest.fixture(scope="module", params=tables.chosen_interpreters(), ids=repr)
def asleep(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("schema")
    with Program([request.param.exe, PROGRAMS / "recorded.py"], env=request.param.env) as program:
        program.line()
        wait_for_all_asleep(program.pid, 4)
        yield {"process": program.pid, "core": tables.core_of(program.pid, folder),
               "snapshot": tables.snapshot_of(program.pid, folder)}


@pytest.fixture(params=["process", "snapshot", "core"])
def kind(request):
    return request.param


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OF_RECORDINGS])
def test_every_table_on_every_target(asleep, kind, name):
    if name in WITH_ARGUMENT:
        pytest.skip("needs an argument")
    answer = tables.query(asleep[kind], "SELECT * FROM %s LIMIT 300" % name)
    declared = [row["column_name"] for row in COLUMNS
                if "%s.%s" % (row["table_schema"], row["table_name"]) == name
                and row["is_hidden"] == "NO"]
    if answer:
        assert list(answer[0]) == declared
    elif name not in ("python.tasks", "python.task_frames"):  # this program has none
        assert answer.notes, "%s is empty and does not say why" % name


@pytest.mark.parametrize("query", QUERIES)
def test_queries_as_typed(asleep, query):
    tables.query(asleep["process"], query)


@pytest.mark.parametrize("name", sorted(COLLECTED))
def test_what_no_program_records_is_no_table(probing, target, name):
    """An error that says how to start the recording."""
    assert "main." + name not in NAMES and name not in NAMES
    pid = target("sleeper.py").pid
    for sql in ("SELECT * FROM " + name, "DESCRIBE " + name):
        done = probing("-t", pid, "query", sql)
        assert done.code == 2 and done.out == "", sql
        first, hint = done.err.splitlines()
        assert first == "probing: no such table: nothing records %s here" % name
        assert re.search(r"probing\.|memory_usage|memory --sites", hint), hint
    done = probing("tables", name)
    assert done.code == 2 and "when a program records it" in done.err


def test_tables_of_the_machine_need_no_target():
    for name in OF_MACHINE:
        tables.query(None, "SELECT * FROM " + name)
    with pytest.raises(Error, match="needs a target"):
        tables.query(None, "SELECT * FROM process.info")


@pytest.mark.parametrize("name", NAMES)
def test_columns_are_there(target, name):
    """Each can be selected, also those that SELECT * leaves out; their positions count from 1."""
    told = [row for row in COLUMNS
            if "%s.%s" % (row["table_schema"], row["table_name"]) == name]
    assert [row["ordinal_position"] for row in told] == list(range(1, len(told) + 1))
    assert {row["data_type"] for row in told} <= {"INTEGER", "REAL", "TEXT", "ANY"}
    columns = ", ".join(row["column_name"] for row in told)
    assert tables.query(target("sleeper.py").pid,
                        "SELECT %s FROM %s LIMIT 0" % (columns, name)) == []


def test_schemata():
    rows = tables.query(None, "SELECT * FROM information_schema.schemata").by("schema_name")
    assert set(rows) == {row["table_schema"] for row in TABLES}
    assert all(row["comment"] for row in rows.values())


def test_settings():
    with Session() as session:
        def told(name):
            return tables.run(session, "SELECT value FROM information_schema.df_settings "
                                       "WHERE name = '%s'" % name).one()["value"]

        assert told("probing.query.timeout") == "0"
        session.set("probing.query.timeout", "2.5")
        assert told("probing.query.timeout") == "2.5"
        assert told("probing.query.mode") == "default"
        with pytest.raises(Error, match="a number of bytes from 1 to"):
            session.set("probing.text.max", "-1")


def test_long_texts_are_cut(target):
    process = target("sleeper.py", env={"LONG": "é" * 40})
    sql = "SELECT value FROM process.environ WHERE name = 'LONG'"
    with Session(process.pid) as session:
        assert session.query(sql) == [("é" * 40,)]
        session.set("probing.text.max", "11")
        assert session.query(sql) == [("é" * 5 + "…",)], "not within a character"
        session.set("probing.text.max", "80")
        assert session.query(sql) == [("é" * 40,)]
        session.set("probing.text.max", "4")
        assert session.query("SELECT kind FROM process.info") == [("proc…",)]
        assert session.query("SHOW probing.text.max")[0][:2] == ("probing.text.max", "4")


def test_several_targets(target):
    """Each table of a target begins with the columns that name it, and those of the machine do not."""
    first, second = target("sleeper.py", env={"RANK": "0"}), target("sleeper.py")
    with Session(first.pid, second.pid) as session:
        rows = tables.run(session, "SELECT * FROM process.info")
        assert list(rows[0])[:3] == ["_target", "_pid", "_rank"]
        assert {row["_pid"] for row in rows} == {row["pid"] for row in rows} == {
            first.pid, second.pid}
        assert len(tables.run(session, "SELECT * FROM system.info")) == 1
        assert re.match(r"\d+$", rows[0]["_target"])


@pytest.mark.parametrize("table", ["locals", "stacks", "backtrace"])
def test_joins_ask_for_one_frame_of_one_thread(table):
    """The plan names the columns that reach the table by their positions: those of tid and depth."""
    columns = [row["column_name"] for row in COLUMNS
               if (row["table_schema"], row["table_name"]) == ("python", table)]
    plan = tables.query(None, "EXPLAIN QUERY PLAN SELECT x.func FROM python.threads t "
                              "CROSS JOIN python.stacks s USING (tid) CROSS JOIN python.%s x "
                              "ON x.tid = t.tid AND x.depth = s.depth" % table)
    scan, = (row["detail"] for row in plan if "SCAN x" in row["detail"])
    assert {columns[int(place)] for place in scan.split(",")[1:]} == {"tid", "depth"}


def test_sqlites_own_catalog(probing, target):
    """It may have fewer schemas than there are, those that are named first; and a warning says so."""
    process = target("asleep.py", 1)
    schemas = {name.split(".")[0] for name in NAMES} - {"main"}
    for schema in schemas:
        done = probing(process.pid, "query", "-f", "json", "SELECT name FROM %s.sqlite_master" % schema)
        assert done.code == 0 and "few of the tables" in done.err, (schema, done)
        assert {row["name"] for row in json.loads(done.out)} >= {
            name.split(".")[1] for name in NAMES if name.startswith(schema + ".") and name not in COLLECTED}, (schema, done)
    done = probing(process.pid, "query", "PRAGMA table_list")
    assert done.code == 0 and done.out and "few of the tables" in done.err, done

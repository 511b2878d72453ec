# SPDX-License-Identifier: GPL-3.0-or-later
"""All tables on all kinds of targets: none fails, none is empty without saying why; and what
information_schema says of them is so."""

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
OF_AGENT = {name for name, row in zip(NAMES, TABLES) if row["needs_agent"] == "YES"}
# They need no target, or need an argument.
OF_MACHINE = {name for name in NAMES
              if name.split(".")[0] in ("system", "gpu", "information_schema")}
OF_MACHINE |= {"cpu.utilization"}
WITH_ARGUMENT = {"main.generate_series"}

# As users have typed them.
QUERIES = [
    "SELECT * FROM memory_usage WHERE timestamp > now() - interval '5 min'",
    "SELECT operation_name, avg(duration_ms), count(*) FROM profiling_data WHERE timestamp > now()"
    " - interval '5 minutes' GROUP BY operation_name ORDER BY avg(duration_ms) DESC",
    "SELECT epoch, avg(loss), min(loss), count(*) AS steps FROM training_logs GROUP BY epoch"
    " ORDER BY epoch",
    "SELECT src_rank, dst_rank, avg(latency_ms) FROM comm_metrics",
    "SELECT avg(gpu_util) FROM gpu_metrics WHERE timestamp > now() - 60",
    "SELECT hour(timestamp), avg(memory_mb) FROM memory_usage GROUP BY hour(timestamp)",
    "SELECT function_name, sum(allocated_bytes) AS total_alloc FROM memory_allocations WHERE"
    " timestamp > now() - interval '1 hour' GROUP BY function_name ORDER BY total_alloc DESC",
    "SELECT name, value FROM information_schema.df_settings LIMIT 5",
    "SELECT func, file, lineno FROM python.backtrace ORDER BY depth LIMIT 5",
    "SELECT step, module, SUM(allocated) AS total_memory_mb, COUNT(*) AS operation_count FROM"
    " python.torch_trace WHERE step > 100 GROUP BY step, module ORDER BY total_memory_mb DESC"
    " LIMIT 10",
    "SELECT step, AVG(allocated), MAX(allocated) FROM python.torch_trace WHERE step >="
    " (SELECT MAX(step) - 20 FROM python.torch_trace) GROUP BY step ORDER BY step",
    "SELECT operation_name, AVG(duration_ms) AS avg_duration, COUNT(*) AS call_count FROM"
    " python.torch_trace WHERE timestamp > now() - interval '5 minutes' GROUP BY operation_name"
    " ORDER BY avg_duration DESC LIMIT 10",
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


@pytest.mark.parametrize("name", NAMES)
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


def test_empty_without_agent(target):
    process = target("sleeper.py")
    with Session(process.pid) as session:
        for name in sorted(OF_AGENT) * 2:
            assert session.query("SELECT * FROM " + name) == []
        assert session.warnings == [
            "nothing recorded: the agent is not loaded in %d (probing -t %d inject)"
            % (process.pid, process.pid)]
    assert len(OF_AGENT) >= 12


def test_agent_tables_of_a_file(asleep):
    for kind, words in [("core", "core file"), ("snapshot", "snapshot")]:
        answer = tables.query(asleep[kind], "SELECT * FROM python.torch_trace")
        assert answer == [] and answer.notes == [
            "nothing recorded: the agent was not loaded in this " + words]


def test_tables_of_the_machine_need_no_target():
    for name in OF_MACHINE:
        tables.query(None, "SELECT * FROM " + name)
    with pytest.raises(Error, match="needs a target"):
        tables.query(None, "SELECT * FROM process.info")


@pytest.mark.parametrize("name", NAMES)
def test_columns_are_there(target, name):
    """Each can be asked for, those too that SELECT * leaves out; their places count from 1."""
    told = [row for row in COLUMNS
            if "%s.%s" % (row["table_schema"], row["table_name"]) == name]
    assert [row["ordinal_position"] for row in told] == list(range(1, len(told) + 1))
    assert {row["data_type"] for row in told} <= {"INTEGER", "REAL", "TEXT"}
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
    """Each table of a target begins with which one, and those of the machine do not."""
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
    """The plan names the columns that reach the table by their places: those of tid and depth."""
    columns = [row["column_name"] for row in COLUMNS
               if (row["table_schema"], row["table_name"]) == ("python", table)]
    plan = tables.query(None, "EXPLAIN QUERY PLAN SELECT x.func FROM python.threads t "
                              "CROSS JOIN python.stacks s USING (tid) CROSS JOIN python.%s x "
                              "ON x.tid = t.tid AND x.depth = s.depth" % table)
    scan, = (row["detail"] for row in plan if "SCAN x" in row["detail"])
    assert {columns[int(place)] for place in scan.split(",")[1:]} == {"tid", "depth"}

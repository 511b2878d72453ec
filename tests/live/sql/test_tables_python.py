# SPDX-License-Identifier: GPL-3.0-or-later
"""python.backtrace, stacks, threads, locals and native.backtrace, compared with Python's own data and with
a dump, on live processes, cores and snapshots."""

import json
import os

import library
import pytest
import support
import tables

pytestmark = pytest.mark.every_interpreter  # of the few that tables.py chooses

WORKERS = 6


@pytest.fixture(scope="module", params=tables.chosen_interpreters(), ids=repr)
def told(request, tmp_path_factory):
    """Targets of all kinds, and the process's own data of its threads."""
    folder = tmp_path_factory.mktemp("told")
    program = support.HERE / "programs" / "self_told.py"
    with support.Target(request.param, program, str(WORKERS)) as process:
        word, _, said = process.line().partition(" ")
        assert word == "ready"
        core, pid = tables.kernel_core(request.param, program, str(WORKERS), folder=folder)
        targets = {"process": process.pid, "snapshot": tables.snapshot_of(process.pid, folder),
                   "core": core}
        yield {"core": pid}, process, targets, json.loads(said)


@pytest.fixture(params=["process", "snapshot", "core"])
def kind(request):
    return request.param


def test_stacks_are_what_python_says(told, kind):
    *_, targets, said = told
    rows = tables.query(targets[kind], "SELECT thread, func, lineno, depth FROM python.stacks "
                                       "WHERE thread LIKE 'w%' ORDER BY thread, depth")
    seen = {}
    for row in rows:
        assert row["depth"] == len(seen.setdefault(row["thread"], []))
        seen[row["thread"]].append([row["func"], row["lineno"]])
    assert seen == said


def test_stacks_are_those_of_a_dump(told, kind):
    *_, targets, _ = told
    rows = tables.query(targets[kind], "SELECT * FROM python.stacks ORDER BY tid, depth")
    expected = [(thread["tid"], depth, frame["func"], frame["qualname"], frame["file"],
                 frame["line"], frame["module"])
                for thread in sorted(support.dump(targets[kind])["threads"], key=lambda t: t["tid"])
                for depth, frame in enumerate(thread["frames"])]
    assert [(r["tid"], r["depth"], r["func"], r["qualname"], r["file"], r["lineno"], r["module"])
            for r in rows] == expected
    assert {r["frame_type"] for r in rows} == {"python"}
    assert {r["_error"] for r in rows} == {None}


def test_backtrace_is_of_the_main_thread_unless_told(told, kind):
    pids, process, targets, _ = told
    with library.Session(targets[kind]) as session:
        main = tables.run(session, "SELECT DISTINCT tid FROM python.backtrace")
        assert [row["tid"] for row in main] == [pids.get(kind, process.pid)]
        threads = tables.run(session, "SELECT tid, name FROM python.threads").by("name")
        other = threads["w3"]["tid"]
        depths = {}
        for sql in ("SELECT * FROM python.backtrace WHERE tid = %d" % other,
                    "SELECT * FROM python.backtrace(%d)" % other,
                    "SELECT * FROM python.backtrace WHERE tid IN (%d, 1)" % other,
                    "SELECT b.* FROM python.backtrace b JOIN python.threads t USING (tid) "
                    "WHERE t.name = 'w3'",
                    "SELECT b.* FROM python.threads t LEFT JOIN python.backtrace b "
                    "ON b.tid = t.tid WHERE t.name = 'w3'",
                    "SELECT * FROM python.backtrace "
                    "WHERE tid = (SELECT tid FROM python.threads WHERE name = 'w3')"):
            rows = tables.run(session, sql)
            assert {row["tid"] for row in rows} == {other}, sql
            depths[sql] = [row["depth"] for row in rows]
        assert len(set(map(str, depths.values()))) == 1, depths
        assert not tables.run(session, "SELECT * FROM python.backtrace WHERE tid = 1")
        every = tables.run(session, "SELECT DISTINCT tid FROM python.backtrace WHERE tid > 0")
        assert {row["tid"] for row in every} == {row["tid"] for row in threads.values()}


@pytest.mark.parametrize("where", [
    "depth < 3", "depth <= 2", "depth = 4", "depth BETWEEN 1 AND 3", "depth > 2",
    "depth < 3 AND func = 'descend'", "lineno > 20 ORDER BY depth LIMIT 2",
    "1 ORDER BY depth LIMIT 3 OFFSET 2", "1 ORDER BY depth DESC LIMIT 2", "depth IN (0, 11)",
    "func = 'descend' LIMIT 1", "1 LIMIT 12"])
def test_what_is_not_asked_for_makes_no_difference(told, where):
    """Bounds reach the reader; the rows equal those of the whole table."""
    *_, targets, _ = told
    with library.Session(targets["snapshot"]) as session:
        for table in ("python.backtrace", "python.backtrace WHERE tid = (SELECT max(tid) FROM "
                      "python.threads)", "python.stacks"):
            glue = " AND " if "WHERE" in table else " WHERE "
            bounded = tables.run(session, "SELECT tid, depth, func FROM %s%s%s" % (
                table, glue, where))
            whole = tables.run(session, "WITH whole AS MATERIALIZED (SELECT * FROM %s) "
                                        "SELECT tid, depth, func FROM whole WHERE %s" % (
                                            table, where))
            if "ORDER BY depth" in where and table == "python.stacks":
                assert sorted(r["depth"] for r in bounded) == sorted(r["depth"] for r in whole)
            else:
                assert bounded == whole, table


def test_threads(told, kind):
    pids, process, targets, said = told
    rows = tables.query(targets[kind], "SELECT * FROM python.threads").by("name")
    assert set(rows) == set(said) | {"MainThread"}
    assert {name for name, row in rows.items() if row["main"]} == {"MainThread"}
    assert rows["MainThread"]["tid"] == pids.get(kind, process.pid)
    for name, stack in said.items():
        assert rows[name]["frames"] == len(stack)
    if kind == "process":
        tids = {int(tid) for tid in os.listdir("/proc/%d/task" % process.pid)}
        assert {row["tid"] for row in rows.values()} == tids
        assert {row["state"] for row in rows.values()} == {"idle"}
        assert {row["pause_us"] for row in rows.values()} == {0.0}


@pytest.mark.parametrize("native", [False, True], ids=["python", "native"])
def test_joins_in_any_order_tell_the_same(told, kind, native):
    """Stacks and objects share what was found of Python, whichever of them searches for it first."""
    *_, targets, said = told
    with library.Session(targets[kind]) as session:
        tid = tables.run(session, "SELECT tid FROM python.threads WHERE name = 'w3'")[0]["tid"]
        objects = "(SELECT count(*) > 1000 AS many FROM python.objects) o"
        alone = tables.run(session, "SELECT * FROM " + objects)[0]["many"]  # snapshots lack them
        assert alone or kind == "snapshot"
        tables_joined = [
            "(SELECT func, lineno, depth, thread FROM python.stacks WHERE thread = 'w3') s",
            objects,
            "(SELECT count(*) AS files FROM native.modules) m"]
        if native:
            tables_joined.append(
                "(SELECT count(*) > 3 AS deep FROM native.backtrace WHERE tid = %d) n" % tid)
        for order in (tables_joined, tables_joined[::-1]):
            rows = tables.run(session, "SELECT * FROM %s ORDER BY depth" %
                              " CROSS JOIN ".join(order))
            assert [[row["func"], row["lineno"]] for row in rows] == said["w3"]
            assert {row["many"] for row in rows} == {alone} and rows[0]["files"] > 1
            assert not native or {row["deep"] for row in rows} == {1}


def test_locals(told, kind):
    *_, targets, _ = told
    rows = tables.query(targets[kind], "SELECT s.thread, l.depth, l.name, l.value, l.kind, l.type "
                                       "FROM python.locals l JOIN python.stacks s "
                                       "ON s.tid = l.tid AND s.depth = l.depth "
                                       "WHERE l.func = 'descend'")
    depths = {}
    for row in rows:
        if row["name"] == "text":
            assert (row["kind"], row["type"]) == ("argument", "str")
            depths.setdefault(row["thread"], []).append(row["value"])
    assert {name: sorted(values) for name, values in depths.items()} == {
        "w%d" % n: sorted(repr("x" * i) for i in range(n + 1)) for n in range(WORKERS)}


def test_native_backtrace_has_the_python_frames_between_c(told, kind):
    *_, targets, said = told
    rows = tables.query(targets[kind], "SELECT thread, func, lineno, frame_type, depth "
                                       "FROM native.backtrace WHERE thread LIKE 'w%' "
                                       "ORDER BY thread, depth")
    python, kinds = {}, {}
    for row in rows:
        kinds.setdefault(row["thread"], []).append(row["frame_type"])
        if row["frame_type"] == "python":
            python.setdefault(row["thread"], []).append([row["func"], row["lineno"]])
    assert python == said
    for name, types in kinds.items():
        assert types[0] != "python" and types[-1] != "python", name


def test_joins_tell_of_one_instant(target):
    """A busy thread moves on all the time, but not within a statement."""
    process = target("threads.py")
    with library.Session(process.pid) as session:
        for _ in range(20):
            rows = tables.run(session, "SELECT a.depth, a.ip = b.ip AS same FROM python.stacks a "
                                       "JOIN python.stacks b USING (tid, depth)")
            assert {row["same"] for row in rows} == {1}


def test_thousands_of_threads(target):
    count = support.count(1500, 5000)
    process = target("asleep.py", str(count))
    with library.Session(process.pid) as session:
        tids = {int(tid) for tid in os.listdir("/proc/%d/task" % process.pid)}
        rows = tables.run(session, "SELECT t.tid, count(s.depth) AS frames FROM python.threads t "
                                   "LEFT JOIN python.stacks s USING (tid) GROUP BY t.tid")
        assert {row["tid"] for row in rows} == tids
        assert min(row["frames"] for row in rows) > 0

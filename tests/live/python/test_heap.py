# SPDX-License-Identifier: GPL-3.0-or-later
"""Interpreters, modules, the garbage collector and its objects, compared with the process's own data."""
import json
import shutil
import subprocess

import pytest

import support

KINDS = {
    "BuiltinImporter": "builtin", "FrozenImporter": "frozen", "ExtensionFileLoader": "extension",
    "SourceFileLoader": "source", "SourcelessFileLoader": "bytecode",
    "_NamespaceLoader": "namespace", "NamespaceLoader": "namespace", "zipimporter": "zip",
}


def ask(target, sql, doubts=()):
    """The rows of a query, as dicts; its warnings must be @doubts."""
    where = target if isinstance(target, (str, bytes)) or hasattr(target, "joinpath") else target.pid
    done = subprocess.run([support.BINARY, "-t", str(where), "query", "-f", "json", sql],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    if not doubts:
        assert not done.stderr, done.stderr.decode()
    return json.loads(done.stdout.decode())


def start(target, interpreter, *arguments):
    process = target("heap.py", *arguments, interpreter=interpreter)
    process.truth = json.loads(process.line())
    process.interpreter = interpreter
    # It waits for its stdin, which the objects of its file know.
    support.wait_for_sleep(process.pid, "pipe_read", process.pid)
    return process


@pytest.fixture
def heap(target, interpreter):
    return start(target, interpreter)


def test_types(heap):
    rows = ask(heap, "SELECT type, objects, bytes, refs, _error FROM python.types")
    assert {row["_error"] for row in rows} == {None}
    # gc.get_objects() leaves out frozen objects; 3.12 freezes at its start.
    found = {row["type"]: row["n"] for row in ask(
        heap, "SELECT type, count(*) AS n FROM python.objects WHERE generation < 3 GROUP BY type")}
    truth = heap.truth["types"]
    for name, count in truth.items():
        if name.startswith("__main__."):
            assert (name, found[name]) == (name, count)
        # The program continues after it has counted.
        assert abs(found.get(name, 0) - count) <= count // 50 + 60, name
    assert found["__main__.Plain"] == 1000 and found["generator"] >= 200
    assert abs(sum(found.values()) - sum(truth.values())) < 300
    sizes = {row["type"]: row["bytes"] for row in rows}
    for name, size in heap.truth["bytes"].items():
        assert (name, sizes[name]) == (name, size)
    references = {row["type"]: row["refs"] for row in rows}
    assert references["__main__.Slots"] == 1000


def test_objects(heap):
    rows = ask(heap, "SELECT * FROM python.objects WHERE type = '__main__.Plain'")
    assert len(rows) == 1000 and len({row["address"] for row in rows}) == 1000
    one = [row for row in rows if row["address"] == heap.truth["one"]]
    assert len(one) == 1 and one[0]["refs"] == 1
    assert one[0]["repr"] == "<__main__.Plain object at 0x%x>" % heap.truth["one"]
    assert {row["generation"] for row in rows} == {0 if heap.interpreter.free_threaded else 2}
    assert len(ask(heap, "SELECT address FROM python.objects LIMIT 7")) == 7
    assert ask(heap, "SELECT * FROM python.objects WHERE interpreter = 77") == []


def test_frozen_objects(target, interpreter):
    if interpreter.version < (3, 7):
        pytest.skip("gc.freeze() came with 3.7")
    process = start(target, interpreter, "freeze")
    counts = ask(process, "SELECT objects FROM python.gc ORDER BY generation")
    assert counts[3]["objects"] == process.truth["frozen"] > 1500
    rows = ask(process, "SELECT type, generation, count(*) AS n FROM python.objects "
                        "WHERE type LIKE '!_!_main!_!_.%' ESCAPE '!' GROUP BY 1, 2")
    frozen = {row["type"]: row["n"] for row in rows if row["generation"] == 3}
    assert (frozen["__main__.Plain"], frozen["__main__.Outer.Inner"]) == (1000, 500)
    assert "__main__.Slots" not in frozen


def test_collector(heap):
    rows = ask(heap, "SELECT * FROM python.gc")
    truth = heap.truth
    assert [row["generation"] for row in rows] == \
        ([0, 1, 2, 3] if heap.interpreter.version >= (3, 7) else [0, 1, 2])
    for row in rows:
        assert row["enabled"] == 0 and row["collecting"] == 0 and row["_error"] is None
        assert row["garbage"] == (0 if heap.interpreter.version >= (3, 7) else None)
    for row, stats, count, threshold in zip(
            rows, truth["stats"], truth["count"], truth["threshold"]):
        for name in ("collections", "collected", "uncollectable"):
            assert row[name] == stats[name]
        assert row["threshold"] == threshold
        assert row["count"] == count or row["generation"] == 0 and row["count"] >= count
        if heap.interpreter.version >= (3, 15):
            assert row["seconds"] == pytest.approx(stats["duration"])
        else:
            assert row["seconds"] is None


def test_modules(heap):
    rows = ask(heap, "SELECT * FROM python.modules")
    truth = heap.truth["modules"]
    if heap.interpreter.version >= (3, 6):
        assert [row["name"] for row in rows] == [module["name"] for module in truth]
    else:
        assert {row["name"] for row in rows} == {module["name"] for module in truth}
    told = {module["name"]: module for module in truth}
    for row in rows:
        module = told[row["name"]]
        for column in ("address", "type", "file", "version", "package"):
            assert (row["name"], column, row[column]) == (row["name"], column, module[column])
        assert row["names"] == module["names"] or row["name"] == "__main__"
        assert (row["name"], row["kind"]) == (row["name"], KINDS.get(module["loader"]))
    assert told["with_version"]["version"] == "1.2.3"
    kinds = {row["name"]: row["kind"] for row in rows}
    assert kinds["sys"] == "builtin" and kinds["__main__"] == "source"
    assert kinds["only_a_folder"] == "namespace"


def test_interpreter(heap):
    row, = ask(heap, "SELECT * FROM python.interpreters")
    assert row["interpreter"] == 0 and row["main"] == 1 and row["threads"] == 3
    assert row["version"] == heap.interpreter.full_version
    assert row["modules"] == len(heap.truth["modules"])
    assert row["free_threaded"] == heap.interpreter.free_threaded
    assert row["debug_build"] == heap.truth["debug_build"]
    assert (row["own_gil"] is None) == (heap.interpreter.version < (3, 12))
    assert row["gc"] == 0 and row["finalizing"] == 0 and row["_error"] is None


@pytest.fixture
def newest_heap(target, newest):
    return start(target, newest)


TABLES = ["SELECT * FROM python.modules", "SELECT * FROM python.interpreters",
          "SELECT generation, count, threshold, collections FROM python.gc"]


def test_snapshot_tells_the_same(newest_heap, tmp_path, probing):
    file = tmp_path / "file.snap"
    subprocess.run([support.BINARY, "-p", str(newest_heap.pid), "snapshot", "-o", file],
                   check=True, stdout=subprocess.DEVNULL)
    for sql in TABLES:
        assert ask(file, sql) == ask(newest_heap, sql)
    # Objects are too much for it, and it says so: of the types that it has, or of all.
    said = probing("-t", file, "query", "-f", "json", "SELECT DISTINCT _error FROM python.types")
    assert said.code == 0 and "does not contain all objects" in said.out + said.err, said


@pytest.mark.skipif(not shutil.which("gcore"), reason="gcore is not installed")
def test_core_tells_the_same(newest_heap, tmp_path):
    subprocess.run(["gcore", "-o", tmp_path / "core", str(newest_heap.pid)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    core = tmp_path / ("core.%d" % newest_heap.pid)
    for sql in TABLES + ["SELECT * FROM python.types", "SELECT * FROM python.objects LIMIT 5000"]:
        assert ask(core, sql) == ask(newest_heap, sql)


def test_objects_of_a_process_that_changes(target, interpreter):
    """Permanent objects are counted exactly, or the answer says what is missing."""
    process = target("heap_churn.py", interpreter=interpreter)
    sure = readings = 0
    while sure < support.count(2, 70) and readings < support.count(50, 100):
        readings += 1
        rows = ask(process, "SELECT objects, _error FROM python.types WHERE type = '__main__.Keep'")
        row = rows[0] if rows else {"objects": 0, "_error": "none"}
        assert row["objects"] == 20000 or row["_error"], row
        sure += row["objects"] == 20000
    assert sure >= support.count(2, 70)
    assert process.alive()


def test_interpreters(target, interpreter):
    if interpreter.version < (3, 8):
        pytest.skip("Python programs make interpreters since 3.8")
    process = target("heap_interpreters.py", interpreter=interpreter)
    made = [int(word) for word in process.ready]
    rows = ask(process, "SELECT interpreter, main, own_gil FROM python.interpreters ORDER BY 1")
    assert [(row["interpreter"], row["main"]) for row in rows] == [(0, 1)] + [(i, 0) for i in made]
    if interpreter.version >= (3, 13):
        assert [row["own_gil"] for row in rows] == [1, 1]
    for each in [0] + made:
        names = {row["name"] for row in ask(
            process, "SELECT name FROM python.modules WHERE interpreter = %d" % each)}
        assert {"sys", "builtins"} <= names
        assert ("only_in_main" in names) == (each == 0)
        counts = ask(process, "SELECT sum(objects) AS n FROM python.types "
                              "WHERE interpreter = %d" % each)
        assert counts[0]["n"] > 1000
        assert len(ask(process, "SELECT * FROM python.gc WHERE interpreter = %d" % each)) == 4

# SPDX-License-Identifier: GPL-3.0-or-later
"""libprobing in a user's program."""

import ctypes
import os
import shutil
import subprocess
import threading

import environment
import library
import pytest
import support
from library import LIBRARY, Error, Session, check


def test_rows_and_types(target):
    process = target("threads.py")
    with Session(process.pid) as session:
        assert session.query("SELECT 1, 2.5, 'x', NULL, x'00ff'") == \
            [(1, 2.5, "x", None, b"\0\xff")]
        threads = session.query("SELECT tid, main FROM python.threads")
        assert sorted(tid for tid, _ in threads) == sorted(
            int(tid) for tid in os.listdir("/proc/%d/task" % process.pid))
        assert [tid for tid, main in threads if main] == [process.pid]


def test_several_statements_and_stopping(newest):
    with Session() as session:
        assert session.query("SELECT 1; ; SELECT 2 -- no more\n;") == [(1,), (2,)]
        seen = session.query("SELECT value FROM generate_series(1, 1000); SELECT 'not reached'",
                             on_row=lambda row: row[0] == 3)
        assert seen == [(1,), (2,), (3,)]
        assert session.query("SELECT 'again'") == [("again",)]


def test_descriptions(newest):
    with Session() as session:
        statement = ctypes.c_void_p()
        rest = ctypes.c_char_p()
        check(LIBRARY.probing_prepare(
            session.pointer, b"SELECT idle_seconds AS idle, 1 + 1 FROM python.threads; SELECT 2",
            ctypes.byref(rest), ctypes.byref(statement)))
        assert LIBRARY.probing_columns(statement) == 2
        assert LIBRARY.probing_column_name(statement, 0) == b"idle"
        assert LIBRARY.probing_column_unit(statement, 0) == b"s"
        assert b"slept" in LIBRARY.probing_column_description(statement, 0)
        assert LIBRARY.probing_column_description(statement, 1) is None
        assert rest.value.strip() == b"SELECT 2"
        LIBRARY.probing_finish(statement)


def test_a_statement_runs_again_and_sees_a_new_instant(target):
    process = target("threads.py")
    with Session(process.pid) as session:
        statement, row = ctypes.c_void_p(), ctypes.c_int()
        check(LIBRARY.probing_prepare(session.pointer, b"SELECT count(*) FROM python.threads",
                                      None, ctypes.byref(statement)))
        for _ in range(3):
            check(LIBRARY.probing_next(statement, ctypes.byref(row)))
            assert row.value == 1
            assert library.value(statement, 0) == len(os.listdir("/proc/%d/task" % process.pid))
            LIBRARY.probing_reset(statement)
        process.kill()
        with pytest.raises(Error) as caught:
            check(LIBRARY.probing_next(statement, ctypes.byref(row)))
        assert caught.value.code == library.NO_PROCESS


@pytest.mark.parametrize("sql, code, words, hint", [
    ("SELECT", library.USAGE, "incomplete input", None),
    ("SELECT x FROM python.thread", library.USAGE, "no such table", "python.threads"),
    ("SELECT fnc FROM python.stacks", library.USAGE, "fnc", "func"),
    ("SELECT 1 FROM python.stacks", library.USAGE, "needs a target", "-t TARGET"),
    ("DELETE FROM python.stacks", library.USAGE, "", ""),
    ("SELECT interval '2 months'", library.USAGE, "months", "days"),
    ("SET probing.query.mod = 1", library.USAGE, "probing.query.mod", "probing.query.mode"),
    ("SET probing.query.mode = fast", library.USAGE, "default, nonblocking or freeze", None),
])
def test_errors_say_what_to_do(sql, code, words, hint):
    with Session() as session:
        with pytest.raises(Error) as caught:
            session.query(sql)
        assert caught.value.code == code
        assert words in str(caught.value)
        if hint:
            assert hint in caught.value.hint
        assert session.query("SELECT 1") == [(1,)]


def test_targets_that_cannot_be():
    with Session() as session:
        with pytest.raises(Error) as caught:
            check(LIBRARY.probing_open(session.pointer, b"4194305", None))
        assert caught.value.code == library.NO_PROCESS


FOREVER = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"


def test_cancel_from_another_thread():
    with Session() as session:
        started = threading.Event()

        def row(_):
            started.set()
            return 0

        def cancel():
            started.wait()
            session.cancel()

        canceller = threading.Thread(target=cancel)
        canceller.start()
        with pytest.raises(Error) as caught:
            session.query("SELECT 1; " + FOREVER, on_row=row)
        canceller.join()
        assert caught.value.code == library.CANCELLED
        assert session.query("SELECT 2") == [(2,)]


def test_a_cancellation_between_statements_ends_the_next():
    with Session() as session:
        session.set("probing.query.timeout", "5")
        with pytest.raises(Error) as caught:
            session.query("SELECT 1; " + FOREVER, on_row=lambda row: session.cancel() or 0)
        assert caught.value.code == library.CANCELLED
        assert session.query("SELECT 2") == [(2,)]


def test_timeout():
    with Session() as session:
        session.set("probing.query.timeout", "0.2")
        with pytest.raises(Error) as caught:
            session.query(FOREVER)
        assert caught.value.code == library.TIMEOUT
        assert session.query("SELECT value FROM information_schema.df_settings "
                             "WHERE name = 'probing.query.timeout'") == [("0.2",)]


def test_sessions_are_independent(target):
    """Each in a thread of its own, on targets of its own."""
    processes = [target("threads.py") for _ in range(3)]
    results = {}

    def read(process):
        with Session(process.pid) as session:
            for _ in range(20):
                rows = session.query("SELECT _pid, count(*) FROM python.threads")
                results.setdefault(process.pid, set()).update(rows)

    readers = [threading.Thread(target=read, args=(process,)) for process in processes]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert results == {p.pid: {(p.pid, len(os.listdir("/proc/%d/task" % p.pid)))}
                       for p in processes}


def test_several_targets_are_one_result(target):
    a, b = target("threads.py"), target("asleep.py", "3")
    with Session(a.pid, b.pid) as session:
        rows = session.query("SELECT * FROM python.threads")
        assert {row[:2] for row in rows} == {(str(a.pid), a.pid), (str(b.pid), b.pid)}
        both = session.query("SELECT _pid, count(*) FROM python.threads GROUP BY _pid")
        assert dict(both) == {p.pid: len(os.listdir("/proc/%d/task" % p.pid)) for p in (a, b)}
        a.kill()
        rows = session.query("SELECT DISTINCT _pid FROM python.threads")
        assert rows == [(b.pid,)]
        assert any(str(a.pid) in warning and "left out" in warning
                   for warning in session.warnings)


EXAMPLE = support.ROOT / "docs" / "examples" / "stacks.c"


@pytest.mark.parametrize("compiler", [["gcc", "-std=c11"], ["g++", "-x", "c++", "-std=c++11"]],
                         ids=["c", "c++"])
def test_the_example_compiles_and_runs(compiler, target, tmp_path):
    environment.need(compiler[0])
    process = target("threads.py")
    program = tmp_path / "stacks"
    build = library.PATH.parent
    subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", "-I", str(support.ROOT / "lib"),
                    str(EXAMPLE), "-o", str(program), "-L", str(build), "-lprobing",
                    "-Wl,-rpath," + str(build)], check=True)
    result = subprocess.run([str(program), str(process.pid)], check=True, text=True,
                            stdout=subprocess.PIPE)
    assert "MainThread" in result.stdout
    refused = subprocess.run([str(program), "4194305"], check=False, text=True,
                             stderr=subprocess.PIPE)
    assert refused.returncode == 1 and "4194305" in refused.stderr


def test_pkg_config_tells_how_to_build_with_it(target, tmp_path):
    """For each installation: the requested folder."""
    process, program = target("threads.py"), tmp_path / "stacks"
    folder = tmp_path / "lib" / "pkgconfig"
    for prefix in ("/elsewhere", tmp_path):
        subprocess.run(["make", "-s", "-C", support.ROOT, "O=%s/build" % tmp_path,
                        "prefix=%s" % prefix, "%s/build/probing.pc" % tmp_path], check=True)
    folder.mkdir(parents=True)
    (tmp_path / "include").mkdir()
    shutil.copy(tmp_path / "build" / "probing.pc", folder)
    shutil.copy(support.ROOT / "lib" / "probing.h", tmp_path / "include")
    for name in ("libprobing.so", "libprobing.so.1"):
        shutil.copy(library.PATH, tmp_path / "lib" / name)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "probing"], check=True, text=True,
                           stdout=subprocess.PIPE, env=dict(os.environ, PKG_CONFIG_PATH=str(folder)))
    subprocess.run(["gcc", str(EXAMPLE), "-o", str(program), *flags.stdout.split()], check=True)
    result = subprocess.run([str(program), str(process.pid)], check=True, text=True,
                            stdout=subprocess.PIPE,
                            env=dict(os.environ, LD_LIBRARY_PATH=str(tmp_path / "lib")))
    assert "MainThread" in result.stdout


# Parts used only by the package for scripts.
OF_SCRIPTS = ("probing_object", "probing_object_each", "probing_set_extension")


def test_only_its_own_symbols_are_seen():
    symbols = subprocess.run(["nm", "-D", "--defined-only", str(library.PATH)], check=True,
                             text=True, stdout=subprocess.PIPE).stdout.split("\n")
    names = {line.split()[-1] for line in symbols if line}
    assert names - {"PROBING_0.1"} == {
        "%s@@PROBING_0.1" % name for name in [*library._SIGNATURES, *OF_SCRIPTS]}


def test_dump_is_that_of_the_command(target):
    process = target("asleep.py", "3")
    support.wait_for_all_asleep(process.pid, 4)
    locals_and_source = 5
    there = support.dump(process.pid, "--locals", "--source")
    with Session(process.pid) as session:
        dump = session.dump(what=locals_and_source)
        one = session.dump(tid=dump["threads"][-1]["tid"])
    assert [(each["tid"], each["frames"]) for each in dump["threads"]] == [
        (each["tid"], each["frames"]) for each in there["threads"]]
    assert [each["tid"] for each in one["threads"]] == [dump["threads"][-1]["tid"]]


def test_no_growth(target):
    """A session that is used for long does not collect memory."""
    process = target("threads.py")

    def resident():
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1])

    with Session(process.pid) as session:
        for _ in range(30):
            session.query("SELECT * FROM python.stacks JOIN python.threads USING (tid)")
        before = resident()
        for _ in range(300):
            session.query("SELECT * FROM python.stacks JOIN python.threads USING (tid)")
        assert resident() - before < 300

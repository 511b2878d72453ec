# SPDX-License-Identifier: GPL-3.0-or-later
"""The plugin in LLDB: on attached processes, cores and behind a gdbserver its output equals the command's."""

import os
import re
import subprocess

import debuggers
import pytest
import support
import tables
from debuggers import known, sleeper, sleeping  # noqa: F401 (fixtures)
from debuggers import lldb, query_commands, same_rows, shell_rows

pytestmark = debuggers.needs_lldb


def attached(process, *given):
    return lldb(*given, arguments=["-p", process.pid])


def test_an_attached_process(sleeping):
    expected = shell_rows(sleeping.pid)
    session = attached(sleeping, *query_commands(), ("info",), "probing info")
    same_rows(session, expected)
    assert "memory directly, registers through lldb" in session.part("info")
    assert sleeping.alive()


def test_a_core(sleeping, tmp_path):
    if sleeping.interpreter.version >= (3, 13) and "debian" in sleeping.interpreter.name:
        pytest.skip("gcore stops short at the guard pages of newer C libraries")
    core = tables.core_of(sleeping.pid, tmp_path)
    exe = os.readlink("/proc/%d/exe" % sleeping.pid)
    session = lldb(*query_commands(), ("info",), "probing info",
                   arguments=["-c", core, exe])
    same_rows(session, shell_rows(core))
    assert "through lldb" in session.part("info")


@debuggers.needs_gdbserver
def test_behind_a_gdbserver(sleeping):
    expected = shell_rows(sleeping.pid)
    with debuggers.gdbserver(sleeping.pid) as address:
        session = lldb("gdb-remote " + address, *query_commands(), ("info",), "probing info",
                       arguments=[os.readlink("/proc/%d/exe" % sleeping.pid)])
    same_rows(session, expected)
    assert "through lldb" in session.part("info") and "directly" not in session.part("info")


def test_moving_between_frames(sleeper):
    session = attached(sleeper, ("up",), "probing up", "frame info", ("locals",), "probing locals",
                       ("list",), "probing list", ("print",), "probing print -t argument",
                       ("marked",), "probing backtrace", ("down",), "probing down", ("end",),
                       "probing down")
    assert re.search(r"^#1   outer  .*sleeper.py:16\n16       return sleep\(\)\n.*C frame \d+",
                     session.part("up"), re.M), session
    assert "_PyEval_EvalFrame" in session.part("up").split("C frame", 1)[1].split("\n", 1)[1]
    assert "shared" in session.part("locals") and "'cell'" in session.part("locals")
    assert re.search(r"^>   16 ", session.part("list"), re.M)
    assert re.search(r"^\(str at 0x[0-9a-f]+\) \"it's", session.part("print"), re.M), session
    assert "\n* #1" in session.part("marked")
    assert session.part("down").count("#0   outer.<locals>.sleep ") == 1
    assert "error: probing: this is the innermost frame" in session.err


def test_threads_and_a_snapshot(target, tmp_path):
    process = target("threads.py")
    file = tmp_path / "saved"
    session = attached(process, ("threads",), "probing threads", "probing snapshot %s" % file)
    for name in ("MainThread", "waiter-0", "worker"):
        assert name in session.part("threads")
    done = subprocess.run([support.BINARY, "-t", file, "debug", "--dump"], stdout=subprocess.PIPE,
                          check=True)
    assert b"rec_busy" in done.stdout


def test_settings_and_help(sleeper):
    session = attached(
        sleeper, ("shown",), "probing set", "probing set format json", ("json",),
        "probing query SELECT 1 AS a", ("value",), "probing set max-string 3", "probing print shared",
        ("stack",), "probing set format table", "probing backtrace", ("help",), "help probing", ("query",), "help probing query")
    assert session.part("shown").split()[-8:] == ["color", "auto", "format", "table", "max-string",
                                                  "4096", "pretty", "off"]
    assert session.rows("json") == [{"a": 1}]
    assert session.part("value").strip() == "'ce…" and "sleeper.py:13" in session.part("stack"), session
    for name in ("backtrace", "query", "threads", "locals", "up", "down", "frame", "list", "tables",
                 "snapshot", "info", "set"):
        assert re.search(r"^ +%s +-- [A-Z]" % name, session.part("help"), re.M), session
    assert "--format FORMAT" in session.part("query")


@pytest.mark.parametrize("command, words", [
    ("probing query SELEC 1", ["syntax error"]),
    ("probing query -f xml SELECT 1", ["no format 'xml'", "json"]),
    ("probing backtrace --tid 1", ["thread 1 runs no Python", "probing threads"]),
    ("probing frame 99", ["no frame 99", "from 0 to 2"]),
    ("probing set format xml", ["format is one of"]),
    ("probing set frobnicate 1", ["no setting 'frobnicate'"]),
])
def test_errors_are_one_line_that_says_what_to_do(sleeper, command, words):
    session = attached(sleeper, command)
    lines = [line for line in session.err.splitlines() if line.startswith("error: probing: ")]
    assert len(lines) == 1, session
    for word in words:
        assert word in lines[0]
    assert "Traceback" not in session.err


def test_without_a_process():
    for command in ("backtrace", "info", "query SELECT * FROM python.threads"):
        session = lldb("probing " + command)
        assert "error: probing: " in session.err, session
        assert "there is no process" in session.err or "no thread is selected" in session.err


def test_starting_lldb(sleeper):
    line = subprocess.run([support.BINARY, "lldb", "--print"], stdout=subprocess.PIPE,
                          check=True).stdout.decode()
    assert line == debuggers.LOAD_IN_LLDB + "\n"
    done = subprocess.run([support.BINARY, "lldb", str(sleeper.pid)],
                          input=b"probing backtrace\nquit\n", stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False, timeout=60)
    assert b"sleeper.py:13" in done.stdout

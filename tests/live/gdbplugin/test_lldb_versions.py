# SPDX-License-Identifier: GPL-3.0-or-later
"""The plugin in other versions of LLDB than this machine's own: `make test-debuggers` gets them."""

import functools
import os
import re

import debuggers
import pytest
from debuggers import answers, shell
from debuggers import known, sleeper, sleeping  # noqa: F401 (fixtures)
from test_break_py_early import before_run_in_lldb, program  # noqa: F401 (fixture)

VERSIONS = debuggers.others("lldb")


@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_as_the_command_says(version, sleeping, tmp_path):
    run = functools.partial(debuggers.lldb, arguments=["-p", sleeping.pid], program=version["lldb"])
    debuggers.says_what_the_command_says(run, "lldb", sleeping, tmp_path / "saved.snapshot")


@pytest.mark.parametrize("version", VERSIONS)
def test_moving_between_frames(version, sleeper):
    session = debuggers.lldb(
        ("threads",), "probing threads", ("up",), "probing up", ("down",), "probing down",
        ("two",), "probing frame 2", ("locals",), "probing locals 1", ("marked",),
        "probing backtrace", ("print",), "probing print --type sys.argv[0]", ("list",),
        "probing list", ("native",), "probing backtrace --native", ("end",), "probing up",
        arguments=["-p", sleeper.pid], program=version["lldb"])
    assert "MainThread" in session.part("threads"), session
    assert re.search(r"^#1   outer  .*sleeper.py:16\n16       return sleep\(\)\n.*C frame \d+",
                     session.part("up"), re.M), session
    assert session.part("down").count("#0   outer.<locals>.sleep ") == 1
    assert "#2   <module> " in session.part("two")
    assert "shared" in session.part("locals")
    assert [line[:4] for line in session.part("marked").splitlines() if line[:1] == "*"] == ["* #2"]
    assert re.search(r"^\(str at 0x[0-9a-f]+\) '/\S*sleeper.py'$", session.part("print"), re.M)
    assert re.search(r"^>   19  outer\(", session.part("list"), re.M)
    assert "_io_FileIO_readall_impl" in session.part("native")
    assert "error: probing: there is no frame 3: they go from 0 to 2" in session.err


@debuggers.needs_gdbserver
@pytest.mark.parametrize("version", VERSIONS)
def test_behind_a_gdbserver(version, sleeper):
    expected = debuggers.shell_rows(sleeper.pid)
    with debuggers.gdbserver(sleeper.pid) as address:
        session = debuggers.lldb(
            "gdb-remote " + address, *debuggers.query_commands(), ("info",), "probing info",
            arguments=[os.readlink("/proc/%d/exe" % sleeper.pid)], program=version["lldb"])
    debuggers.same_rows(session, expected)
    assert "through lldb" in session.part("info") and "directly" not in session.part("info")


@pytest.mark.parametrize("version", VERSIONS)
def test_code_that_does_not_end(version, sleeper):
    session = debuggers.lldb(("eval",), "probing eval -t 0.5 while True: pass",
                             arguments=["-p", sleeper.pid], program=version["lldb"])
    assert "is interrupted as soon as the process runs" in session.err, session
    assert sleeper.alive() and shell(sleeper, "1 + 1") == "2\n"


@pytest.mark.parametrize("version", VERSIONS)
def test_breakpoints_before_run(version, known, program):  # noqa: F811
    before_run_in_lldb(known, program, version["lldb"])

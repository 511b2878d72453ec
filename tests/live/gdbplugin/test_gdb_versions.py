# SPDX-License-Identifier: GPL-3.0-or-later
"""The plugin in other versions of gdb than this machine's own: `make test-debuggers` gets them."""

import functools
import os
import re

import debuggers
import pytest
import support
import tables
from debuggers import answers, shell
from debuggers import known, sleeper  # noqa: F401 (fixtures)

PROGRAMS = support.HERE / "programs"


@pytest.fixture(params=[i for i in tables.chosen_interpreters() if i.version in ((3, 11), (3, 13))],
                ids=repr)
def sleeping(request):
    """Threads that sleep for good."""
    with support.Target(request.param, PROGRAMS / "recorded.py") as process:
        process.line()
        support.wait_for_all_asleep(process.pid, len(support.thread_ids(process.pid)))
        yield process


@pytest.mark.parametrize("version", debuggers.others("gdb"))
def test_the_same_as_the_command_says(version, sleeping, tmp_path):
    run = functools.partial(debuggers.gdb, arguments=["-p", sleeping.pid], program=version["gdb"])
    debuggers.says_what_the_command_says(run, "gdb", sleeping, tmp_path / "saved.snapshot")


@pytest.mark.parametrize("version", debuggers.others("gdb"))
def test_moving_between_frames(version, sleeper):
    session = debuggers.gdb(
        ("threads",), "probing threads", ("up",), "probing up", ("down",), "probing down",
        ("two",), "probing frame 2", ("locals",), "probing locals 1", ("marked",),
        "probing backtrace", ("print",), "probing print --type sys.argv[0]", ("list",),
        "probing list", ("native",), "probing backtrace --native", "set probing pretty on",
        ("pretty",), "print PyExc_KeyError", ("end",), "probing up",
        arguments=["-p", sleeper.pid], program=version["gdb"])
    assert "MainThread" in session.part("threads"), session
    assert re.search(r"^#1   outer  .*sleeper.py:16\n16       return sleep\(\)\n.*C frame \d+",
                     session.part("up"), re.M), session
    assert session.part("down").startswith("#0   outer.<locals>.sleep ")
    assert session.part("two").startswith("#2   <module> ")
    assert "shared" in session.part("locals")
    assert [line[:4] for line in session.part("marked").splitlines() if line[:1] == "*"] == ["* #2"]
    assert re.search(r"^\(str at 0x[0-9a-f]+\) '/.*sleeper.py'$", session.part("print"), re.M)
    assert re.search(r"^>   19  outer\(", session.part("list"), re.M)
    # Debian's has a system call inlined there.
    reads = "_Py_read|_io_FileIO_read" if debuggers.has_function(sleeper.pid, "_Py_read") else "read"
    assert re.search(reads, session.part("native")), session
    assert "<class 'KeyError'>" in session.part("pretty"), session
    assert session.err.strip().splitlines()[-1] == \
        "probing: there is no frame 3: they go from 0 to 2"


@pytest.mark.parametrize("server", ["its own", "this machine's"])
@pytest.mark.parametrize("version", debuggers.others("gdb"))
def test_behind_a_gdbserver(version, server, sleeper):
    program = version["gdbserver"] if server == "its own" else "gdbserver"
    expected = debuggers.shell_rows(sleeper.pid)
    with debuggers.gdbserver(sleeper.pid, program) as address:
        session = debuggers.gdb(
            "target remote " + address, *debuggers.query_commands(), ("eval",),
            "probing eval print('far'); 2 ** 10", ("again",), "probing eval 2", ("end",),
            arguments=[os.readlink("/proc/%d/exe" % sleeper.pid)], program=version["gdb"])
    debuggers.same_rows(session, expected)
    assert session.part("eval").strip().endswith("far\n1024"), session
    assert answers(session, "again") == "2", session
    assert sleeper.alive() and shell(sleeper, "3") == "3\n"


@pytest.mark.parametrize("version", debuggers.others("gdb"))
def test_code_that_does_not_end(version, sleeper):
    session = debuggers.gdb(("eval",), "probing eval -t 0.5 while True: pass",
                            arguments=["-p", sleeper.pid], program=version["gdb"])
    assert "is interrupted as soon as the process runs" in session.err
    assert "SIGURG" not in session.out and "#0" not in session.part("eval"), session
    assert sleeper.alive() and shell(sleeper, "1 + 1") == "2\n"

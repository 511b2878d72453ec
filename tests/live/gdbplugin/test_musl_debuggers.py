# SPDX-License-Identifier: GPL-3.0-or-later
"""Code in gdb and LLDB in a Python on musl, whose stacks cannot be unwound: it runs where nothing
holds a lock, and is refused where something may."""

import os

import debuggers
import pytest
import support
from debuggers import attached, both, printed, problem

pytestmark = pytest.mark.skipif(not support.ON_MUSL, reason="no Python on musl")
MUSL = pytest.mark.parametrize("interpreter", support.ON_MUSL, ids=repr)
# One thread, in malloc() or in a system call of it most of the time.
ALLOCATES = """
print("ready", flush=True)
broken, ends = 0, False
while not ends:
    for block in [bytes([i]) * (1000 + 3700 * i) for i in range(50)]:
        broken += block[:1] * len(block) != block
"""
SYSTEM = "import os; print('ready', flush=True); os.system('read line; exit 0')"
SIGNAL = """
import os, signal
signal.signal(signal.SIGUSR1, lambda *_: None)
print("ready", flush=True)
os.read(0, 1)
"""


class Code(support.Program):
    """Python code that says when it is ready."""

    def __init__(self, interpreter, code):
        super().__init__([interpreter.exe, "-c", code])
        assert self.line() == "ready"


@both
@MUSL
@pytest.mark.parametrize("mode", ["idle", "busy"])
def test_code_is_evaluated(start, interpreter, target, mode):
    process = target("evaluated.py", mode, interpreter=interpreter)
    session = attached(start, process, ("first",), "probing eval print('shown'); 6 * 7",
                       ("second",), "probing eval numbers.append(4); numbers",
                       ("inject",), "probing inject")
    assert printed(session, "first").endswith("shown\n42"), session
    assert printed(session, "second").endswith("[1, 2, 3, 4]"), session
    assert "the agent was there already" in session.part("inject")
    assert process.alive() and debuggers.shell(process, "numbers") == "[1, 2, 3, 4]\n"


@both
@MUSL
def test_while_all_threads_allocate(start, interpreter, target):
    process = target("allocates.py", interpreter=interpreter)
    for _ in range(support.count(3, 50)):
        session = attached(start, process, ("eval",), "probing eval len(broken)")
        assert printed(session, "eval").endswith("0"), session
    assert process.alive() and debuggers.shell(process, "broken") == "[]\n"


@both
@MUSL
def test_while_the_only_thread_allocates(start, interpreter):
    """It comes out of musl before it is made to call anything."""
    for _ in range(support.count(3, 50)):
        with Code(interpreter, ALLOCATES) as process:
            session = attached(start, process, ("eval",), "probing eval broken")
            assert printed(session, "eval").endswith("0"), session
            debuggers.shell(process, "ends = True")
            assert process.wait() == (0, "")


@both
@MUSL
def test_a_breakpoint_of_python(start, interpreter, target):
    process = target("evaluated.py", "busy", interpreter=interpreter)
    line = (debuggers.PROGRAMS / "evaluated.py").read_text().splitlines().index(
        "        count += 1") + 1
    session = attached(start, process, "probing break-py evaluated.py:%d" % line, ("stopped",),
                       "continue", ("eval",), "probing eval count > 0",
                       "probing break-py --delete 1")
    assert "Python breakpoint 1, <module>" in session.part("stopped"), session
    assert "True" in printed(session, "eval") and process.alive(), session


@both
@MUSL
def test_a_call_of_musl_that_may_hold_locks_is_refused(start, interpreter):
    with Code(interpreter, SYSTEM) as process:
        support.wait_for_sleep(process.pid, "do_wait")
        session = attached(start, process, "probing eval 1")
        assert "in system" in problem(session), session
        assert "let the process run" in problem(session)
        process.send(b"\n")
        assert process.wait() == (0, "")


@debuggers.needs_gdb
@MUSL
def test_a_signal_handler_is_refused(interpreter):
    """It may have interrupted malloc(), which no frame shows."""
    with Code(interpreter, SIGNAL) as process:
        support.wait_for_sleep(process.pid, "pipe_read")
        session = attached(debuggers.gdb, process, "handle SIGUSR1 nostop pass",
                           "break signal_handler", "signal SIGUSR1", ("at",), "probing eval 1")
        assert "in a signal handler" in problem(session), session
        process.send(b"x")
        assert process.wait() == (0, "")


@debuggers.needs_gdb
@debuggers.needs_gdbserver
@MUSL
@pytest.mark.parametrize("mode", ["idle", "busy"])
def test_behind_a_gdbserver(interpreter, target, mode):
    process = target("evaluated.py", mode, interpreter=interpreter)
    with debuggers.gdbserver(process.pid) as address:
        session = debuggers.gdb("target remote " + address, ("one",), "probing eval numbers",
                                arguments=[os.readlink("/proc/%d/exe" % process.pid)])
    assert printed(session, "one").endswith("[1, 2, 3]"), session
    assert debuggers.shell(process, "40 + 2") == "42\n" and process.alive()


@debuggers.needs_gdb
@debuggers.needs_gdbserver
@MUSL
def test_code_right_after_inject_behind_a_gdbserver(interpreter, target):
    """The kernel does not know yet that the thread is back in its call: gdbserver sets that when the
    thread continues."""
    process = target("evaluated.py", "idle", interpreter=interpreter)
    waits = "probing query -f json SELECT waits_for FROM python.threads"
    with debuggers.gdbserver(process.pid) as address:
        session = debuggers.gdb("target remote " + address, ("before",), waits, "probing inject",
                                ("after",), waits, ("eval",), "probing eval numbers",
                                arguments=[os.readlink("/proc/%d/exe" % process.pid)])
    assert session.rows("before") == session.rows("after"), session
    assert session.rows("before")[0]["waits_for"] == "read", session
    assert printed(session, "eval").endswith("[1, 2, 3]") and process.alive(), session

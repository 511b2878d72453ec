# SPDX-License-Identifier: GPL-3.0-or-later
"""Children of fork() in C: no code where waiting for the GIL could block the program for ever."""
import os
import signal

import pytest

import support
from environment import OK, PROGRAMS, UNSUPPORTED, assert_untouched, settle

EACH = pytest.mark.parametrize(
    "interpreter", [i for i in support.INTERPRETERS if i.version >= (3, 6) and i.has_ctypes], ids=repr)


def child_of(program):
    word, pid = program.line().split()
    assert word == "child"
    return int(pid)


@EACH
@pytest.mark.parametrize("words", [["eval", "1 + 1"], ["repl"], ["debug", "--pause", "--max", "1s"]],
                         ids=lambda words: words[0])
def test_a_gil_that_was_waited_for(interpreter, words, probing):
    """The copied condition variable counts waiters that the child lacks: waking one would block."""
    with support.Program([interpreter.exe, PROGRAMS / "forks_busy.py", "raw"],
                         env=interpreter.env) as program:
        child = child_of(program)
        os.kill(program.pid, signal.SIGSTOP)
        settle(child, 1)
        refused = probing(child, *words)
        assert refused.code == UNSUPPORTED and not refused.out, refused
        assert "process %d was forked while other threads used the GIL" % child in refused.err, refused
        assert "'probing %d debug --dump' reads it" % child in refused.err, refused
        assert len(os.listdir("/proc/%d/task" % child)) == 1
        assert_untouched(child)
        assert probing(child, "debug", "--dump").code == OK


@EACH
@pytest.mark.parametrize("how", ["told", "os"])
def test_python_was_told(interpreter, how, probing):
    if how == "told" and interpreter.version < (3, 7):
        pytest.skip("no PyOS_AfterFork_Child()")
    with support.Program([interpreter.exe, PROGRAMS / "forks_busy.py", how],
                         env=interpreter.env) as program:
        child = child_of(program)
        os.kill(program.pid, signal.SIGSTOP)
        for _ in range(3):
            done = probing(child, "eval", "6 * 7")
            assert (done.code, done.out) == (OK, "42\n"), done


@EACH
def test_a_gil_that_nobody_waited_for(interpreter, probing):
    """In a build without a GIL nothing shows that no thread waited, so code is refused there."""
    with support.Program([interpreter.exe, PROGRAMS / "forks_busy.py", "quiet"],
                         env=interpreter.env) as program:
        child = child_of(program)
        settle(child, 1)
        for _ in range(3):
            done = probing(child, "eval", "6 * 7")
            if interpreter.free_threaded:
                assert done.code == UNSUPPORTED and "was forked while" in done.err, done
            else:
                assert (done.code, done.out) == (OK, "42\n"), done

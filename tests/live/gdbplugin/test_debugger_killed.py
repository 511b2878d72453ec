# SPDX-License-Identifier: GPL-3.0-or-later
"""A debugger that is killed while `probing eval` runs code leaves nothing in the process of which it
would die."""

import os
import re
import shlex
import signal
import subprocess

import agent
import debuggers
import pytest
import support
from debuggers import known, sleeper  # noqa: F401 (fixtures)
from environment import UNSUPPORTED
from test_debugger_ctrl_c import GDB, LLDB, Interactive

CODE = "import os, time; open({begun!r}, 'w').close(); " \
    "[time.sleep(0.001) for _ in iter(lambda: os.path.exists({end!r}), True)]; ended = 1"


def shell(process, code):
    done = subprocess.run([support.BINARY, "-p", str(process.pid), "eval", code], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    return done.stdout if done.returncode == 0 else done


@pytest.mark.parametrize("name", [GDB, LLDB])
def test_killed_while_code_runs(name, sleeper, tmp_path):  # noqa: F811
    begun, end = tmp_path / "begun", tmp_path / "end"
    with Interactive(name, sleeper.pid) as session:
        session.say("probing eval -t 600 " + CODE.format(begun=str(begun), end=str(end)))
        agent.wait_until(begun.exists, 60)
        os.kill(session.process.pid, signal.SIGKILL)
        session.process.wait()
    assert shell(sleeper, "'here'") == "'here'\n"
    end.touch()
    agent.wait_until(lambda: shell(sleeper, "globals().get('ended')") == "1\n", 60)
    with Interactive(name, sleeper.pid) as session:
        session.say("probing eval 'eval' + 'uated'")
        session.expect("'evaluated'")
        session.say("detach")
        session.expect("detached")
    assert sleeper.alive() and shell(sleeper, "6 * 7") == "42\n"


def changed(pid):
    """[(address, byte in memory, byte in the file)] of the code of the dynamic loader."""
    found = []
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps, \
            open("/proc/%d/mem" % pid, "rb") as memory:
        for line in maps:
            words = line.split()
            if "x" in words[1] and "/ld-" in words[-1]:
                start, end = (int(word, 16) for word in words[0].split("-"))
                memory.seek(start)
                there = memory.read(end - start)
                with open("/proc/%d/root%s" % (pid, words[-1]), "rb") as file:
                    file.seek(int(words[2], 16))
                    found += [(start + at, *bytes) for at, bytes in
                              enumerate(zip(there, file.read(end - start))) if bytes[0] != bytes[1]]
    return found


@pytest.fixture(params=[GDB, LLDB])
def left(request, sleeper):  # noqa: F811
    """A process in whose loader a debugger, which was killed, has left its breakpoint: the next
    library that is loaded would end it."""
    with Interactive(request.param, sleeper.pid) as session:
        session.say("continue")
        agent.wait_until(lambda: support.thread_status(sleeper.pid)["State"][0] == "S" and
                         changed(sleeper.pid), 60)
        # LLDB has another process do it.
        os.kill(int(support.thread_status(sleeper.pid)["TracerPid"]), signal.SIGKILL)
        agent.wait_until(lambda: support.thread_status(sleeper.pid)["TracerPid"] == "0", 60)
    assert changed(sleeper.pid)
    return sleeper


SAYS = "a breakpoint that a debugger has left"


def mend(process, message):
    """As the message says."""
    command = re.search("'(gdb .*\")' puts it back", message).group(1)
    done = subprocess.run(shlex.split(command), check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert not changed(process.pid), done


def test_a_breakpoint_that_was_left_in_the_loader(left):
    for words in (["inject"], ["eval", "1 + 1"], ["debug", "--pause"]):
        done = subprocess.run([support.BINARY, "-p", str(left.pid), *words], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == UNSUPPORTED and done.stdout == "", done
        assert SAYS in done.stderr, done
        assert left.alive()
    mend(left, done.stderr)
    assert shell(left, "__import__('_ctypes') and 6 * 7") == "42\n"
    assert left.alive()


@pytest.mark.parametrize("start", [pytest.param(debuggers.gdb, id="gdb", marks=debuggers.needs_gdb),
                                   pytest.param(debuggers.lldb, id="lldb",
                                                marks=debuggers.needs_lldb)])
def test_a_breakpoint_that_was_left_for_the_next_debugger(start, left):
    session = start("probing eval 6 * 7", arguments=["-p", left.pid])
    assert SAYS in session.err and "Traceback" not in session.err, session
    assert left.alive()
    mend(left, session.err)
    session = start("probing eval 6 * 7", arguments=["-p", left.pid])
    assert re.search("^42$", session.out, re.M), session
    assert left.alive() and not changed(left.pid)

# SPDX-License-Identifier: GPL-3.0-or-later
"""A debugger that is killed while `probing eval` runs code leaves nothing in the process of which it
would die."""

import os
import re
import shlex
import signal
import subprocess

import agent
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


@pytest.mark.parametrize("name", [GDB, LLDB])
def test_what_a_killed_debugger_left_in_the_loader(name, sleeper):  # noqa: F811
    """The next library that is loaded would end the process: that is not ours."""
    with Interactive(name, sleeper.pid) as session:
        session.say("continue")
        agent.wait_until(lambda: support.thread_status(sleeper.pid)["State"][0] == "S" and
                         changed(sleeper.pid), 60)
        # LLDB has another process do it.
        os.kill(int(support.thread_status(sleeper.pid)["TracerPid"]), signal.SIGKILL)
        agent.wait_until(lambda: support.thread_status(sleeper.pid)["TracerPid"] == "0", 60)
    assert changed(sleeper.pid)
    for words in (["inject"], ["eval", "1 + 1"], ["debug", "--pause"]):
        done = subprocess.run([support.BINARY, "-p", str(sleeper.pid), *words], check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        assert done.returncode == UNSUPPORTED and done.stdout == "", done
        assert "a breakpoint that a debugger has left" in done.stderr, done
        assert sleeper.alive()
    command = re.search("'(gdb .*\")' puts it back", done.stderr).group(1)
    mended = subprocess.run(shlex.split(command), check=False, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    assert not changed(sleeper.pid), mended
    assert shell(sleeper, "__import__('_ctypes') and 6 * 7") == "42\n"
    assert sleeper.alive()

# SPDX-License-Identifier: GPL-3.0-or-later
"""A debugger that is killed while `probing eval` runs code leaves nothing in the process of which it
would die."""

import os
import signal
import subprocess

import agent
import pytest
import support
from debuggers import known, sleeper  # noqa: F401 (fixtures)
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

# SPDX-License-Identifier: GPL-3.0-or-later
"""`debug --pause` is ended before each of its steps, also while code is evaluated: the program always
runs again, and can be paused again."""
import signal
import subprocess

import pytest

import agent
import faults
import pauses
import support
from environment import OK, TIMEOUT
from pauses import Pause

MOST_STEPS = 2000  # far more than there are

pytestmark = pytest.mark.skipif(
    not faults.STEPS, reason="no build with fault steps: $PROBING_FAULT_STEPS")


def begin_evaluation(pid):
    return subprocess.Popen(
        [support.BINARY, "-t", str(pid), "eval", "1 + 1"], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def at_step(step, number, pid, options):
    """The command's message if the step exists, else None."""
    while True:
        ended, err = pause_until_step(step, number, pid, options)
        # The one before, which the agent lets go now; or the threads that compete left it no turn.
        if "is paused already" not in err and ended != TIMEOUT:
            break
    if "this is fault step" not in err:
        assert ended == OK, (step, ended, err)
        return None
    # While it has threads of the program, it does not stay stopped for long.
    assert ended == -signal.SIGKILL or (number == signal.SIGSTOP and ended == OK), (step, ended, err)
    return err


def pause_until_step(step, number, pid, options):
    """The exit status and message. Code is evaluated meanwhile, and must finish."""
    env = {"PROBING_FAULT_STEP": str(step), "PROBING_FAULT_SIGNAL": str(int(number))}
    with Pause(pid, "-v", *options, wait=False, env=env, binary=faults.STEPS) as pause:
        stands = bool(pause.process.stdout.readline())
        code = begin_evaluation(pid) if stands and "--hard" not in options else None
        if code:
            out, err = code.communicate(timeout=120)
            assert (code.returncode, out) == (OK, b"2\n"), (step, code.returncode, err)
        if stands and pause.process.poll() is None:
            pause.process.send_signal(signal.SIGINT)
        err = pause.process.communicate(timeout=120)[1].decode()
        return pause.process.returncode, err


@pytest.mark.parametrize("options", [[], ["--hard"]], ids=["agent", "hard"])
@pytest.mark.parametrize("number", [signal.SIGKILL] + [signal.SIGSTOP] * support.LONG)
def test_ended_before_each_step(number, options, target, probing, newest):
    """Stopped, it is ended by the kernel soon after the limit of the pause."""
    limits = ["--max", "1s"] if number == signal.SIGSTOP else []
    memory = support.Shared()
    process = target("counting.py", memory.path, "4")
    agent.load(probing, process.pid)
    for step in range(1, MOST_STEPS):
        said = at_step(step, number, process.pid, options + limits)
        pauses.wait_until_runs(memory)
        assert pauses.nobody_traced(process.pid), (step, said)
        if said is None:
            break
    assert 5 < step < MOST_STEPS - 1, step
    with Pause(process.pid, *options) as pause:
        before = pauses.total(memory)
        assert pauses.total(memory) == before
        assert pause.interrupt()["held_us"] > 0
    pauses.wait_until_runs(memory)
    assert probing(process.pid, "eval", "1 + 1").out == "2\n"
    support.report("A pause was ended by %s before each of its %d steps, %s" % (
        signal.Signals(number).name, step - 1, "by ptrace" if options else "by the agent"))
    memory.close()

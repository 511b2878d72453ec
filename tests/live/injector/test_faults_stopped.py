# SPDX-License-Identifier: GPL-3.0-or-later
"""The command itself is stopped by SIGSTOP before each of its steps: of injection, in the fault matrix,
and of a dump. The target works on meanwhile, whatever happens to the command."""
import signal
import time

import pytest

import faults
import pauses
from agent import wait_until
from environment import OK
from faults import SLEEPERS, STEPS, Cell, Checked

pytestmark = pytest.mark.skipif(
    not STEPS, reason="no build with fault steps: $PROBING_FAULT_STEPS")

PATIENCE = 120 if faults.SLOW else 30  # seconds; a helping thread gives up after five
STRIDE = 20 if faults.SLOW else 5 if faults.RUNS <= 10 else 1


def state(command):
    """As in /proc/PID/stat, of a child that is not waited for yet."""
    with open("/proc/%d/stat" % command.pid, encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0]


def wait_until_stopped(command):
    """Or until it has ended."""
    end = time.monotonic() + PATIENCE
    while state(command) not in "TZ":
        assert time.monotonic() < end
        time.sleep(0.001)


def stop(cell, build, program, then, step):
    """Then sends it another signal. False if there is no such step."""
    with Checked(build.program(program[0]), *program[1:]) as target:
        target.wait_for_progress()
        before = faults.look_settled(target.pid)
        command = faults.start_at_step(step, target.pid, build.library(), signal.SIGSTOP)
        try:
            wait_until_stopped(command)
            # If a thread of the target is stopped, the command is continued, and loads the library.
            target.wait_for_progress()
            command.send_signal(then)
        except AssertionError:
            command.kill()
            raise
        said = faults.end_at_step(command)
        if said is None:
            return False
        assert said[0] == OK or said[0] == -then == -signal.SIGKILL, (step, said)
        cell.run("loaded" if said[0] == OK else None)
        target.wait_for_progress()
        faults.wait_until_same(before, timeout=PATIENCE)
        assert not target.shared[target.ERRORS], (step, target.shared[target.DETAIL], said)
        code, _, err = faults.inject(target.pid, build.library())
        assert code == OK, err
        target.wait_for_progress()
    return True


@pytest.mark.parametrize("then", [signal.SIGCONT, signal.SIGKILL], ids=["continued", "killed"])
@pytest.mark.parametrize("program", [("fault_heap", "heap", "1"), ("fault_waits", "read")],
                         ids=lambda each: each[0])
def test_stopped_before_each_step(build, program, then):
    """Each in a target of its own, with one thread that has to go on."""
    cell = Cell("stopped before each step, then %s: %s" % (
        "killed" if then == signal.SIGKILL else "continued", " ".join(program)))
    workers, first, there = SLEEPERS, 1, [True]
    while all(there):
        assert first < faults.MOST_STEPS, "steps without end"
        there = faults.in_parallel(lambda step: stop(cell, build, program, then, step),
                                   range(first, first + workers * STRIDE, STRIDE), workers)
        first += workers * STRIDE
    assert cell.count["runs"] * STRIDE > 15
    cell.passed()


@pytest.mark.parametrize("option", ["--locals", "--native", "--freeze"])
def test_a_dump_too(option, target):
    process = target("evaluated.py", "busy")
    for step in range(1, faults.MOST_STEPS):
        command = faults.command_at_step(
            step, ["-t", str(process.pid), "debug", "--dump", option], signal.SIGSTOP)
        try:
            wait_until_stopped(command)
            before = pauses.busy_seconds(process.pid)
            wait_until(lambda: pauses.busy_seconds(process.pid) > before + 0.02, PATIENCE)
        finally:
            command.send_signal(signal.SIGCONT)
        said = faults.end_at_step(command)
        if said is None:
            break
        assert said[0] == OK, said
    assert step > 3

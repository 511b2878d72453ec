# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault matrix: the command is killed before each of its steps. The target works on, and keeps nothing
of ours but the leftovers listed in docs/injection.md."""
import re
import signal
import time

import pytest

import faults
import support
from environment import FAILED, OK
from faults import SLEEPERS, STEPS, Cell, Checked, Look

# Seconds; a helping thread that lost us ends by itself after five, or more if it is busy.
PATIENCE = 120 if faults.SLOW else 20

pytestmark = pytest.mark.skipif(
    not STEPS, reason="no build with fault steps: $PROBING_FAULT_STEPS")


def anonymous(pid):
    """Bytes of anonymous mappings: the C library keeps and reuses stacks of threads and arenas of the
    heap, so that a second injection adds nothing."""
    total = 0
    for line in faults.maps(pid).split("\n"):
        found = re.match(r"([0-9a-f]+)-([0-9a-f]+) \S+ \S+ 00:00 0\s*$", line)
        if found:
            total += int(found.group(2), 16) - int(found.group(1), 16)
    return total


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def killed(cell, build, start, step, wanted=OK):
    """False if there is no such step. @wanted: the normal outcome for this target."""
    with start() as target:
        target.wait_for_progress()
        code, _, err = faults.inject(target.pid, build.library(), "--symbol", "fault_touch")
        assert code == wanted, err
        before = faults.look_settled(target.pid)
        wait_for(lambda: not Look(target.pid).code, "code of the first injection")
        size = anonymous(target.pid)
        said = faults.at_step(step, target.pid, build)
        target.wait_for_progress()
        if said is None:
            return False
        assert said[0] == -signal.SIGKILL, said
        cell.run()
        wait_for(lambda: not Look(target.pid).differences(before, code=False),
                 "step %d: %s" % (step, Look(target.pid).differences(before)))
        wait_for(lambda: anonymous(target.pid) == size, "step %d: %d bytes" % (
            step, anonymous(target.pid) - size))
        assert not Look(target.pid).code
        target.wait_for_progress()
        assert not target.shared[target.ERRORS], "step %d: %d\n%s" % (
            step, target.shared[target.DETAIL], said[1])
        code, _, err = faults.inject(target.pid, build.library())
        assert code == wanted, err
        target.wait_for_progress()
        return True


def killed_at_steps(cell, build, start, step=1, stride=1, workers=SLEEPERS, wanted=OK):
    """Each in a target of its own, from @step on."""
    results = []
    while False not in results:
        assert step < faults.MOST_STEPS, "steps without end"
        results += faults.in_parallel(lambda step: killed(cell, build, start, step, wanted),
                                      range(step, step + workers * stride, stride), workers)
        step += workers * stride
    assert results.count(True) * stride > 15
    cell.passed()


PROGRAMS = [("fault_registers", [faults.REGISTERS[0][0]]), ("fault_signals", ["timer"]), ("fault_waits", ["read"]),
            ("fault_calls", ["poll", "200"]), ("fault_places", ["idle"])]
# In the short form each program is killed at every fifth step, and all steps are covered by some program.
STRIDE = 20 if faults.SLOW else len(PROGRAMS) if faults.RUNS <= 10 else 1


@pytest.mark.parametrize("program, arguments", PROGRAMS, ids=lambda value: str(value))
def test_killed_before_each_step(build, program, arguments):
    cell = Cell("killed before each step: %s %s" % (program, " ".join(arguments)))
    made = build.program(program)
    workers = SLEEPERS if program in ("fault_registers", "fault_signals") else 2 * SLEEPERS
    first = 1 + PROGRAMS.index((program, arguments)) * STRIDE // len(PROGRAMS)
    killed_at_steps(cell, build, lambda: Checked(made, *arguments), first, STRIDE, workers)


# Also in the short form enough steps: some twenty come before the refusal.
REFUSED_STRIDE = 4 if faults.SLOW else 1


def test_killed_where_it_is_refused(build):
    """The hijacked thread finds out itself that it cannot do its work, and leaves all as it was."""
    made = build.program("fault_limits")
    killed_at_steps(Cell("killed before each step: fault_limits full"), build,
                    lambda: Checked(made, "full"), 1, REFUSED_STRIDE, wanted=FAILED)


def test_killed_without_forced_writes(build, monkeypatch):
    made = build.program("fault_places")
    monkeypatch.setenv("LD_PRELOAD", str(build.program("unforced", "-shared", "-fPIC")))
    killed_at_steps(Cell("killed before each step: no forced writes"), build,
                    lambda: Checked(made, "idle"), 1, STRIDE, 2 * SLEEPERS)


@pytest.mark.parametrize("arguments", [
    ["heap", "2"], ["dlopen", "1"], ["malloc", "3"]], ids=lambda value: str(value))
def test_killed_again_and_again(build, arguments):
    """The same in one target whose threads are in the C library nearly always."""
    cell = Cell("killed before each step: fault_heap %s" % " ".join(arguments))
    with Checked(build.program("fault_heap"), *arguments) as target:
        before = faults.look_settled(target.pid)
        for step in range(1, faults.MOST_STEPS):
            target.wait_for_progress()
            said = faults.at_step(step, target.pid, build)
            target.wait_for_progress()
            if said is None:
                break
            assert said[0] == -signal.SIGKILL, said
            cell.run()
        assert 20 < step < faults.MOST_STEPS - 1
        wait_for(lambda: support.thread_ids(target.pid) == before.threads, "threads stay")
        # Those that load libraries themselves have a descriptor of their own now and then.
        wait_for(lambda: not set(Look(target.pid).descriptors) - set(before.descriptors),
                 "descriptors stay")
        wait_for(lambda: Look(target.pid).signals == before.signals, "the mask stays")
        look = Look(target.pid)
        assert not look.traced and not look.stopped and not look.code
        code, _, err = faults.inject(target.pid, build.library())
        assert code == OK, err
        target.wait_for_progress()
    cell.passed()

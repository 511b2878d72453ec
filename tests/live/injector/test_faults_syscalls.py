# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault matrix: threads that wait in a system call. No call returns EINTR or early because of us,
loses or repeats data, and the rest of a timeout stays unchanged."""
import time

import pytest

import faults
import pauses
from faults import SLEEPERS, Checked, run_cell

# Each ends by its own timeout, or by an alarm.
TIMED = ["nanosleep", "clock_nanosleep", "futex", "futex_waitv", "sem", "poll", "select", "pselect",
         "pselect-mask", "ppoll-mask", "epoll", "epoll_pwait2", "io_uring", "recv",
         "sigtimedwait", "semtimedop", "wait", "sigsuspend"]
# Each wait is ended by another process.
WAITING = ["read", "poll", "epoll", "semop", "msgrcv", "inotify", "flock", "fcntl", "accept",
           "connect", "write", "write-large", "sendfile", "waitid"]
# During these waits, the kernel shows other signals as blocked. The program checks its mask afterwards.
OTHER_MASK = ("pselect-mask", "ppoll-mask", "sigtimedwait", "sigsuspend")


@pytest.mark.parametrize("call", TIMED)
def test_calls_with_a_timeout(build, call):
    program = build.program("fault_calls")
    run_cell("system call: " + call, build, lambda: Checked(program, call),
             workers=SLEEPERS, masks=call not in OTHER_MASK).assert_loaded()


@pytest.mark.parametrize("call", WAITING)
def test_calls_that_wait(build, call):
    program = build.program("fault_waits")
    run_cell("system call, waiting: " + call, build, lambda: Checked(program, call),
             workers=SLEEPERS, settled=call not in ("accept", "connect")).assert_loaded()


# The kernel repeats these with the time that is left; the others begin anew (docs/injection.md).
KEPT = [call for call in TIMED if call not in (
    "epoll", "epoll_pwait2", "recv", "sigtimedwait", "semtimedop")]
LENGTH = 2 if faults.SLOW else 0.5  # seconds that each waits


def inject_in_the_middle(cell, build, target):
    """The call ends when it would have ended, not when a second one had gone by."""
    before = target.shared[target.ROUNDS]
    while target.shared[target.ROUNDS] == before:
        time.sleep(0.001)
    begun, busy = time.monotonic(), pauses.busy_seconds(target.pid)
    time.sleep(LENGTH / 2)  # where in the call injection comes
    library = build.library()
    began = time.monotonic()
    code, out, err = faults.inject(target.pid, library)
    ended = time.monotonic()
    cell.note(code, out, err, ended - began)
    while target.shared[target.ROUNDS] == before + 1:
        assert target.target.alive()
        time.sleep(0.001)
    # On a busy machine the thread waits for a processor when the call has ended.
    late = pauses.busy_seconds(target.pid) - busy
    took = target.shared[target.TOOK] / 1e6
    # Nor does it return before the command has let it go, which waits for a processor, too.
    most = max(LENGTH * 1.45, ended - begun + 0.1) + late
    assert LENGTH - 0.001 < took < most, (took, most, late)
    assert not target.shared[target.ERRORS], target.shared[target.DETAIL]


def test_timeouts_kept(build):
    """Half of the time has gone when injection comes."""
    some = ["nanosleep", "futex", "poll"] if faults.SLOW else KEPT
    program = build.program("fault_calls")

    def one(call):
        run_cell("timeout kept: " + call, build,
                 lambda: Checked(program, call, int(LENGTH * 1000)),
                 each=inject_in_the_middle).assert_loaded()

    faults.in_parallel(one, some, 1 if faults.SLOW else len(some))

# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault matrix: signals, stops and freezers. No signal is lost, comes twice or out of order."""
import ctypes
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

import environment
import faults
import support
from environment import FAILED, OK, TIMEOUT
from faults import SLEEPERS, Cell, Checked, Look, run_cell


@pytest.mark.parametrize("kind", ["timer", "blocked", "ignored", "trap"])
def test_signals(build, kind):
    program = build.program("fault_signals")
    run_cell("signals: " + kind, build, lambda: Checked(program, kind)).assert_loaded()


@pytest.mark.parametrize("kind", ["children", "vfork-children"])
def test_children(build, kind):
    """The C library blocks all signals in them for a moment, so that the mask comes and goes."""
    program = build.program("fault_signals")
    run_cell("signals: " + kind, build, lambda: Checked(program, kind)).assert_loaded()


LIBC = ctypes.CDLL(None, use_errno=True)


class Signalled(Checked):
    """Gets signals from a thread while it is injected, and has to receive as many."""

    sent = 0
    sender = None

    def send(self):
        """The thread's activity."""
        raise NotImplementedError

    def start(self):
        self.sender = threading.Thread(target=self.send)
        self.sender.start()

    def settle(self):
        if self.sender:
            self.sender.join()

    def wait_for_progress(self):
        self.settle()
        super().wait_for_progress()

    def finish(self):
        super().finish()
        assert self.shared[self.RECEIVED] == self.sent


class Queue(Signalled):
    """Gets numbered signals."""

    def send(self):
        for _ in range(300):
            self.sent += 1
            while LIBC.sigqueue(self.pid, signal.SIGRTMIN + 1, ctypes.c_void_p(self.sent)):
                assert ctypes.get_errno() == 11, "sigqueue"  # EAGAIN: as many as may wait


def test_queued_signals(build):
    program = build.program("fault_signals")
    run_cell("signals: queued", build, lambda: Queue(program, "queue"),
             between=Queue.start).assert_loaded()


class Continued(Signalled):
    """Is stopped, and let go on a little later."""

    def send(self):
        time.sleep(random.uniform(0, 0.02))
        os.kill(self.pid, signal.SIGSTOP)
        time.sleep(random.uniform(0, 0.3))
        self.sent += 1
        os.kill(self.pid, signal.SIGCONT)
        environment.wait_until(lambda: state(self.pid) != "T")


def test_stopped_and_continued(build):
    """Stops may come before, in between and after; a stopped target is refused, and the hijacked call
    continues with it."""
    program = build.program("fault_signals")
    cell = run_cell("signals: SIGSTOP and SIGCONT meanwhile", build,
                    lambda: Continued(program, "continued"), workers=SLEEPERS,
                    between=Continued.start, refusals=(FAILED,), words=("stopped by job control",))
    assert cell.count["loaded"]


def refuse_once(cell, build, pid, *words, codes=(FAILED, TIMEOUT)):
    """It is refused soon, with the reason, and nothing has changed."""
    before, library, began = Look(pid), build.library(), time.monotonic()
    code, out, err = faults.inject(pid, library)
    cell.note(code, out, err, time.monotonic() - began)
    assert code in codes and all(word in err for word in words), (code, err)
    assert not faults.is_mapped(pid, library)
    assert not Look(pid).differences(before)


def load_once(build, target):
    target.wait_for_progress()
    code, _, err = faults.inject(target.pid, build.library())
    assert code == OK, err
    target.wait_for_progress()


def state(pid):
    return support.thread_status(pid)["State"][0]


@pytest.mark.parametrize("kind, number", [("read", "SIGTTIN"), ("write", "SIGTTOU")])
def test_background_job(build, kind, number):
    cell = Cell("stopped: background job, " + number)
    program = build.program("fault_background")
    for _ in range(0, faults.RUNS, faults.PER_PROCESS):
        with Checked(program, kind) as shell:
            shell.pid = environment.child_of(shell.target.pid)
            environment.wait_until(lambda: state(shell.pid) == "T")
            for _ in range(faults.PER_PROCESS):
                refuse_once(cell, build, shell.pid, "stopped by job control", "kill -CONT")
                assert state(shell.pid) == "T"
            shell.shared[shell.SENT] = 1
            load_once(build, shell)
    cell.passed()


def test_stopped(build):
    cell = Cell("stopped: SIGSTOP")
    program = build.program("fault_signals")
    for _ in range(0, faults.RUNS, faults.PER_PROCESS):
        with Continued(program, "continued") as target:
            for _ in range(faults.PER_PROCESS):
                os.kill(target.pid, signal.SIGSTOP)
                environment.wait_until(lambda: state(target.pid) == "T")
                refuse_once(cell, build, target.pid, "stopped by job control", "kill -CONT")
                assert state(target.pid) == "T"
                os.kill(target.pid, signal.SIGCONT)
                target.sent += 1
                target.wait_for_progress()
            load_once(build, target)
    cell.passed()


class Freezer:
    """A control group that freezes its processes."""

    KINDS = {"v1": ("freezer.state", "FROZEN", "THAWED"), "v2": ("cgroup.freeze", "1", "0")}

    def __init__(self, kind, pid):
        self.file, self.frozen, self.thawed = self.KINDS[kind]
        self.kind = kind
        self.folder = self._root(kind) / ("probing-test-%d" % pid)
        self.folder.mkdir()
        (self.folder / "cgroup.procs").write_text(str(pid))

    @staticmethod
    def _root(kind):
        wanted = "cgroup2" if kind == "v2" else "cgroup"
        with open("/proc/mounts", encoding="utf-8") as file:
            for line in file:
                _, place, name, options = line.split()[:4]
                if name == wanted and (kind == "v2" or "freezer" in options.split(",")):
                    return Path(place)
        raise OSError("no control groups of that kind")

    def freeze(self):
        (self.folder / self.file).write_text(self.frozen)
        environment.wait_until(self._is_frozen)

    def _is_frozen(self):
        if self.kind == "v1":
            return (self.folder / self.file).read_text().strip() == self.frozen
        return "frozen 1" in (self.folder / "cgroup.events").read_text()

    def thaw(self):
        (self.folder / self.file).write_text(self.thawed)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.thaw()
        for pid in (self.folder / "cgroup.procs").read_text().split():
            (self.folder.parent / "cgroup.procs").write_text(pid)
        self.folder.rmdir()


@pytest.mark.parametrize("kind", ["v1", "v2"])
def test_frozen(build, kind):
    """It is refused, and continues as before when it is thawed."""
    program = build.program("fault_places")

    def freeze_once(cell, build, target):
        with Freezer(kind, target.pid) as freezer:
            freezer.freeze()
            refuse_once(cell, build, target.pid, "frozen")
            freezer.thaw()
            load_once(build, target)

    with Checked(program, "idle") as target:
        try:
            Freezer(kind, target.pid).__exit__()
        except OSError as error:
            pytest.skip("control groups cannot be frozen here: %s" % error)
    run_cell("frozen: control groups " + kind, build, lambda: Checked(program, "idle"),
             workers=SLEEPERS, each=freeze_once).assert_refused()

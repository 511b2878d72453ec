# SPDX-License-Identifier: GPL-3.0-or-later
"""Descriptions of waits name the meaningful call into the standard library."""
import os
import re
import signal

import pytest

import support
from environment import PROGRAMS, wait_until

EACH = pytest.mark.parametrize(
    "interpreter", [i for i in support.INTERPRETERS if i.version >= (3, 6)], ids=repr)

EXPECTED = {
    "event": "Event.wait",
    "event, timed": "Event.wait",
    "event, subclass": "Event.wait",
    "get": "Queue.get",
    "queue join": "Queue.join",
    "semaphore": "Semaphore.acquire",
    "join": "Thread.join",
    "barrier": "Barrier.wait",
    "condition of ours": "Condition.wait",
    "simple": "SimpleQueue.get",
    "timer": "Timer.run",
    "QueueFeederThread": "Queue._feed",
    "worker": "Thread.join",
    "idle worker": "concurrent.futures.thread._worker",
    "result": "Future.result",
    "wait": "concurrent.futures._base.wait",
}


SOMEBODY = r"(itself|\d+ \(.+\))( and \d+ more)?"
BESIDE = {
    "process join": r"wait4: child %s" % SOMEBODY,
    "process join, timed": r"p?poll: pipe \d+ ← %s, at most 1000 s" % SOMEBODY,
    "connection": r"read: unix socket \d+ → %s" % SOMEBODY,
    "connections": r"p?poll: unix socket \d+ → %s" % SOMEBODY,
    "process queue": r"read: pipe \d+ ← %s" % SOMEBODY,
    "process lock": r"futex: a semaphore of several processes",
    "process event": r"futex: waiting in Event\.wait",
    "joinable queue": r"futex: waiting in JoinableQueue\.join",
    "pool map": r"futex: waiting in Pool\.map",
    "pool result": r"futex: waiting in ApplyResult\.get",
    "subprocess": r"wait4: child \d+ \(sleep\)",
    "communicate": r"p?poll: 2 descriptors: pipe \d+ ← \d+ \(sleep\), pipe \d+ ← \d+ \(sleep\)",
    "epoll": r"epoll_wait: epoll \d+ watching unix socket \d+ → %s" % SOMEBODY,
    "poll": r"p?poll: unix socket \d+ → %s" % SOMEBODY,
    "loop": r"epoll_wait: epoll \d+ watching unix socket \d+ → %s(, at most [\d.]+ s)?" % SOMEBODY,
    "empty loop": r"epoll_wait: epoll \d+ watching unix socket \d+ → %s(, at most [\d.]+ s)?" % SOMEBODY,
    "future of a loop": r"futex: waiting in Future\.result",
    "as completed": r"futex: waiting in concurrent\.futures\._base\.as_completed",
    "shutdown": r"futex: waiting in ThreadPoolExecutor\.shutdown for thread \d+ .+",
    "accept": r"accept4: socket \d+ listening on 127\.0\.0\.1:\d+",
}


def waits(pid):
    return {thread["name"]: thread["waits_for"] for thread in support.dump(pid)["threads"]}


@EACH
def test_waiting_for_others(interpreter):
    """Processes, descriptors and loops: the process at the other end is named where the kernel knows it."""
    with support.Program([interpreter.exe, PROGRAMS / "library_waits_beside.py"],
                         env=interpreter.env, start_new_session=True) as program:
        found = {}

        def wrong():
            return {name: (found.get(name), text) for name, text in BESIDE.items()
                    if not re.fullmatch(text, found.get(name) or "")}

        def as_expected():
            found.update(waits(program.pid))
            return not wrong()

        try:
            assert program.line() == "ready"
            wait_until(as_expected, 60)
        except AssertionError as error:
            raise AssertionError("%s; found and expected: %s" % (error, wrong())) from None
        finally:
            os.killpg(program.pid, signal.SIGKILL)


@EACH
def test_waiting_inside_the_library(interpreter):
    """Not the functions of threading that run any thread; a plain lock keeps its address."""
    with support.Program([interpreter.exe, PROGRAMS / "library_waits.py"],
                         env=interpreter.env) as program:
        lock = program.line()
        expected = {name: "futex: waiting in " + re.escape(call) for name, call in EXPECTED.items()}
        expected["lock"] = "futex: waiting for a lock at " + lock
        for name in "join", "worker":
            expected[name] += r" for thread \d+ sleeper"
        if interpreter.version < (3, 7):
            del expected["simple"]
        if interpreter.version < (3, 11):  # static methods have only a name
            expected["QueueFeederThread"] = r"futex: waiting in multiprocessing\.queues\._feed"
        found = {}

        def as_expected():
            found.update(waits(program.pid))
            return all(re.fullmatch(text, found.get(name) or "") for name, text in expected.items())

        try:
            wait_until(as_expected, 60)
        except AssertionError:
            wrong = {name: (found.get(name), text) for name, text in expected.items()
                     if not re.fullmatch(text, found.get(name) or "")}
            raise AssertionError("found and expected: %s" % wrong) from None

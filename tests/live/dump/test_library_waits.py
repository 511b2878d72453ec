# SPDX-License-Identifier: GPL-3.0-or-later
"""What a thread waits for names the call into the standard library that means something."""
import pytest

import support
from environment import PROGRAMS, wait_until

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


def waits(pid):
    return {thread["name"]: thread["waits_for"] for thread in support.dump(pid)["threads"]}


@pytest.mark.parametrize(
    "interpreter", [i for i in support.INTERPRETERS if i.version >= (3, 6)], ids=repr)
def test_waiting_inside_the_library(interpreter):
    """Not the functions of threading that run any thread; a plain lock keeps its address."""
    with support.Program([interpreter.exe, PROGRAMS / "library_waits.py"],
                         env=interpreter.env) as program:
        lock = program.line()
        expected = {name: "futex: waiting in " + call for name, call in EXPECTED.items()}
        expected["lock"] = "futex: waiting for a lock at " + lock
        if interpreter.version < (3, 7):
            del expected["simple"]
        if interpreter.version < (3, 11):  # of static methods only the name is known
            expected["QueueFeederThread"] = "futex: waiting in multiprocessing.queues._feed"
        found = {}

        def as_expected():
            found.update(waits(program.pid))
            return all(found.get(name) == text for name, text in expected.items())

        try:
            wait_until(as_expected, 60)
        except AssertionError:
            wrong = {name: (found.get(name), text) for name, text in expected.items()
                     if found.get(name) != text}
            raise AssertionError("found and expected: %s" % wrong) from None

# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that checks its own work, while code is evaluated in it and the agent is loaded and ejected;
and what of that stays in the process."""
import json
import os
import signal
import time

import pytest

import agent
import support
from agent import wait_until
from environment import OK

EVALS = support.count(50, 1000)
CYCLES = support.count(5, 50)
MANY = support.count(500, 10000)
# Arenas of the C library, up to eight for each processor where threads come while others end, the
# stacks that it keeps for the next ones, and what the interpreter itself keeps (names, modules that
# the traceback of an exception needs). Each arena has what its threads needed at most, and freed.
MAPPINGS_MORE = 48
RESIDENT_MORE, RESIDENT_ARENA = 2 << 20, 512 << 10
# Free-threaded 3.13 never frees code objects and their constants, and each thread has its own heap.
IMMORTAL, IMMORTAL_CYCLE, IMMORTAL_EVAL = 2 << 20, 160 << 10, 2 << 10

SOME = support.one_per_version() if support.LONG else [
    interpreter for interpreter in support.INTERPRETERS
    if interpreter.version in ((3, 4), (3, 8), (3, 14)) or interpreter.free_threaded]

CODES = ["1 + 1", "import threading; threading.active_count()", "print('x' * 5000)", "1 / 0",
         "sorted(counts.items())", "[bytearray(n * 100) for n in range(100)] and None",
         "import time; time.sleep(0.001)"]


def cost(pid):
    """Costs of a process: descriptors, threads, mappings, resident bytes."""
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        mappings = maps.read().count("\n")
    return agent.descriptors(pid), len(agent.tasks(pid)), mappings, agent.memory(pid)


def lowest(pid, now):
    """The same, with the smallest of several readings of resident bytes: some megabytes of the program's
    own objects come and go."""
    ends = time.monotonic() + 5
    while time.monotonic() < ends:
        time.sleep(0.05)
        now = now[:3] + (min(now[3], agent.memory(pid)),)
    return now


def compare(before, after, free_threaded=False, resident=RESIDENT_MORE):
    assert after[0] == before[0], (before, after)
    assert after[1] == before[1], (before, after)
    # The heaps of free-threaded builds come and go in pieces.
    assert after[2] <= before[2] + MAPPINGS_MORE * (2 if free_threaded else 1), (before, after)
    immortal = IMMORTAL + CYCLES * IMMORTAL_CYCLE + EVALS * IMMORTAL_EVAL
    resident += max(after[2] - before[2], 0) * RESIDENT_ARENA + (immortal if free_threaded else 0)
    assert after[3] <= before[3] + resident, (before, after)


@pytest.mark.parametrize("interpreter", SOME, ids=repr)
def test_a_program_that_checks_itself(interpreter, target, probing):
    process = target("self_checking.py", interpreter=interpreter)
    sent = 0

    def evaluate(code, *options):
        nonlocal sent
        os.kill(process.pid, signal.SIGRTMIN + 1)
        sent += 1
        done = probing(process.pid, "eval", *options, code)
        assert done.code == OK or "ZeroDivisionError" in done.err, done

    def cycle(evals):
        for i in range(evals):
            evaluate(CODES[i % len(CODES)], *(["--thread", "main"] if i % 10 == 3 else []))
        wait_until(lambda: agent.ours(process.pid) == ["probing-agent"])
        os.kill(process.pid, signal.SIGRTMIN + 1)
        done = probing(process.pid, "eject", "--json")
        assert done.code == OK and json.loads(done.out)["unmapped"], done

    def cycles(count):
        nonlocal sent
        for _ in range(count):
            cycle(EVALS // CYCLES)
            sent += 1
        return lowest(process.pid, cost(process.pid))

    # What is needed once, and what the program's own collector takes away some time, comes to its
    # end in the first half.
    first = cycles(CYCLES // 2 + 1)
    second = cycles(CYCLES - CYCLES // 2)
    support.report("%d evaluations and %d cycles in %s: %+d kB resident, %+d mappings" % (
        EVALS // 2, CYCLES // 2, interpreter, (second[3] - first[3]) >> 10, second[2] - first[2]))
    compare(first, second, interpreter.free_threaded)
    process.send(b"x")
    wrong, counts = json.loads(process.line())
    assert wrong == [], wrong
    assert counts["signals"] == sent, counts
    assert process.wait()[0] == 0


@pytest.mark.parametrize("interpreter", support.one_per_version() if support.LONG else
                         support.one_per_version()[-1:], ids=repr)
def test_many_evaluations_leave_nothing(interpreter, target, probing):
    """By the command itself, each with its own connection."""
    process = target("evaluated.py", "idle", interpreter=interpreter)

    def some(count):
        for i in range(count):
            done = probing(process.pid, "eval", "print(%d)" % i)
            assert done.out == "%d\n" % i, done
        wait_until(lambda: agent.ours(process.pid) == ["probing-agent"])
        return cost(process.pid)

    before = some(20)
    after = some(MANY)
    support.report("%d evaluations in %s: %+d kB resident, %+d mappings" % (
        MANY, interpreter, (after[3] - before[3]) >> 10, after[2] - before[2]))
    compare(before, after, resident=1 << 20)

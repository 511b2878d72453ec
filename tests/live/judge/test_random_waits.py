# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing why` on random programs of several processes: no false proof, and no circle that is missed."""
import contextlib
import json
import os
import signal
import subprocess
import time

import pytest

import random_waits
import support

AT_ONCE = 12
LONG = 6  # seconds that the rule wants to see
ALL = support.one_per_version((3, 8))
PLACES = ALL[:1] + ALL[1:][-1:]  # the oldest and the newest


@contextlib.contextmanager
def running(interpreter, number):
    plan = random_waits.make_plan(number)
    with support.Program([interpreter.exe, random_waits.__file__, json.dumps(plan)], env=interpreter.env,
                         start_new_session=True) as program:
        try:
            yield plan, [int(word) for word in program.line().split()]
        finally:
            os.killpg(program.pid, signal.SIGKILL)


def verdict(pid):
    done = subprocess.run([support.BINARY, "why", "--json", str(pid)], stdout=subprocess.PIPE, check=False)
    [target] = json.loads(done.stdout)["targets"]
    return [found for found in target["findings"] if found["rule"] == "processes"], target


def check(number, plan, pids):
    for index, pid in enumerate(pids):
        found, target = verdict(pid)
        expected = random_waits.in_circle(plan, index)
        assert bool(found) == expected, (number, index, plan, target)
        assert not found or found[0]["confidence"] != "low", found


@pytest.mark.parametrize("interpreter", PLACES, ids=repr)
def test_random_processes(interpreter):
    first = 1000 * PLACES.index(interpreter)
    for batch in range(first, first + support.count(1, 40) * AT_ONCE, AT_ONCE):
        with contextlib.ExitStack() as stack:
            programs = [(number, *stack.enter_context(running(interpreter, number)))
                        for number in range(batch, batch + AT_ONCE)]
            began = time.monotonic()
            while time.monotonic() < began + LONG:
                time.sleep(0.1)
            for number, plan, pids in programs:
                check(number, plan, pids)

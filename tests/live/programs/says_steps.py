# SPDX-License-Identifier: GPL-3.0-or-later
"""says_steps.py PACKAGE: records quick steps all the time; "slow" makes the next one claim a minute."""
import sys
import threading
import time

sys.path.insert(0, sys.argv[1])
import probing  # noqa: E402
from probing import _events  # noqa: E402


class Clock:
    """The time seen by the step measurement."""
    late = 0

    def perf_counter(self):
        return time.perf_counter() + self.late

    def __getattr__(self, name):
        return getattr(time, name)


def quick():
    sum(range(100000))


def slow():
    sum(range(30000000))


def train():
    while True:
        if orders:
            orders.pop()
            slow()
            clock.late += 60
            probing.step(1000)
            print("done", flush=True)
        quick()
        probing.step()


orders = []
clock = _events.time = Clock()
threading.Thread(target=train, daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    orders.append(line)

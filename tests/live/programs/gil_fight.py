# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that fight for the GIL and note how long each had it. "go SECONDS" on stdin has them fight for so long, and prints as JSON,
in milliseconds: for each thread that keeps it `held`; for each thread how long it fought, and how much
of that it had a processor or waited for one. Between orders all sleep.
"""
import functools
import json
import operator
import sys
import threading
import time

KEEP = {"brief": 300000, "middle": 600000, "long": 1200000}
YIELD = ("one", "other")
call = operator.methodcaller("__call__")
orders, done = {}, threading.Semaphore(0)
deadline, told = 0.0, {}


def keep(steps):
    """Milliseconds between two readings of the clock, in one call of C: no other thread has the GIL."""
    begin, _, end = list(map(call, (time.monotonic, steps, time.monotonic)))
    return 1000 * (end - begin)


def give_way():
    time.sleep(0)
    return 0.0


def counters():
    with open("/proc/thread-self/schedstat", encoding="ascii") as file:
        ran, waited, _ = map(int, file.read().split())
    return ran / 1e6, waited / 1e6, 1000 * time.monotonic()


def fight(name, work):
    while True:
        orders[name].acquire()
        before, held = counters(), 0.0
        while time.monotonic() < deadline:
            held += work()
        ran, waited, fought = (now - then for now, then in zip(counters(), before))
        told[name] = {"held": held, "ran": ran, "waited": waited, "fought": fought}
        done.release()


def main():
    global deadline
    works = {name: functools.partial(keep, functools.partial(sum, range(steps))) for name, steps in KEEP.items()}
    works.update((name, give_way) for name in YIELD)
    for name, work in works.items():
        orders[name] = threading.Semaphore(0)
        threading.Thread(target=fight, name=name, args=(name, work), daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        deadline = time.monotonic() + float(line.split()[1])
        for order in orders.values():
            order.release()
        for _ in orders:
            done.acquire()
        print(json.dumps(told), flush=True)


main()

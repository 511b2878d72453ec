# SPDX-License-Identifier: GPL-3.0-or-later
"""Python functions that C functions call, to be run with -X perf; one thread sleeps, one computes."""
import functools
import sys
import threading
import time


def leaf(x, y):
    print("ready", flush=True)
    time.sleep(1000)


def middle(values):
    return functools.reduce(leaf, values)


def busy():
    while True:
        sum(map(computes, range(50)))


def computes(number):
    return number * number


if not sys.is_stack_trampoline_active():
    raise SystemExit("run with -X perf")
threading.Thread(target=busy, daemon=True).start()
middle([1, 2])

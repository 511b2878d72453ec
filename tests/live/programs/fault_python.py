# SPDX-License-Identifier: GPL-3.0-or-later
"""Python targets of the fault matrix: fault_python.py SHARED KIND. They count what they do."""
import atexit
import gc
import mmap
import os
import sys
import threading
import time

STOP, ROUNDS, ERRORS, DETAIL, SENT = range(5)

with open(sys.argv[1], "r+b") as file:
    shared = memoryview(mmap.mmap(file.fileno(), 4096)).cast("q")


def ready():
    os.write(1, b"ready\n")


def turn(pause):
    time.sleep(pause)
    shared[ROUNDS] += 1


def idle():
    while not shared[STOP]:
        turn(0.005)


def compute():
    while not shared[STOP]:
        if sum(range(1000)) != 499500 or [str(i) for i in range(10)][9] != "9":
            shared[ERRORS] += 1
        shared[ROUNDS] += 1


def background(function):
    thread = threading.Thread(target=function)
    thread.daemon = True
    thread.start()


def collect():
    """Nearly always in the middle of a collection: there is much to go through."""
    everything = [[i, {}] for i in range(100000)]
    while not shared[STOP]:
        cycle = [everything]
        cycle.append(cycle)
        gc.collect()
        shared[ROUNDS] += 1


class Last:
    """Works while it is destroyed."""

    def __del__(self, ready=ready, wait=idle):
        ready()
        wait()


def hold():
    """Keeps the GIL in a call of C until the test writes to stdin."""
    import ctypes

    buffer = ctypes.create_string_buffer(1)
    libc = ctypes.PyDLL(None)
    ready()
    while not shared[STOP]:
        libc.read(0, buffer, 1)
        turn(0)
        turn(0)


def main(kind):
    if kind == "idle":
        ready()
        idle()
    elif kind == "busy":
        background(compute)
        ready()
        compute()
    elif kind == "collect":
        ready()
        collect()
    elif kind == "collected":
        gc.disable()
        cycle = Last()
        cycle.myself = cycle
        del cycle
        gc.collect()
    elif kind == "hold":
        hold()
    elif kind == "atexit":
        background(compute)
        atexit.register(lambda: (ready(), idle()))
    elif kind == "ending":
        global _last  # names like this one go first
        _last = Last()


main(sys.argv[2])

# SPDX-License-Identifier: GPL-3.0-or-later
"""A thread whose garbage collection waits, in a finaliser or in a callback of a weak reference.

Another thread computes, and so holds the GIL meanwhile."""
import gc
import sys
import threading
import weakref


class Cycle(object):
    def __init__(self):
        self.myself = self


class Finalised(Cycle):
    def __del__(self):
        wait()


def wait():
    started.set()
    never.acquire()


def collect(how):
    if how == "finaliser":
        Finalised()
        gc.collect()
    elif how == "callback":
        garbage = Cycle()
        reference = weakref.ref(garbage, lambda _: wait())
        del garbage
        gc.collect()
        del reference
    else:  # by itself, because there are many objects
        gc.enable()
        Finalised()
        keep = []
        while not started.is_set():
            keep.append([])


def compute():
    while True:
        sum(range(1000))


started, never = threading.Event(), threading.Lock()
never.acquire()
gc.disable()
for name, target, args in ("collector", collect, sys.argv[1:]), ("busy", compute, ()):
    thread = threading.Thread(target=target, name=name, args=args)
    thread.daemon = True
    thread.start()
started.wait()
print("ready")
sys.stdout.flush()
sys.stdin.read()

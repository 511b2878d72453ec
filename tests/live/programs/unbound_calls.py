# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls a function while it holds the GIL, as calls_c.py does, from a function whose variables have
the names of globals and builtins, and no value yet. In between it sleeps; "wait" has it wait for input instead."""
import os
import sys
import time

late = "GLOBAL late"
free = "GLOBAL free"
named = "GLOBAL named"
said = {}
leaf, given = os.getppid, ()
if sys.argv[1:] == ["wait"]:
    leaf, given = os.read, (0, 1)
elif len(sys.argv) > 1:
    import ctypes

    leaf, given = ctypes.PyDLL(sys.argv[1]).native_leaf, (1000,)


def note(name, error):
    said[name] = "%s: %s" % (type(error).__name__, error)


def outer():
    def inner(named):
        try:
            late
        except NameError as error:
            note("late", error)
        try:
            max
        except NameError as error:
            note("max", error)
        try:
            free
        except NameError as error:
            note("free", error)
        leaf(*given)
        time.sleep(0.02)
        late, max = 1, 2
        return late, max, free

    try:
        inner("LOCAL named")
    except NameError:
        pass
    free = "FREE"


os.write(1, b"ready\n")
while True:
    outer()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls a function while it holds the GIL, as calls_c.py does, from a function whose variables have
the names of globals and builtins, and no value yet. In between it sleeps; "sleep" has it sleep for good."""
import os
import sys
import time

late = "GLOBAL late"
free = "GLOBAL free"
named = "GLOBAL named"
said = {}
if sys.argv[1:] == ["sleep"]:
    leaf = time.sleep
elif len(sys.argv) > 1:
    import ctypes

    leaf = ctypes.PyDLL(sys.argv[1]).native_leaf
else:
    def leaf(_):
        os.getppid()


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
        leaf(1000)
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

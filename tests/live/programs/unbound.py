# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands in functions and a class whose variables have the names of globals and builtins, some of them
without a value yet. What the code itself raises for those is in `said`."""
import sys
import threading
import time

late = "GLOBAL late"
captured = "GLOBAL captured"
free = "GLOBAL free"
named = "GLOBAL named"
each = "GLOBAL each"
said = {}
going = [True]


def say(name, error):
    said[name] = "%s: %s" % (type(error).__name__, error)


def rest(where):
    places[where].set()
    while going[0]:
        time.sleep(0.001)


def outer():
    def inner():
        named = "LOCAL named"
        squares = [each * each for each in range(3)]
        try:
            late
        except NameError as error:
            say("late", error)
        try:
            max
        except NameError as error:
            say("max", error)
        try:
            captured
        except NameError as error:
            say("captured", error)
        try:
            free
        except NameError as error:
            say("free", error)
        rest("inner")
        late, max, captured = 1, 2, 3
        return late, max, named, squares, lambda: captured

    def body():
        class Body:
            named = "CLASS named"
            rest("body")
            bound = bound_free
            late = "CLASS late"

        return Body

    bound_free = "FREE bound"
    threads = [threading.Thread(target=one, name=one.__name__) for one in (inner, body)]
    for thread in threads:
        thread.daemon = True
        thread.start()
    for place in places.values():
        place.wait()
    print("ready")
    sys.stdout.flush()
    sys.stdin.readline()
    going[0] = False
    for thread in threads:
        thread.join()
    free = "FREE"
    return free


bound_free = "GLOBAL bound"
places = {"inner": threading.Event(), "body": threading.Event()}
outer()
print(named, late)
sys.stdout.flush()
sys.stdin.readline()

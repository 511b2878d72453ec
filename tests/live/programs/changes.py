# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes the attributes of an object all the time; both always have the same value but for the
moment between two instructions, in which `both` has. Prints the object's id()."""
import sys


class State(object):
    pass


def change(state):
    number = 0
    while True:
        number += 1
        state.__dict__ = {"a": number, "b": number, "both": (number, [number] * 3)}


STATE = State()
STATE.__dict__ = {"a": 0, "b": 0, "both": (0, [])}
sys.stdout.write("%d\n" % id(STATE))
sys.stdout.flush()
change(STATE)

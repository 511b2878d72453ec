# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of many kinds in one dict, and the size that Python itself gives of each, as JSON."""

import array
import collections
import json
import sys
import time


class Slotted(object):
    __slots__ = ("one", "two")


class Plain(object):
    def __init__(self):
        self.size, self.other = "hidden by the stand-in", 2


def generate(argument):
    yield argument


def appended():
    found = []
    for number in range(100):
        found.append(number)
    return found


def emptied():
    found = {str(number): number for number in range(1000)}
    for number in range(990):
        del found[str(number)]
    return found


kept = {
    "int": 12, "negative": -7, "large": 1 << 1000, "float": 0.5, "complex": 1j, "none": None,
    "empty str": "", "ascii": "abc", "latin": u"n\u00e4me", "two bytes": u"\u20ac" * 10,
    "four bytes": u"\U0001f600" * 100, "large str": "x" * 1000000, "bytes": b"abc", "large bytes": b"x" * 1000000,
    "empty list": [], "list": [1, 2, 3], "appended": appended(), "empty tuple": (), "tuple": (1, (2, 3)),
    "empty dict": {}, "dict": {"one": 1}, "numbers": {number: str(number) for number in range(1000)},
    "emptied": emptied(), "empty set": set(), "set": {1, 2, 3},
    "large set": set(range(1000)), "frozenset": frozenset("abc"), "array": array.array("d", range(10)),
    "slots": Slotted(), "module": json, "function": generate, "range": range(10), "slice": slice(3),
    "empty deque": collections.deque(), "deque": collections.deque(range(1000)),
    "turned": collections.deque(range(70)),
}
for number in range(50):
    kept["turned"].popleft()
    kept["turned"].append(number)
told = {name: sys.getsizeof(value) for name, value in kept.items()}
# In some versions these take some words more or less: attributes lie beside an object, its bytes in another one.
more = {"plain": Plain(), "bytearray": bytearray(b"x" * 5000), "generator": generate(1), "true": True,
        "counter": collections.Counter("abc")}
about = {name: sys.getsizeof(value) for name, value in more.items()}
kept.update(more)
print("ready " + json.dumps([told, about]))
sys.stdout.flush()
time.sleep(1000)

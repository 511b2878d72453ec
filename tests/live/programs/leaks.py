# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that leaks in several ways, and prints the sizes of its objects. It leaks a round for each
line on stdin, and confirms it. Runs on all versions of Python 3."""
import array
import collections
import gc
import mmap
import sys

gc.disable()  # or the cycles would not stay
CACHE = {}


class Record(object):
    def __init__(self, number):
        self.number = number
        self.payload = bytearray(300)


class Slotted(object):
    __slots__ = ("left", "right")


class Bus(object):
    def __init__(self):
        self.handlers = []
        self.recent = collections.deque()


class Node(object):
    def __del__(self):
        pass


def make_keeper():
    kept = []

    def keep(value):
        kept.append(value)
    return keep


def work(number):
    """Leaves nothing behind."""
    return [str(number + i) for i in range(100)]


bus = Bus()
keep = make_keeper()
STRINGS = ["text number %d" % i for i in range(5000)]
TUPLES = [(i, i + 1000) for i in range(3000)]
DICTS = [{"number": 100000 + i} for i in range(2000)]
FLOATS = {i: i + 0.5 for i in range(1000)}
FROZEN = [frozenset([str(i), i]) for i in range(500)]
SLOTS = [Slotted() for _ in range(700)]
for slotted in SLOTS:
    slotted.left = "left %d" % id(slotted)
BUFFER = bytearray(3000000)
NUMBERS = array.array("d", [0.0] * 250000)
MAPPED = mmap.mmap(-1, 4 << 20)
ROUND = 400


def leak(number):
    CACHE["key %d" % number] = ("value %d" % number, number + 1000000)
    bus.handlers.append(lambda: number)
    bus.recent.append("recent %d" % number)
    keep(Record(number))
    one, other = Node(), Node()
    one.other, other.other = other, one


def main():
    local = {}
    total = 0
    print("ready")
    sys.stdout.flush()
    for line in sys.stdin:
        for _ in range(ROUND):
            leak(total)
            local["local %d" % total] = [total + 1000000]
            total += 1
        work(total)
        print("leaked %d" % total)
        sys.stdout.flush()


main()

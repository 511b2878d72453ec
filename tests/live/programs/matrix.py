# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of many kinds in variables of threads that sleep for good."""

import collections
import os
import sys
import threading

Point = collections.namedtuple("Point", "x y")


class Base(object):
    shared = "of the class"
    __slots__ = ("slot", "unset")

    def __init__(self):
        self.slot = [1, 2.5, "three"]

    def method(self):
        return self.slot

    @property
    def computed(self):
        raise SystemExit("code of the program was run")


class Derived(Base):
    def __init__(self):
        Base.__init__(self)
        self.number, self.negative, self.large = 12, -7, 1 << 70
        self.half, self.yes, self.nothing = 0.5, True, None
        self.text, self.bytes = "n\u00e4me \U0001f600", b"\x00bytes"
        self.table = {"one": 1, 2: "two", (3, 4): [5], "deep": {"er": {"est": "found"}}}
        self.names, self.frozen = {"a", 1}, frozenset([7])
        self.queue = collections.deque(range(5), 10)
        self.ordered = collections.OrderedDict([("z", 1), ("a", 2)])
        self.counted = collections.Counter("aab")
        self.default = collections.defaultdict(list, {"k": [1]})
        self.point, self.pair = Point(1, "r"), (1, (2, 3))
        self.empty, self.long = [], list(range(1000))
        self.type = "hidden by the stand-in"
        self.me = self
        self.other = Lazy()
        self.array = bytearray(b"xyz")


class Lazy(object):
    def __getattr__(self, name):
        raise SystemExit("code of the program was run")

    def __eq__(self, other):
        raise SystemExit("code of the program was run")

    __hash__ = None

    def __bool__(self):
        raise SystemExit("code of the program was run")


class Session(object):
    def __init__(self, state):
        self.state = state


def inner(everything, depth):
    if depth:
        return inner(everything, depth - 1)
    local = "of the innermost"
    os.read(pipe, 1)
    return local


def work(name):
    held = [name]
    inner(held, 3)


pipe, _writer = os.pipe()
kept = [Session("stuck" if i % 3 == 0 else "fine") for i in range(9)]
for name in ("worker-1", "worker-2"):
    thread = threading.Thread(target=work, name=name, args=(name,))
    thread.daemon = True
    thread.start()
everything = Derived()
print("ready")
sys.stdout.flush()
inner(everything, 2)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Frees and makes objects of many kinds all the time: small ones, whose memory is used again at once, and
large ones, whose memory is unmapped. Sleeps a moment between rounds on request."""

import collections
import random
import sys
import time


class Node(object):
    def __init__(self, depth):
        self.name = "node %d" % random.randrange(1000)
        self.children = [Node(depth - 1) for _ in range(2)] if depth else []
        self.parent = None
        for child in self.children:
            child.parent = self


class Slotted(object):
    __slots__ = ("a", "b")

    def __init__(self):
        self.a, self.b = [1.5] * random.randrange(10), {"k": "v" * random.randrange(50)}


MAKERS = [lambda: Node(3), Slotted, lambda: "x" * random.randrange(3000), lambda: b"y" * 300000,
          lambda: {i: str(i) for i in range(random.randrange(200))}, lambda: [None] * 200000,
          lambda: set(range(random.randrange(100))), lambda: 1 << random.randrange(2000),
          lambda: collections.deque(range(random.randrange(300))), lambda: (1, (2, (3,))),
          lambda: collections.OrderedDict(a=1), lambda: type("Made", (), {"x": 1})()]


def run(pool, pause):
    while True:
        for _ in range(50):
            pool[random.randrange(len(pool))] = random.choice(MAKERS)()
        if pause:
            time.sleep(0.001)


random.seed(7)
pool = [random.choice(MAKERS)() for _ in range(40)]
print("ready %d" % id(pool))
sys.stdout.flush()
run(pool, len(sys.argv) > 1)

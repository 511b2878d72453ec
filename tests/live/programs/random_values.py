# SPDX-License-Identifier: GPL-3.0-or-later
"""Nested objects made at random, the same for a seed in each version of Python: random_values.py SEED COUNT.
A process that runs any code of theirs ends."""

import collections
import os
import random
import sys
import time


class Node(object):
    def __getattr__(self, name):
        os._exit(3)

    __repr__ = __eq__ = __len__ = __bool__ = __iter__ = __getattr__
    __hash__ = None


class Slotted(object):
    __slots__ = ("left", "right")

    def __repr__(self):
        os._exit(3)


def text(rng, highest):
    return u"".join(chr(32 + int(rng.random() * highest)) for _ in range(rng.getrandbits(4)))


def leaf(rng):
    return (lambda: None, lambda: rng.random() < 0.5, lambda: rng.getrandbits(8) - 128,
            lambda: rng.getrandbits(1 + rng.getrandbits(8)) * (-1 if rng.random() < 0.5 else 1),
            lambda: (rng.random() - 0.5) * 10.0 ** (rng.getrandbits(6) - 32), lambda: text(rng, 90),
            lambda: text(rng, 0xd000), lambda: text(rng, 90).encode("ascii"))[rng.getrandbits(3)]()


def key(rng):
    return text(rng, 90) if rng.random() < 0.7 else rng.getrandbits(70)


def many(rng, depth):
    return [make(rng, depth) for _ in range(rng.getrandbits(3))]


def node(rng, depth):
    made = Node()
    for value in many(rng, depth):
        made.__dict__["a%d" % rng.getrandbits(5)] = value
    return made


def slotted(rng, depth):
    made = Slotted()
    made.left = make(rng, depth)
    if rng.random() < 0.5:
        made.right = make(rng, depth)
    return made


def make(rng, depth):
    if not depth or rng.random() < 0.3:
        return leaf(rng)
    return (lambda: many(rng, depth - 1), lambda: tuple(many(rng, depth - 1)),
            lambda: {key(rng): value for value in many(rng, depth - 1)},
            lambda: {key(rng) for _ in range(rng.getrandbits(3))},
            lambda: collections.deque(many(rng, depth - 1)), lambda: node(rng, depth - 1),
            lambda: slotted(rng, depth - 1), lambda: frozenset(key(rng) for _ in range(3)))[rng.getrandbits(3)]()


def generate(seed, count):
    rng = random.Random(seed)
    return [make(rng, 4) for _ in range(count)]


if __name__ == "__main__":
    kept = generate(int(sys.argv[1]), int(sys.argv[2]))
    print("ready")
    sys.stdout.flush()
    time.sleep(1000)

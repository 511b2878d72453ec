# SPDX-License-Identifier: GPL-3.0-or-later
"""Works at depths of calls that it counts itself: depths.py KIND FILE

KIND is how each call makes the next: "plain", "c" (through a function of C) or "generators". FILE is an array of
64-bit numbers; number N becomes the nanoseconds of processor time that were used under N calls of `down`.
"""
import mmap
import random
import sys
import time

DEPTHS = {2: 2000, 3: 3000, 9: 4000, 10: 5000, 30: 6000, 31: 7000, 60: 8000, 61: 9000}  # loops at each


def work(depth):
    begun = time.thread_time_ns()
    for _ in range(DEPTHS[depth] * 3):
        pass
    times[depth] += time.thread_time_ns() - begun


def plain():
    def down(left, depth):
        if left > 1:
            down(left - 1, depth)
        else:
            work(depth)
    return down


def through_c():
    def down(left, depth):
        if left > 1:
            next(map(down, (left - 1,), (depth,)))
        else:
            work(depth)
    return down


def generators():
    def down(left, depth):
        if left > 1:
            yield from down(left - 1, depth)
        else:
            work(depth)
            yield
    return lambda left, depth: list(down(left, depth))


with open(sys.argv[2], "r+b") as file:
    times = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")
down = {"plain": plain, "c": through_c, "generators": generators}[sys.argv[1]]()
order = list(DEPTHS)
print("ready", flush=True)
while True:
    random.shuffle(order)
    for each in order:
        down(each, each)

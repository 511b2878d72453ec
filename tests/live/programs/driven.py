# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns with methods, generators, a lambda, exceptions and a loop on one line, beside a thread; shared[0]
counts turns."""
import mmap
import sys
import threading
import time

with open(sys.argv[1], "r+b") as file:
    shared = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")


class Net:
    def __init__(self):
        self.calls = 0

    def forward(self, batch):
        total = 0
        for x in batch:
            total += x
        self.calls += 1
        return total


def items(k):
    yield k
    yield k + 1


def fails(k):
    try:
        raise KeyError(k)
    except KeyError:
        pass
    raise ValueError(k)


def one_line(k):
    for i in range(2): k += i  # noqa: E701
    return k


double = lambda value: value * 2  # noqa: E731


def turn(net, k):
    loss = net.forward(list(items(k)))
    both = double(loss)
    try:
        fails(both)
    except ValueError:
        pass
    return one_line(both)


class Ticks:
    def forward(self, number):
        return number + 1


def beside():
    number, ticks = 0, Ticks()
    while True:
        number = ticks.forward(number)
        time.sleep(0.01)


def main():
    threading.Thread(target=beside, name="beside", daemon=True).start()
    net, k = Net(), 0
    print("ready", flush=True)
    while True:
        k += 1
        turn(net, k)
        shared[0] += 1
        time.sleep(0.001)


main()

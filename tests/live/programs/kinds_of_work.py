# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of several kinds that measure their own functions: kinds_of_work.py KIND RATE, until "stop" comes on stdin.

"go SECONDS" has it use a processor for so long, and print what each function used of that, in milliseconds.
Each measured piece takes milliseconds, so that reading the clock, a system call, does not count.
"""
import hashlib
import sys
import time

clock = getattr(time, "thread_time", time.process_time)
KIND, RATE = sys.argv[1], float(sys.argv[2])
BLOCK = bytes(1 << 20)
NUMBERS = [number * 7919 % 10007 for number in range(8000)]
spent = {}


def light():
    number = 0
    for _ in range(30000):
        number += 1


def heavy():
    number = 0
    for step in range(50000):
        number = (number * 31 + step) % 1000003


def hashes():
    hashlib.sha256(BLOCK)


def sorts():
    sorted(NUMBERS)
    sorted(NUMBERS)


def naps():
    light()
    time.sleep(0.0005)


def dozes():
    heavy()
    time.sleep(0.0015)


def one():
    pass


def other(argument):
    return argument


def ones():
    for _ in range(20000):
        one()


def others():
    for number in range(30000):
        other(number)


def until(part):
    """Waits until the present period, on average one of the sampler's, has reached that part."""
    whole = time.monotonic() * RATE
    number, end = 0, whole // 1 + part
    while time.monotonic() * RATE < end:
        for _ in range(20):
            number += 1


def first():
    until(0.4)


def second():
    until(1)


KINDS = {"python": (light, heavy), "c": (hashes, sorts), "sleeps": (naps, dozes), "tiny": (ones, others),
         "lockstep": (first, second)}


def work(seconds):
    end = clock() + seconds
    while clock() < end:
        for function in KINDS[KIND]:
            begin = clock()
            function()
            spent[function.__name__] = spent.get(function.__name__, 0) + clock() - begin
    print(" ".join("%s %.3f" % (name, 1000 * spent[name]) for name in sorted(spent)), flush=True)


print("ready", flush=True)
for line in sys.stdin:
    order = line.split()
    if order[0] != "go":
        break
    work(float(order[1]))

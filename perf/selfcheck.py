# SPDX-License-Identifier: GPL-3.0-or-later
# Functions that measure themselves, for `probing perf --selfcheck`. It says "ready", runs at the first
# line of stdin, prints what each function used of a processor and how long it took, and waits for the end.
import sys
import time

cpu, wall = getattr(time, "thread_time", time.process_time), getattr(time, "monotonic")
spent = {}


def burn(seconds):
    end = cpu() + seconds
    while cpu() < end:
        sum(range(100))


def short():
    burn(0.003)


def long():
    burn(0.007)


def tiny():
    pass


def many():
    for _ in range(20000):
        tiny()


def waiting():
    burn(0.001)
    time.sleep(0.004)


def check(seconds):
    end = wall() + seconds
    while wall() < end:
        for function in (short, long, many, waiting):
            before = cpu(), wall()
            function()
            used = spent.setdefault(function.__name__, [0.0, 0.0])
            used[0] += cpu() - before[0]
            used[1] += wall() - before[1]


sys.stdout.write("ready\n")
sys.stdout.flush()
check(float(sys.stdin.readline()))
sys.stdout.write("".join("%s %.6f %.6f\n" % (name, spent[name][0], spent[name][1]) for name in spent) + "end\n")
sys.stdout.flush()
sys.stdin.readline()

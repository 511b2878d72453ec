# SPDX-License-Identifier: GPL-3.0-or-later
"""Two functions that share a processor: shares.py TENTHS, of the time that is heavy()'s."""
import sys
import time

clock = getattr(time, "thread_time", time.process_time)


def heavy(seconds):
    end = clock() + seconds
    while clock() < end:
        sum(range(100))


def light(seconds):
    end = clock() + seconds
    while clock() < end:
        sum(range(100))


def step(tenths):
    heavy(0.0002 * tenths)
    light(0.0002 * (10 - tenths))


print("ready", flush=True)
while True:
    step(int(sys.argv[1]))

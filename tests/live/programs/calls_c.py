# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls a function of the C library while it holds the GIL, from a function whose variable has the name of a
global one; in between it sleeps."""
import os
import time

n = 1000
rounds = 0


def work(n):
    os.getppid()
    return n


def outer(n):
    other = n
    return work(n - 1) + other


os.write(1, b"ready\n")
while True:
    outer(6)
    rounds += 1
    time.sleep(0.02)

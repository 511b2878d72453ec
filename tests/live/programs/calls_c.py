# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls a function of the C library, or of the library that is named, while it holds the GIL, from a function
whose variable has the name of a global one; in between it sleeps."""
import os
import sys
import time

n = 1000
if len(sys.argv) > 1:
    import ctypes

    leaf = ctypes.PyDLL(sys.argv[1]).native_leaf
rounds = 0


def work(n):
    leaf(n) if len(sys.argv) > 1 else os.getppid()
    return n


def outer(n):
    other = n
    return work(n - 1) + other


os.write(1, b"ready\n")
while True:
    outer(6)
    rounds += 1
    time.sleep(0.02)

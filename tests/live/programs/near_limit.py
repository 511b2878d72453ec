# SPDX-License-Identifier: GPL-3.0-or-later
"""The main thread has few calls left to its recursion limit. With a byte of stdin it reaches the limit, and prints
so."""
import os
import select
import sys

FEW = 3


def endless():
    endless()


def descend(left):
    if left:
        return descend(left - 1)
    os.write(1, b"ready\n")
    while not select.select([0], [], [], 0)[0]:
        pass
    try:
        endless()
    except RecursionError:
        os.write(1, b"limit\n")
    os.read(0, 100)


descend(sys.getrecursionlimit() - FEW - 2)

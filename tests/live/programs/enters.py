# SPDX-License-Identifier: GPL-3.0-or-later
"""Enters the eval loop from C all the time: Python functions that C functions call."""
import functools


def leaf(x):
    return x


def key(x):
    return leaf(x)


def add(a, b):
    return leaf(a)


def work():
    print("ready", flush=True)
    while True:
        functools.reduce(add, map(key, range(30)))
        sorted(range(10), key=key)


work()

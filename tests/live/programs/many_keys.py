# SPDX-License-Identifier: GPL-3.0-or-later
"""Dicts of many sizes, with keys that came and went; says when they are there, and sleeps."""
import os
import sys


class Record(object):
    def __init__(self):
        self.first, self.second, self.third, self.fourth = 1, 2, 3, 4
        self.fifth, self.sixth, self.seventh, self.eighth = 5, 6, 7, 8


def fill(count):
    table = {}
    for number in range(count):
        table["key_%d" % number] = number
        table[number] = "a number"
    for number in range(0, count, 3):
        del table["key_%d" % number]
    for number in range(0, count, 7):
        table["key_%d" % number] = -number
    table["\xe9t\xe9"] = "not ASCII"
    return table


def wait():
    few, some, many, most = fill(3), fill(60), fill(900), fill(22000)
    plain = dict(("key_%d" % number, number) for number in range(30000))
    record = Record()
    print("ready")
    sys.stdout.flush()
    os.read(os.pipe()[0], 1)
    return few, some, many, most, plain, record


wait()

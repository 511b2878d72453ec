# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls and returns all the time, with variables that belong together: twice is 2 * i in add(), and
double is 2 * n in work()."""

import sys


class Trainer(object):
    def __init__(self):
        self.step = 0

    def run(self):
        while True:
            self.step += 1
            self.work(self.step)

    def work(self, n):
        double = 2 * n
        items = [n]
        total = 0.5
        for i in range(n % 7 + 1000, n % 7 + 1010):
            total = self.add(total, i)
        return items, double

    def add(self, total, i):
        twice = i * 2
        half = twice * 0.25
        if half:
            total += twice
        return total


print("ready")
sys.stdout.flush()
Trainer().run()

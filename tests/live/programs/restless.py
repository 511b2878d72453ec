# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that sleep for moments and compute for moments."""
import os
import sys
import threading
import time


def rest(seconds):
    time.sleep(seconds)


def compute(count):
    total = 0
    while count:
        count -= 1
        total += count
    return total


def work(seconds):
    while True:
        rest(seconds)
        compute(2000)


for index in range(3):
    threading.Thread(target=work, args=(0.0001 * (index + 1),), name="worker", daemon=True).start()
os.write(1, b"ready\n")
sys.stdin.read()

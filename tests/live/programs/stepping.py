# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls a function again and again, on a thread with a name."""

import sys
import threading
import time


def step(n):
    value = n * 2
    time.sleep(0.005)
    return value


def run():
    n = 0
    while True:
        n += 1
        step(n)


threading.current_thread().name = "main"
print("ready")
sys.stdout.flush()
run()

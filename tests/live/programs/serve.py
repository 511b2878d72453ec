# SPDX-License-Identifier: GPL-3.0-or-later
"""A service whose p99 is bad: each fiftieth request waits for something."""
import threading
import time

SLOW = 0.5
waited = threading.Event()


def handle(number):
    if number % 50 == 0:
        waited.wait(SLOW)
    return number


print("ready", flush=True)
number = 0
while True:
    number += 1
    handle(number)
    time.sleep(0.001)

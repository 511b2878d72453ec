# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls that take a processor for half a second each."""
import time


def handle(number):
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        number += 1
    return number


print("ready", flush=True)
while True:
    handle(0)

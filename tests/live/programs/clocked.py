# SPDX-License-Identifier: GPL-3.0-or-later
"""One busy thread that prints, for each byte of its input, three times in seconds: its age, its time on a
processor, and its time of waiting for a processor. The missing rest of its age is time that something else
took from it."""
import os
import select
import time


def account():
    """All three at one time, as far as that can be had."""
    while True:
        now = time.monotonic()
        with open("/proc/thread-self/schedstat") as file:
            ran, waited = file.read().split()[:2]
        if time.monotonic() - now < 0.001:
            return [now, int(ran) / 1e9, int(waited) / 1e9]


os.write(1, b"ready\n")
while True:
    for _ in range(1000):
        pass
    if select.select([0], [], [], 0)[0]:
        if not os.read(0, 1):
            break
        os.write(1, ("%r\n" % account()).encode())

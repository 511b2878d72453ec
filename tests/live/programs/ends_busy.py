# SPDX-License-Identifier: GPL-3.0-or-later
"""Busy threads, as many as given; the main thread is asked to end after some busy milliseconds, and leaves
objects that take the interpreter a while to free."""
import os
import sys
import threading
import time


def work():
    count = 0
    while True:
        count += 1


class Late:
    def __del__(self):
        sum(range(20000))


kept = [Late() for _ in range(3)], [[number] for number in range(100000)]
for _ in range(int(sys.argv[1])):
    threading.Thread(target=work, daemon=True).start()
os.write(1, b"ready\n")
end = time.monotonic() + int(sys.stdin.readline()) / 1000
while time.monotonic() < end:
    pass

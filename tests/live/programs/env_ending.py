# SPDX-License-Identifier: GPL-3.0-or-later
"""Says that it is ready, then ends: with daemon threads, exit functions, and objects to destroy."""
import atexit
import sys
import threading


class Slow:
    def __del__(self):
        sum(range(20000))


def compute():
    while True:
        sum(range(100))


for _ in range(3):
    thread = threading.Thread(target=compute)
    thread.daemon = True
    thread.start()
keep = [Slow() for _ in range(50)]
atexit.register(lambda: sum(range(200000)))
print("ready")
sys.stdout.flush()
sys.stdin.readline()

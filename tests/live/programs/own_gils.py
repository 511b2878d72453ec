# SPDX-License-Identifier: GPL-3.0-or-later
"""Two subinterpreters that run Python under a GIL of their own, and the main one that calls job(); it counts in
the first number of the shared ARGV[1]."""
import mmap
import os
import sys
import threading
import time

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

BUSY = """
import time
def job(n):
    time.sleep(0.001)
    return n
while True:
    job(1)
"""


def job(n):
    double = n * 2
    time.sleep(0.001)
    return double


for _ in range(2):
    thread = threading.Thread(target=interpreters.run_string, args=(interpreters.create(), BUSY))
    thread.daemon = True
    thread.start()
with open(sys.argv[1], "r+b") as file:
    shared = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")
os.write(1, b"ready\n")
while True:
    shared[0] += 1
    job(shared[0])

# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads whose frames start and end all the time, and functions that are new. Each thread counts its
turns in a number of the shared ARGV[1], from the third on; the first is the main thread's, and the second
counts the frames that were read by anybody."""
import ctypes  # before gdb attaches: a killed gdb leaves a breakpoint in the loader
import mmap
import os
import sys
import threading
import time

THREADS = 4
ready = False


def work(number):
    double = number * 2
    result = double + 1
    return result


def deep(left):
    if left:
        deep(left - 1)


def busy(at):
    while True:
        for _ in range(20):
            work(at)
            deep(200)
        names = {}
        exec("def fresh():\n return 1", names)
        names["fresh"]()
        shared[at] += 1


def audit(event, arguments):
    if event == "object.__getattr__" and arguments[1] == "f_code":
        shared[1] += 1


with open(sys.argv[1], "r+b") as file:
    shared = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")
if sys.version_info >= (3, 12):  # before, threads are not traced where there are hooks
    sys.addaudithook(audit)
for at in range(THREADS):
    thread = threading.Thread(target=busy, args=(2 + at,))
    thread.daemon = True
    thread.start()
os.write(1, b"ready\n")
while True:
    shared[0] += 1
    time.sleep(0.001)

# SPDX-License-Identifier: GPL-3.0-or-later
"""The program for breakpoints. The main thread counts its calls of work() in the first number of the
shared ARGV[1], and in the second one how deep a recursion could go; another thread has a generator.
ARGV[2] is loaded as late.py once it is there, and its late() is called."""
import ctypes  # before gdb attaches: a killed gdb leaves a breakpoint in the loader
import mmap
import os
import sys
import threading
import time

ready = False
recurses = True
depth = 0


def work(number):
    double = number * 2
    result = double + 1

    return result


def numbers():
    value = 0
    while True:
        value += 1
        yield value


def deep(left):
    global depth
    depth = left
    deep(left + 1)


def unseen():
    return work(-1)


def load(late):
    if not late and os.path.exists(sys.argv[2]):
        names = {}
        with open(sys.argv[2]) as file:
            exec(compile(file.read(), "/nowhere/late.py", "exec"), names)
        late.append(names["late"])
    for function in late:
        function(1)


def others():
    for value in numbers():
        time.sleep(0.001)


thread = threading.Thread(target=others)
thread.daemon = True
thread.start()
late = []
with open(sys.argv[1], "r+b") as file:
    shared = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")
os.write(1, b"ready\n")
while True:
    shared[0] += 1
    work(shared[0])
    load(late)
    try:
        if recurses:
            deep(0)
    except RecursionError:
        shared[1] = depth
    time.sleep(0.001)

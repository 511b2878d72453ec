# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that count without pause, each in shared memory; one of them holds the lock of all imports until
a line is read. Then it prints the number of functions called at the end of the interpreter."""
import _imp
import mmap
import os
import sys
import threading

with open(sys.argv[1], "r+b") as file:
    memory = mmap.mmap(file.fileno(), 0)
shared = memoryview(memory).cast("q")
released = threading.Event()


def count(index, ends):
    while not ends():
        shared[index] += 1


def import_for_long():
    _imp.acquire_lock()
    os.write(1, b"ready\n")
    count(0, released.is_set)
    _imp.release_lock()
    callbacks = __import__("atexit")._ncallbacks()
    os.write(1, b"released %d\n" % callbacks)


sys.modules.pop("atexit", None)
for number in range(1, 4):
    threading.Thread(target=count, args=(number, lambda: False), daemon=True).start()
threading.Thread(target=import_for_long, daemon=True).start()
sys.stdin.readline()
released.set()
sys.stdin.readline()

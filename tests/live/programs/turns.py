# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that never rest; in shared memory they count how often another one has its turn."""
import mmap
import os
import sys
import threading

LAST, TURNS = 0, 1
with open(sys.argv[1], "r+b") as file:
    memory = mmap.mmap(file.fileno(), 0)
shared = memoryview(memory).cast("q")


def work(number):
    while number:
        if shared[LAST] != number:
            shared[LAST] = number
            shared[TURNS] += 1


for each in range(int(sys.argv[2])):
    threading.Thread(target=work, args=(each + 1,), daemon=True).start()
os.write(1, b"ready\n")
sys.stdin.read()

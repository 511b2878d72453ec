# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that count without rest, each in shared memory for the test to see; with a third
argument they give each other the GIL only after so many seconds."""
import mmap
import os
import sys
import threading

with open(sys.argv[1], "r+b") as file:
    memory = mmap.mmap(file.fileno(), 0)
shared = memoryview(memory).cast("q")
counts = [0] * int(sys.argv[2])


def work(index):
    local = "of thread %d" % index
    while local:
        counts[index] += 1
        shared[index] = counts[index]


for index in range(len(counts)):
    threading.Thread(target=work, args=(index,), daemon=True).start()
if len(sys.argv) > 3:
    sys.setswitchinterval(float(sys.argv[3]))
os.write(1, b"ready\n")
sys.stdin.read()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that sleep for good in a pipe, the main thread too: asleep.py THREADS"""
import os
import sys
import threading

descriptor = os.pipe()[0]
for _ in range(int(sys.argv[1])):
    thread = threading.Thread(target=os.read, args=(descriptor, 1))
    thread.daemon = True
    thread.start()
print("ready", flush=True)
os.read(descriptor, 1)

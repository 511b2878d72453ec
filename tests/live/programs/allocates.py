# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that are nearly always in malloc() or free() of the C library, and check their memory."""
import sys
import threading

lock = threading.Lock()
lock.acquire()
broken = []


def churn(number):
    kept = []
    while True:
        kept.append(bytes([number]) * (1000 + 37 * len(kept)))
        if len(kept) == 50:
            for block in kept:
                if block != bytes([number]) * len(block):
                    broken.append(number)
            kept = []


for i in range(3):
    thread = threading.Thread(target=churn, args=(i,))
    thread.daemon = True
    thread.start()
print("ready")
sys.stdout.flush()
churn(7)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Transfers money between two accounts until two threads wait for each other."""

import threading
import time

cash, savings = threading.Lock(), threading.Lock()
amount = 250


def transfer(first, second, ready):
    with first:
        ready.wait()
        with second:
            print("moved", amount)


both = threading.Barrier(2)
threading.Thread(target=transfer, args=(cash, savings, both), name="deposit").start()
threading.Thread(target=transfer, args=(savings, cash, both), name="withdraw").start()
print("ready", flush=True)
while True:
    time.sleep(60)

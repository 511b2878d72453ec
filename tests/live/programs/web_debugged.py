# SPDX-License-Identifier: GPL-3.0-or-later
"""A program to pause, step and run code in: it counts, and prints its input."""
import threading
import time

held = []  # grows all the time
shelf = [bytearray(1000) for _ in range(3)]


def count(number):
    number += 1
    time.sleep(0.001)
    return number


def keep():
    while True:
        held.append(bytearray(1000))
        time.sleep(0.01)


def work():
    number = 0
    print("ready", flush=True)
    while True:
        number = count(number)


threading.Thread(target=keep, name="keeper", daemon=True).start()
work()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the same line again and again in two threads, and counts; says "ready" when they do. Alone: in one
thread, and threading is not imported."""
import sys
import time

rounds = 0


def inner(number):
    total = number + 1
    time.sleep(0.001)
    return total


def work():
    global rounds
    while True:
        inner(rounds)
        rounds += 1


if sys.argv[1:] == ["alone"]:
    assert "threading" not in sys.modules
else:
    import threading

    thread = threading.Thread(target=work, name="worker")
    thread.daemon = True
    thread.start()
sys.stdout.write("ready\n")
sys.stdout.flush()
work()

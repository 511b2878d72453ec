# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that live for a moment, started by four others without end."""
import sys
import threading
import time


def inner():
    time.sleep(0.0002)


def middle():
    inner()


def outer():
    middle()


def start_threads():
    while True:
        threads = [threading.Thread(target=outer, name="short") for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


for number in range(4):
    starter = threading.Thread(target=start_threads, name="starter-%d" % number)
    starter.daemon = True
    starter.start()
print("ready")
sys.stdout.flush()
sys.stdin.read()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Two threads in nested functions, for code that runs in their frames."""
import sys
import threading
import time

SHARED = "shared"


def inner(rows, turn):
    label = "inner"
    began.set()
    while label:
        turn += 1
        time.sleep(0.001)


def outer():
    name = "outer"
    inner([1, 2, 3], 0)
    return name


def main():
    here = "main"
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while here:
        time.sleep(0.001)


began = threading.Event()
worker = threading.Thread(target=outer, name="worker")
worker.daemon = True
worker.start()
began.wait()
main()

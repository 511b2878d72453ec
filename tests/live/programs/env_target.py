# SPDX-License-Identifier: GPL-3.0-or-later
"""An idle main thread, a thread that waits for a lock, and with $BUSY one that computes.

Needs no extension module, so that it runs in whatever Python is embedded."""
import os
import sys
import threading


def compute(started):
    started.set()
    while True:
        pass


def wait_for(lock):
    lock.acquire()  # the waiter waits here


def start(name, function, argument):
    thread = threading.Thread(target=function, args=(argument,), name=name)
    thread.daemon = True
    thread.start()


def rest():
    print("ready %d" % os.getpid())
    sys.stdout.flush()
    sys.stdin.read()  # the main thread rests here


def main():
    lock = threading.Lock()
    lock.acquire()
    start("waiter", wait_for, lock)
    if "BUSY" in os.environ:
        started = threading.Event()
        start("worker", compute, started)
        started.wait()
    rest()


main()

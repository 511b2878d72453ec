# SPDX-License-Identifier: GPL-3.0-or-later
"""One thread computes in a recursion, three wait for a lock, the main thread reads a socket."""
import socket
import sys
import threading

running = threading.Event()


def rec_busy(depth):
    if depth:
        return rec_busy(depth - 1)
    running.set()
    while True:
        pass


def wait_for(lock):
    with lock:
        pass


def start(name, function, argument):
    thread = threading.Thread(target=function, args=(argument,), name=name)
    thread.daemon = True
    thread.start()


def main():
    lock = threading.Lock()
    lock.acquire()
    for i in range(3):
        start("waiter-%d" % i, wait_for, lock)
    start("worker", rec_busy, 20)
    running.wait()
    print("ready")
    sys.stdout.flush()
    ours, theirs = socket.socketpair()
    ours.recv(1)
    return theirs


main()

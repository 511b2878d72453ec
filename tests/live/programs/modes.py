# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that hold and wait for the GIL, or for other things: a slice of them is started."""
import socket
import sys
import threading
import time

lock = threading.RLock()
locked = threading.Event()


def hog():
    while True:
        sum(range(1500000))  # one call of C, which keeps the GIL


def wants():
    while True:
        time.sleep(0)


def owner():
    with lock:
        locked.set()
        time.sleep(1000)


def second():
    locked.wait()
    lock.acquire()


def listens():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1)
    listener.accept()


for function in (hog, wants, owner, second, listens)[int(sys.argv[1]):int(sys.argv[2])]:
    threading.Thread(target=function, name=function.__name__, daemon=True).start()
print("ready")
sys.stdout.flush()
threading.Event().wait()

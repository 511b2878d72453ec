# SPDX-License-Identifier: GPL-3.0-or-later
"""A thread forks while others wait for the GIL; the child sleeps.

    forks_busy.py raw|told|os|quiet

As programs of C fork, with or without telling Python, or by os.fork(). In the last case, too, but
there the only other thread sleeps."""
import ctypes
import os
import signal
import sys
import threading
import time

PYTHON = ctypes.PyDLL(None)
GATE = os.pipe()


def busy():
    while True:
        pass


def child():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    text = b"child %d\n" % os.getpid()
    PYTHON.write(1, text, len(text))  # with the GIL, which this child may not be able to give away
    os.read(GATE[0], 1)
    os._exit(0)


def sleeps():
    with open("/proc/self/task/%d/stat" % os.getpid()) as file:
        return " S " in file.read()


def forks():
    while sys.argv[1] == "quiet" and not all(sleeps() for _ in range(20)):
        pass
    time.sleep(0.2)
    if sys.argv[1] == "os":
        pid = os.fork()
    else:
        if sys.argv[1] == "told":
            PYTHON.PyOS_BeforeFork()
        pid = PYTHON.fork()
        if pid == 0 and sys.argv[1] == "told":
            PYTHON.PyOS_AfterFork_Child()
    if pid == 0:
        child()
    if sys.argv[1] == "told":
        PYTHON.PyOS_AfterFork_Parent()
    os.waitpid(pid, 0)


for _ in range(0 if sys.argv[1] == "quiet" else 3):
    threading.Thread(target=busy, daemon=True).start()
threading.Thread(target=forks, daemon=True).start()
os.read(GATE[0], 1)

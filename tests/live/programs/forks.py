# SPDX-License-Identifier: GPL-3.0-or-later
"""A process that forks as programs of C do, beside a thread of Python.

    forks.py main|thread [told]

The child is made by the main thread or by another one. Only with "told" Python's fork handlers run."""
import ctypes
import os
import signal
import sys
import threading

PYTHON = ctypes.PyDLL(None)
GATE = os.pipe()


def stays():
    os.read(GATE[0], 1)


def child():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    print("child", os.getpid(), flush=True)
    os.read(GATE[0], 1)
    os._exit(0)


def forks():
    if "told" in sys.argv:
        PYTHON.PyOS_BeforeFork()
    pid = PYTHON.fork()
    if pid == 0:
        if "told" in sys.argv:
            PYTHON.PyOS_AfterFork_Child()
        child()
    os.waitpid(pid, 0)


threading.Thread(target=stays, daemon=True).start()
if sys.argv[1] == "main":
    forks()
else:
    threading.Thread(target=forks, daemon=True).start()
    os.read(GATE[0], 1)

# SPDX-License-Identifier: GPL-3.0-or-later
"""The first thread ends by pthread_exit(), and another continues."""
import ctypes
import platform
import sys
import threading


def rest():
    leader.wait()
    print("ready", flush=True)
    sys.stdin.read()


leader = threading.Event()
threading.Thread(target=rest, name="rest").start()
leader.set()
# The system call, of this thread alone; with the GIL released.
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 0)

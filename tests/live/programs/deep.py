# SPDX-License-Identifier: GPL-3.0-or-later
"""A thread with a deep recursion at its end: deep.py DEPTH blocked|running"""
import os
import sys
import threading


def recurse(n):
    if n > 1:
        return recurse(n - 1) + 1
    frame, count = sys._getframe(), 0
    while frame is not None:
        frame, count = frame.f_back, count + 1
    print("ready %d" % count, flush=True)
    if sys.argv[2] == "blocked":
        os.read(os.pipe()[0], 1)
    while True:
        pass


sys.setrecursionlimit(1000000)
if sys.version_info < (3, 12):
    threading.stack_size(1 << 30)
thread = threading.Thread(target=recurse, args=(int(sys.argv[1]),), name="deep")
thread.start()
thread.join()

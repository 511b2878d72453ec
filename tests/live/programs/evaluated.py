# SPDX-License-Identifier: GPL-3.0-or-later
"""What code is evaluated in. The main thread, after "ready": idle reads stdin, busy counts, gil is in a
call that holds the GIL each time stdin says so, while it counts to a number, or without one until
stdin says more; prints lets another thread print lines."""
import os
import sys
import threading
import time

numbers = [1, 2, 3]
count = 0
mode = sys.argv[1]


def printing():
    while True:
        print("other %d" % count)
        sys.stderr.write("other\n")
        sys.stdout.flush()
        time.sleep(0.001)


def hold():
    """One call in C that lets nobody else run."""
    if len(sys.argv) > 2:
        sum(range(int(sys.argv[2])))
    else:
        import ctypes
        ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(1), 1)


if mode != "alone":  # before 3.7, the GIL is made with the first thread
    other = threading.Thread(target=time.sleep, args=(0,))
    other.start()
    other.join()
os.write(1, b"ready\n")
if mode == "prints":
    thread = threading.Thread(target=printing)
    thread.daemon = True
    thread.start()
if mode == "busy":
    while True:
        count += 1
elif mode == "gil":
    while os.read(0, 1):
        os.write(1, b"holds\n")
        hold()
        os.write(1, b"held\n")
else:
    while os.read(0, 1):
        os.write(1, b"awake\n")

# SPDX-License-Identifier: GPL-3.0-or-later
"""Executes each line of stdin on its main thread, without reading ahead, and says "done"."""
import os
import sys
import threading


def line():
    """The next line; between them the thread sleeps in read()."""
    text = b""
    while not text.endswith(b"\n"):
        text += os.read(0, 1) or sys.exit()
    return text.decode()


thread = threading.Thread(target=int)  # before 3.7, the GIL is made with the first thread
thread.start()
thread.join()
os.write(1, b"ready\n")
while True:
    exec(line())
    os.write(1, b"done\n")

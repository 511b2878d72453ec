# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes its title over its arguments and environment, as setproctitle does."""
import ctypes
import os
import time


def write_title(title):
    with open("/proc/self/stat") as file:
        # Of the fields behind the name, the addresses of arguments and environment are 45 to 48.
        start, _, _, end = map(int, file.read().rpartition(")")[2].split()[45:49])
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, title, min(len(title), end - start - 1))


write_title(os.fsencode("worker a=b " * int(os.environ["TITLES"])))
print("ready", flush=True)
time.sleep(1000)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Is killed as its argument says: prints a line before that."""
import ctypes
import os
import signal
import sys
import threading
import time

how = sys.argv[1]


def die():
    print("ready", flush=True)
    if how == "address":
        ctypes.string_at(0xdeadbeef)
    elif how == "abort":
        os.abort()
    elif how == "kill":
        os.kill(os.getpid(), signal.SIGSEGV)
    else:
        time.sleep(1000)


if how == "thread":
    how = "address"
    threading.Thread(target=die).start()
    time.sleep(1000)
else:
    die()

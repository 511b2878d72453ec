# SPDX-License-Identifier: GPL-3.0-or-later
"""One thread waits in vfork(), by the given library; the main thread is idle."""
import ctypes
import sys
import threading


def spawn(library):
    library.stand_in_vfork()


thread = threading.Thread(target=spawn, args=(ctypes.CDLL(sys.argv[1]),), name="spawner")
thread.daemon = True
thread.start()
print("ready")
sys.stdout.flush()
sys.stdin.read()

# SPDX-License-Identifier: GPL-3.0-or-later
"""One thread stands in vfork(), by a library that is given; the main thread rests."""
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

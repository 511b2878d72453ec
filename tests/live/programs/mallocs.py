# SPDX-License-Identifier: GPL-3.0-or-later
"""Allocates by malloc() of the C library as it is told, and keeps it: "blocks COUNT SIZE"; "thread
COUNT SIZE" the same in a thread of its own, which stays; "pointers COUNT SIZE": they begin with an
address in that library. "info" prints what mallinfo2() says: bytes of arenas, mapped blocks and
their bytes, bytes in use, and bytes in fast bins."""
import ctypes
import sys
import threading

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.malloc.argtypes = [ctypes.c_size_t]
ctypes.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
ADDRESS = ctypes.cast(library.qsort, ctypes.c_void_p).value
NAMES = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks",
         "keepcost")


class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in NAMES]


def blocks(count, size, word=None):
    for _ in range(count):
        block = library.malloc(size)
        ctypes.memset(block, 1, size)
        if word:
            ctypes.c_size_t.from_address(block).value = word


def stay(count, size, done):
    blocks(count, size)
    done.set()
    threading.Event().wait()


def info():
    library.mallinfo2.restype = Info
    found = library.mallinfo2()
    return "%d %d %d %d %d" % (found.arena, found.hblks, found.hblkhd, found.uordblks, found.fsmblks)


print("ready", flush=True)
for line in sys.stdin:
    word, numbers = line.split()[0], [int(number) for number in line.split()[1:]]
    if word == "thread":
        done = threading.Event()
        threading.Thread(target=stay, args=(*numbers, done), daemon=True).start()
        done.wait()
    elif word != "info":
        blocks(*numbers, *([ADDRESS] if word == "pointers" else []))
    print(info() if word == "info" else "did", flush=True)

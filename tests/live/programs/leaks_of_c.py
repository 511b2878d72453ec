# SPDX-License-Identifier: GPL-3.0-or-later
"""Leaks 4 MiB for each line on stdin by malloc() of the C library, and says so."""
import ctypes
import sys

library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.malloc.argtypes = [ctypes.c_size_t]
library.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
library.memset.restype = None
SIZE, BLOCKS = 65536, 64

print("ready")
sys.stdout.flush()
for line in sys.stdin:
    for _ in range(BLOCKS):
        library.memset(library.malloc(SIZE), 1, SIZE)
    print("leaked")
    sys.stdout.flush()

# SPDX-License-Identifier: GPL-3.0-or-later
"""jitdump.py FOLDER MODE: makes machine code, tells of it in FOLDER/jit-PID.dump as perf wants it, and runs it.

The dump has the mode MODE. A byte on stdin makes it move the code."""
import ctypes
import mmap
import os
import struct
import sys

# mov rax, rdi; 1: dec rax; jnz 1b; ret
CODE = bytes.fromhex("4889f848ffc875fbc3")
folder, mode = sys.argv[1], int(sys.argv[2], 8)
path = "%s/jit-%d.dump" % (folder, os.getpid())
dump = open(path, "w+b", buffering=0)
os.fchmod(dump.fileno(), mode)
dump.write(struct.pack("<6I2Q", 0x4A695444, 1, 40, 62, 0, os.getpid(), 1, 0))
# Longer than the file is, which Python's own mmap refuses.
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mmap(None, 4096, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, dump.fileno(), 0)


def record(kind, body):
    dump.write(struct.pack("<IIQ", kind, 16 + len(body), 1) + body)


def make():
    memory = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
                       mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(CODE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return memory, address, ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_long)(address)


memory, address, function = make()
record(0, struct.pack("<2I4Q", os.getpid(), os.getpid(), address, address, len(CODE), 7) + b"made_loop\0" + CODE)
print("ready", flush=True)
if sys.stdin.readline().strip() == "move":
    other, moved, function = make()
    record(1, struct.pack("<2I5Q", os.getpid(), os.getpid(), moved, address, moved, len(CODE), 7))
while True:
    function(10000000)

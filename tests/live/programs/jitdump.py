# SPDX-License-Identifier: GPL-3.0-or-later
"""jitdump.py FOLDER MODE: makes machine code, tells of it in FOLDER/jit-PID.dump as perf wants it, and runs it.

The dump has the mode MODE. A line on stdin makes it "move" the code, "fork" a child that says its pid and runs
the code, or map a "decoy" beside the dump."""
import ctypes
import mmap
import os
import struct
import sys

# mov rax, rdi; 1: dec rax; jnz 1b; ret
CODE = bytes.fromhex("4889f848ffc875fbc3")
folder, mode = sys.argv[1], int(sys.argv[2], 8)
path = "%s/jit-%d.dump" % (folder, os.getpid())
# Longer than the file is, which Python's own mmap refuses.
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


def begin(path, magic):
    file = open(path, "w+b", buffering=0)
    os.fchmod(file.fileno(), mode)
    file.write(struct.pack("<6I2Q", magic, 1, 40, 62, 0, os.getpid(), 1, 0))
    libc.mmap(None, 4096, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, file.fileno(), 0)
    return file


dump = begin(path, 0x4A695444)


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
order = sys.stdin.readline().strip()
if order == "decoy":
    os.mkdir(folder + "/decoy")
    decoy = begin("%s/decoy/jit-%d.dump" % (folder, os.getpid()), 0)
if order == "fork":
    if os.fork():
        os.wait()
    libc.prctl(1, 9)
    print(os.getpid(), flush=True)
if order == "move":
    other, moved, function = make()
    record(1, struct.pack("<2I5Q", os.getpid(), os.getpid(), moved, address, moved, len(CODE), 7))
while True:
    function(10000000)

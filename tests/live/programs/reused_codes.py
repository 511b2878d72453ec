# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions that are made, called and freed as fast as can be: reused_codes.py SHARED_FILE

Their code objects, names and file names have equal lengths, so that each takes the memory of one
that died. Number 0 of the shared file is the serial number of those that are alive now.
"""
import mmap
import sys

TEXT = """def gen_{n:08d}_a():
    return gen_{n:08d}_b() + 1
def gen_{n:08d}_b():
    return sum([gen_{n:08d}_c() for x in (1,)])
def gen_{n:08d}_c():
    for x in range(200):
        x += 1
    return 1
"""

with open(sys.argv[1], "r+b") as file:
    # One store for each number: struct.pack_into() makes it 0 first.
    numbers = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")


def main():
    n = 0
    print("ready", flush=True)
    while True:
        n += 1
        numbers[0] = n
        names = {}
        exec(compile(TEXT.format(n=n), "<gen_%08d>" % n, "exec"), names)
        for _ in range(50):
            names["gen_%08d_a" % n]()
        names.clear()


main()

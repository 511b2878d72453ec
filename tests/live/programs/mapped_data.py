# SPDX-License-Identifier: GPL-3.0-or-later
"""Has a file of data mapped, like programs the files of their locale; its path is the argument."""
import mmap
import sys

with open(sys.argv[1], "wb") as file:
    file.write(b"data" * 4096)
with open(sys.argv[1], "rb") as file:
    mapped = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
print("ready")
sys.stdout.flush()
sys.stdin.read()

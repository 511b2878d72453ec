# SPDX-License-Identifier: GPL-3.0-or-later
"""Root reads a program of another user whose libraries and debug files are made to do harm."""
import os
import resource
import shutil
import struct
import subprocess
import sys
import threading

import support
from environment import OK
from files_support import (  # noqa: F401 (fixtures)
    Openings, folder, give, needs_root, program, run, theirs, tool, write)

pytestmark = needs_root

LIBRARY = """
#include <unistd.h>
__attribute__((noinline)) int hold(void) { return pause(); }
int enter_and_hold(void) { return hold() + 1; }
"""
IN_LIBRARY = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
print("ready", flush=True)
library.enter_and_hold()
"""


def make_library(theirs, *options, symbols=0):
    """A library of the user, whose code shows in native stacks; the more symbols, the longer it takes to
    read."""
    path = theirs / "libattack.so"
    (theirs / "attack.c").write_text(LIBRARY)
    (theirs / "symbols.s").write_text(
        ".section .note.GNU-stack\n.text\n" + "".join("f%d: nop\n" % i for i in range(symbols)))
    tool("cc", "-shared", "-fPIC", "-O1", "-fno-optimize-sibling-calls", *options, "-o", path,
         theirs / "attack.c", theirs / "symbols.s")
    return give(path)


def native_names(process):
    support.wait_for_sleep(process.pid, "pause", timeout=60)
    dump = support.dump(process.pid, "--native")
    return [frame["func"] for thread in dump["threads"] for frame in thread["frames"]]


def test_debug_file_that_is_a_fifo(theirs):
    library = make_library(theirs)
    debug = write(theirs / "libattack.debug", b"anything")
    tool("strip", "-R", ".note.gnu.build-id", library)
    tool("objcopy", "--add-gnu-debuglink=%s" % debug, library)
    give(library)
    debug.unlink()
    os.mkfifo(debug, 0o666)
    with Openings(debug, library) as openings, program(IN_LIBRARY, str(library)) as process:
        assert openings.opened() == {library}
        assert "enter_and_hold" in native_names(process)
        assert debug not in openings.opened()


class Cutter(threading.Thread):
    """Truncates a file each time it is opened, and restores it when it is closed."""

    OPEN, CLOSE = 0x20, 0x10

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.content, self.cuts = path, path.read_bytes(), 0
        self.over = False
        self.openings = Openings(path, events=self.OPEN | self.CLOSE)

    def run(self):
        while not self.over:
            for _, event in self.openings.wait(0.1):
                if event & self.OPEN:
                    os.truncate(self.path, 0)
                    self.cuts += 1
                else:
                    self.put_back()

    def put_back(self):
        # Not by open(), which would cause an event of its own.
        os.truncate(self.path, len(self.content))
        os.pwrite(self.file, self.content, 0)

    def __enter__(self):
        self.file = os.open(self.path, os.O_WRONLY)
        self.openings.opened()
        self.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.join()
        os.close(self.file)


def test_library_that_is_cut_off_while_it_is_read(theirs):
    library = make_library(theirs, symbols=100000)
    with program(IN_LIBRARY, str(library)) as process:
        support.wait_for_sleep(process.pid, "pause", timeout=60)
        with Cutter(library) as cutter:
            for _ in range(support.count(30, 300)):
                done = run("-t", process.pid, "debug", "--dump", "--native")
                assert done.returncode == OK, done
        assert cutter.cuts


def cpu_seconds(seconds):
    """Ends a command that computes for longer, however long it has to wait."""
    return {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))}


def test_debug_file_without_end(theirs):
    """A sparse file: its checksum would take minutes."""
    library, debug = make_library(theirs, "-g"), theirs / "libattack.debug"
    tool("strip", "-R", ".note.gnu.build-id", library)
    shutil.copy(library, debug)
    tool("objcopy", "--add-gnu-debuglink=%s" % debug, library)
    tool("objcopy", "-S", library)
    give(library)
    os.truncate(give(debug), 20 << 30)
    with program(IN_LIBRARY, str(library)) as process:
        support.wait_for_sleep(process.pid, "pause", timeout=60)
        done = run("-t", process.pid, "debug", "--dump", "--native", **cpu_seconds(4))
        assert done.returncode == OK and b"enter_and_hold" in done.stdout, done


ZSTD, COMPRESSED = 2, 0x800


def bomb(size):
    """A compressed section of that many bytes, all the same: blocks of 128 KiB from four bytes each, and
    what decoders skip."""
    blocks = b"".join(struct.pack("<I", 1 << 17 << 3 | 2 | (at + (1 << 17) >= size))[:3] + b"x"
                      for at in range(0, size, 1 << 17))
    padding = size // 1024
    return (struct.pack("<IIQQ", ZSTD, 0, size, 1) +
            struct.pack("<IBQ", 0xFD2FB528, 0xE0, size) + blocks +
            struct.pack("<II", 0x184D2A50, padding) + bytes(padding))


def compress_section(path, name, content, folder):
    """Replaces the content of a section, and says that it is compressed."""
    (folder / "content").write_bytes(content)
    tool("objcopy", "--update-section", "%s=%s" % (name, folder / "content"), path)
    data = bytearray(path.read_bytes())
    headers, = struct.unpack_from("<Q", data, 40)
    count, names = struct.unpack_from("<HH", data, 60)
    strings, = struct.unpack_from("<Q", data, headers + names * 64 + 24)
    for at in range(headers, headers + count * 64, 64):
        start = strings + struct.unpack_from("<I", data, at)[0]
        if data[start:data.index(0, start)] == name.encode():
            flags, = struct.unpack_from("<Q", data, at + 8)
            struct.pack_into("<Q", data, at + 8, flags | COMPRESSED)
    path.write_bytes(data)


MEASURE = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def test_section_that_grows_when_it_is_decompressed(theirs):
    library = make_library(theirs, "-g")
    compress_section(library, ".debug_info", bomb(3 << 29), theirs)
    give(library)
    with program(IN_LIBRARY, str(library)) as process:
        support.wait_for_sleep(process.pid, "pause", timeout=60)
        # By a small program: a process's peak memory includes its parent's at fork.
        done = subprocess.run([sys.executable, "-c", MEASURE, support.BINARY, "-t", str(process.pid),
                               "debug", "--dump", "--native"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
        printed, _, most = done.stdout.rstrip().rpartition(b"\n")
        assert b"enter_and_hold" in printed
        assert int(most) < 600 << 10, "%d KiB" % int(most)

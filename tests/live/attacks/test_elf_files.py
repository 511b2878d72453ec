# SPDX-License-Identifier: GPL-3.0-or-later
"""Root reads a program of another user whose libraries and debug files are made to do harm."""
import os
import subprocess

import support
from files_support import (  # noqa: F401 (fixtures)
    USER, Openings, folder, needs_root, program, theirs, write)

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


def tool(*words):
    subprocess.run([str(word) for word in words], check=True, stdin=subprocess.DEVNULL)


def give(path):
    os.chown(path, USER, USER)
    return path


def make_library(theirs, *options):
    """A library of the user, whose code shows in native stacks."""
    path = theirs / "libattack.so"
    (theirs / "attack.c").write_text(LIBRARY)
    tool("cc", "-shared", "-fPIC", "-O1", "-fno-optimize-sibling-calls", *options, "-o", path,
         theirs / "attack.c")
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

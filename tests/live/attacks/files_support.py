# SPDX-License-Identifier: GPL-3.0-or-later
"""Targets of another user than the reader's, and files with restricted access."""
import ctypes
import os
import select
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import support

# Files of tests that run side by side have users of their own: folders in /tmp are named by them.
USER, GROUP = 2100 + 10 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]), 2345
# An interpreter that every user may run: others may lie in a folder of root.
PYTHON = next((python for python in (sys.executable, "/usr/bin/python3")
               if Path(os.path.realpath(python)).parts[:2] not in (("/", "root"), ("/", "home"))),
              None)
AS_USER = {"user": USER, "group": USER, "extra_groups": [GROUP], "cwd": "/"}

needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or sys.version_info < (3, 9) or not PYTHON,
    reason="needs root, subprocess with user= (3.9), and a Python that every user may run")


@pytest.fixture
def folder():
    """A folder of root that every user can reach."""
    path = Path(tempfile.mkdtemp(prefix="probing-files-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def theirs(folder):
    """A folder of the user."""
    path = folder / "theirs"
    path.mkdir()
    os.chown(path, USER, USER)
    return path


def write(path, content, mode=0o644, owner=0, group=0):
    """A file of that owner and mode, which no umask changes."""
    path.write_bytes(content)
    os.chown(path, owner, group)
    path.chmod(mode)
    return path


def give(path):
    """To the user."""
    os.chown(path, USER, USER)
    return path


def tool(*words):
    subprocess.run([str(word) for word in words], check=True, stdin=subprocess.DEVNULL)


def program(script, *arguments, python=None, **options):
    """A Python program of the user; it has printed "ready"."""
    process = support.Program([str(python or PYTHON), "-c", script, *arguments],
                              **dict(AS_USER, **options))
    try:
        assert process.line() == "ready"
    except BaseException:
        process.__exit__()
        raise
    return process


# A frame whose code says that it is from the file named by the first argument.
FRAME = """
import sys
exec(compile("print('ready', flush=True); sys.stdin.read()", sys.argv[1], "exec"))
"""


def run(*words, timeout=120, **options):
    """The command, run by root; output as bytes."""
    return subprocess.run([support.BINARY, *map(str, words)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout,
                          check=False, **options)


def sources(dump):
    """The source texts of all frames of a dump."""
    return [frame["source"] for thread in dump["threads"] for frame in thread["frames"]
            if frame.get("source")]


class Openings:
    """Tells which files were opened: the kernel's inotify, which does not count O_PATH."""

    OPEN = 0x20

    def __init__(self, *paths, events=OPEN):
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self._fd >= 0
        self._names = {}
        for path in paths:
            watch = self._libc.inotify_add_watch(self._fd, os.fsencode(path), events)
            assert watch >= 0, os.strerror(ctypes.get_errno())
            self._names[watch] = path

    def wait(self, timeout):
        """Pairs of a path and its inotify event, for at most that many seconds."""
        select.select([self._fd], [], [], timeout)
        while True:
            try:
                events = os.read(self._fd, 65536)
            except BlockingIOError:
                return
            while events:
                watch, mask, _, length = struct.unpack_from("iIII", events)
                yield self._names[watch], mask
                events = events[16 + length:]

    def opened(self):
        """The paths that were opened since the last call."""
        return {path for path, _ in self.wait(0)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._fd)

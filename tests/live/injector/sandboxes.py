# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that run under a filter of system calls: programs/sandbox.c and sandboxed.py."""
import ctypes
import errno
import functools
import os
import re
import struct
import subprocess
import tempfile
import time

import environment
import support

# enum prb_call_maker
LOADS, SERVES, MUSL, OLD, OLDEST, CRASHES, NEW = (1 << bit for bit in range(7))
NEEDED, MAY_FAIL, MAY_LACK = range(3)  # enum prb_call_failure
KILL, TRAP, ERRNO, LOG = 0x80000000, 0x00030000, 0x00050000, 0x7ffc0000
ACTIONS = {"kill": KILL, "trap": TRAP, "errno": ERRNO | errno.ENOSYS, "eperm": ERRNO | errno.EPERM,
           "log": LOG}
ROUNDS, STOP, COUNT = range(3)
NOTED = struct.Struct("=ii6Q")


class Range(ctypes.Structure):
    """All values of an argument."""
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64), ("bounded", ctypes.c_bool)]

    def words(self):
        """The bounds of its low word."""
        if not self.bounded or self.low >> 32 != self.high >> 32:
            return 0, 0xffffffff
        return self.low & 0xffffffff, self.high & 0xffffffff


class Listed(ctypes.Structure):
    """A call of the product's list."""
    _fields_ = [("name", ctypes.c_char_p), ("number", ctypes.c_long), ("maker", ctypes.c_uint),
                ("failure", ctypes.c_uint), ("arguments", Range * 6)]


def library():
    return environment.build("sandbox.c", "sandbox.so", "-shared", "-fPIC", "-I%s" % support.ROOT)


@functools.lru_cache(maxsize=None)
def listed():
    """The product's list of calls made in a program."""
    sandbox = ctypes.CDLL(str(library()))
    sandbox.sandbox_listed.restype = ctypes.POINTER(Listed)
    sandbox.sandbox_listed.argtypes = [ctypes.c_size_t]
    found = []
    while True:
        one = sandbox.sandbox_listed(len(found))
        if not one:
            return found
        found.append(one.contents)


def makers_on(libc):
    """The callers in a process on a glibc of that version, or on musl, and with the agent."""
    if libc == "musl":
        return LOADS | SERVES | MUSL
    return (LOADS | SERVES | (OLD if libc < (2, 33) else 0) | (OLDEST if libc < (2, 26) else 0) |
            (NEW if libc >= (2, 34) else 0))


@functools.lru_cache(maxsize=None)
def numbers():
    """System calls of this machine by name."""
    done = subprocess.run(["gcc", "-dM", "-E", "-include", "sys/syscall.h", "-x", "c", "/dev/null"],
                          stdout=subprocess.PIPE, check=True)
    return {name: int(number) for name, number in re.findall(
        r"#define __NR_(\w+) (\d+)\n", done.stdout.decode())}


class Sandboxed(support.Program):
    """A program under a filter, which runs for ever without a system call of its own."""

    def __init__(self, command, *words, env=None):
        self._file = tempfile.NamedTemporaryFile(prefix="probing-sandbox-")
        super().__init__([*command, self._file.name, *words], env=env)
        try:
            assert self.line() == "ready"
            # It is under the filter once it continues counting.
            self.assert_lives(rounds=2)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *ignored):
        super().__exit__()
        self._file.close()

    def number(self, index):
        return struct.unpack_from("=q", os.pread(self._file.fileno(), 8, 8 * index))[0]

    def stop(self, how):
        """Tells it to end."""
        os.pwrite(self._file.fileno(), struct.pack("=q", how), 8 * STOP)

    def assert_lives(self, rounds=10):
        """It still runs."""
        before, end = self.number(ROUNDS), time.monotonic() + 60
        while self.number(ROUNDS) < before + rounds:
            assert self.alive(), "died of %r" % (self.wait(),)
            assert time.monotonic() < end, "hangs"
            time.sleep(0.001)

    def noted(self):
        """The calls that its filter did not allow, each with its name, its caller, its arguments."""
        names = {number: name for name, number in numbers().items()}
        content = os.pread(self._file.fileno(), 24 + NOTED.size * self.number(COUNT), 0)
        return [(names[one[0]], "main" if one[1] == self.pid else "other", list(map(hex, one[2:])))
                for one in NOTED.iter_unpack(content[24:])]


def watched(interpreter, makers, *words):
    """A Python in which all calls are noted that the list of @makers lacks."""
    return Sandboxed([interpreter.exe, environment.PROGRAMS / "sandboxed.py", library()],
                     "note", makers, *words, env=interpreter.env)


def answered(interpreter, call, action, *words, argument=()):
    """A Python in which one call has that result; with the number of an @argument, a comparison as in
    sandbox_answer(), and a value: only matching calls."""
    return Sandboxed([interpreter.exe, environment.PROGRAMS / "sandboxed.py", library()],
                     "answer", numbers()[call], ACTIONS[action], *argument, *words, env=interpreter.env)

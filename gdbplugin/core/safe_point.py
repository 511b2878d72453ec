# SPDX-License-Identifier: GPL-3.0-or-later
"""Which stopped threads may be made to call functions of the C library.

Those that hold none of its locks: a thread that waits in a system call, or is in code that is not
the C library's, with no function on its stack that takes such a lock. The injector has the same
rules (injector/safe_point.h); here the stacks come from the library, by SQL.
"""

import os
import re

from .errors import Problem
from .musl import Musl

_PYTHON = "SELECT free_threaded FROM process.info"
_THREADS = "SELECT tid, waits_for, gil FROM python.threads"
_FRAMES = "SELECT tid, func, frame_type, module, ip, _error FROM native.backtrace " \
          "ORDER BY tid, interpreter, depth"
# Functions that hold a lock of the C library or its allocator while they call others or wait.
_UNSAFE = re.compile(
    r"(__libc_|__)?(malloc|calloc|realloc|reallocarray|free|cfree|memalign|aligned_alloc|valloc|"
    r"pvalloc|posix_memalign|malloc_trim|mallinfo2?|mallopt|fork|vfork|_Fork|posix_spawnp?|"
    r"pthread_create|pthread_join|pthread_exit|pthread_once|exit|_exit|quick_exit|atexit|"
    r"__?cxa_\w+|on_exit|dlopen|dlclose|dlsym|dlvsym|dlerror|dladdr1?|dl_iterate_phdr|dlmopen|"
    r"abort|getaddrinfo|setlocale|system|popen|brk|sbrk)$|"
    r"_dl_|_int_(malloc|free|realloc|memalign)|sysmalloc|systrim|arena_get|tcache_|"
    r"operator (new|delete)|__lll_lock_wait|__run_exit_handlers|start_thread$.*pthread_exit")
_ALLOCATORS = re.compile(r"lib(jemalloc|tcmalloc|mimalloc|hoard|snmalloc)|ld-linux|ld64|ld-2\.|"
                         r"\[vdso\]")
_LIBC = re.compile(r"libc[.-]|libpthread[.-]|libdl[.-]|ld-musl|libc\.musl")
_UNKNOWN = "on a stack that cannot be unwound"

_ENTERS = {"x86_64": b"\x0f\x05", "aarch64": b"\x01\x00\x00\xd4"}
_SETS_BACK = ("aarch64",)  # whose kernel has a stopped thread make its call again from there
_ENOSYS = 38


class Stack:
    """A thread as the rules see it."""

    def __init__(self, tid, waits, gil):
        self.tid, self.waits, self.gil = tid, bool(waits), gil
        self.call = (waits or "").split(":")[0]
        # For a lock of C, which no object of Python explains.
        self.waits_in_c = (waits or "").startswith("futex: a lock or condition")
        self.frames = []
        self.rest = None  # why what could not be unwound may hold a lock
        self.exits = ()  # where the innermost function may return to, if that could not be unwound
        self.enters = False  # a system call that the kernel has not begun

    def unsafe(self):
        """Number of the outermost frame that holds a lock, and why; None if there is none."""
        if self.enters:
            return -1, "at the entry of a system call, which would fail"
        found, beginning = None, self._beginning()
        for number, frame in enumerate(self.frames):
            why = self._why(frame, number >= beginning)
            if why:
                found = number, why
        if found is None and (self.rest or not self.frames):
            return -1, self.rest or _UNKNOWN
        return found

    def _beginning(self):
        """Number of the first frame of the thread's beginning: two of the C library, and what called
        them if it has its own. Their names do not tell: most have none without debug information."""
        number, left = len(self.frames), 2
        if number and not in_libc(self.frames[-1]):
            number -= 1
        while left and number > 1 and in_libc(self.frames[number - 1]):
            number, left = number - 1, left - 1
        return number

    def _why(self, frame, begins):
        name = (frame["func"] or "").split("@")[0]
        module = os.path.basename(frame["module"] or "")
        if name and _UNSAFE.match(name):
            return "in " + name
        if _ALLOCATORS.match(module):
            return "in " + module
        if in_libc(frame) and not begins and not self.waits:
            return "in " + (name or module)
        return None


def in_libc(frame):
    return bool(_LIBC.match(os.path.basename(frame["module"] or "")))


def read_threads(session):
    """All threads that run Python, without their stacks."""
    return [Stack(row["tid"], row["waits_for"], row["gil"]) for row in session.query(_THREADS)]


def is_free_threaded(session):
    return any(row["free_threaded"] for row in session.query(_PYTHON))


def read_stacks(debugger, session):
    """The same with their stacks."""
    stacks = {}
    for stack in read_threads(session):
        stacks.setdefault(stack.tid, stack)
    for row in session.query(_FRAMES):
        stack = stacks.get(row["tid"])
        if stack is None:
            continue
        if row["frame_type"] == "error" or row["_error"]:
            stack.rest = _UNKNOWN
        elif row["frame_type"] in ("native", "inline"):
            stack.frames.append(row)
    for stack in stacks.values():
        # What it waits for is not known behind a gdbserver; that it is in the kernel shows.
        if not stack.waits and stack.frames:
            stack.waits = behind_a_call(debugger, stack.frames[0]["ip"])
        stack.enters = stack.waits and at_entry(debugger, stack.tid)
    search_rest(debugger, session, [s for s in stacks.values() if s.rest and s.frames])
    return list(stacks.values())


def search_rest(debugger, session, stacks):
    """Looks at what could not be unwound, where it is known how."""
    musl = Musl(debugger, session, _UNSAFE.match, _ALLOCATORS.match) if stacks else None
    for stack in stacks if musl and musl.is_there() else ():
        musl.judge(stack)


def at_entry(debugger, tid):
    """Whether it stands there by the debugger's catchpoint: the kernel has set what an unknown call
    returns, and goes on with the call from registers that a call of a function would change."""
    result = debugger.registers(tid, ["rax"]).get("rax", 0)
    return (result + _ENOSYS) % 2 ** 64 == 0


def behind_a_call(debugger, pc):
    """Whether the instruction before enters the kernel, or the one there, to which it was set back."""
    machine = debugger.machine()
    code = _ENTERS.get(machine, b"")
    places = (pc - len(code), pc) if machine in _SETS_BACK else (pc - len(code),)
    return bool(code) and any(debugger.read(at, len(code)) == code for at in places)


def holder(stacks):
    """The thread that holds the GIL; None if none does."""
    held = [stack.tid for stack in stacks if stack.gil == "holds"]
    return held[0] if held else None


def choose(stacks, preferred):
    """A thread that may be borrowed: one that waits rather than one that runs, and then the
    @preferred one; None if there is none."""
    safe = [stack for stack in stacks if stack.unsafe() is None]
    safe.sort(key=lambda stack: (not stack.waits, stack.tid != preferred))
    return safe[0] if safe else None


def way_out(stacks):
    """(tid, addresses) of places to one of which a thread comes soon, and is safe then; None:
    unknown."""
    for stack in stacks:
        number = stack.unsafe()[0]
        if stack.waits or number < 0:
            continue
        outer = [f["ip"] for f in stack.frames[number + 1:] if f["frame_type"] == "native"]
        if outer or stack.exits:
            return stack.tid, outer[:1] or stack.exits
    return None


def refusal(stacks):
    if not stacks:
        return Problem("no thread runs Python here")
    stack = stacks[0]
    return Problem("no thread is at a place where a function may be called (thread %d is %s): "
                   "let the process run for a moment, and try again"
                   % (stack.tid, stack.unsafe()[1]))

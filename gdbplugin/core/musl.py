# SPDX-License-Identifier: GPL-3.0-or-later
"""Stacks on musl, which has no unwind tables: where unwinding ends, the rest is searched for
addresses in code that may hold a lock, as the injector does (docs/injection.md, musl).

Its malloc() and the vdso call nobody and never wait in the kernel. So they are not at work in a
thread that waits, or runs elsewhere, unless a signal came there."""

import struct

from .debugger import FIRST_ARGUMENT

_MOST = 1 << 20  # bytes of a stack that are searched
_NEAR = 64  # words in which a function's return address is looked for
_UNSIZED = 256  # bytes taken for a function that tells no size
_MARK = "__dls2b"  # musl looks it up in itself when it starts
_ALLOCATION = ("malloc", "calloc", "realloc", "free", "memalign", "aligned_alloc",
               "posix_memalign")
_FUNCTIONS = "SELECT name, address, size, module FROM native.symbols WHERE kind = 'function' AND " \
             "(name IN %r OR module IN (SELECT module FROM native.symbols WHERE name = '%s'))" \
             % (_ALLOCATION, _MARK)
_MODULES = "SELECT path, name, start, end FROM native.modules"
_EXECUTABLE = "SELECT start, end FROM process.maps WHERE perms LIKE '__x%' AND start > 0"
_STACK = "SELECT end FROM process.maps WHERE start <= %d AND end > %d"
# Beside those that hold a lock on glibc, too; the injector has the same.
_HOLDS = frozenset((
    "at_quick_exit", "membarrier", "pthread_atfork", "pthread_cancel", "pthread_key_create",
    "pthread_key_delete", "thrd_create", "thrd_exit", "timer_create", "mq_notify", "sem_open",
    "sem_close", "newlocale", "freelocale", "bindtextdomain", "dcngettext", "tzset", "localtime_r",
    "mktime", "random", "srandom", "initstate", "setstate", "syslog", "vsyslog", "openlog",
    "closelog", "daemon", "setuid", "setgid", "seteuid", "setegid", "setreuid", "setregid",
    "setresuid", "setresgid", "setgroups", "initgroups"))
# Calls that may wait; its allocator and loader make none of them but futex. The injector has the same.
_WAITING = frozenset((
    "read", "readv", "poll", "ppoll", "select", "pselect6", "nanosleep", "futex", "wait4", "waitid",
    "accept", "pause", "accept4", "clock_nanosleep", "write", "writev", "flock", "rt_sigsuspend",
    "epoll_wait", "epoll_pwait", "epoll_pwait2", "rt_sigtimedwait", "semop", "semtimedop", "msgrcv",
    "msgsnd", "io_getevents", "io_pgetevents", "recvfrom", "recvmsg", "sendto", "sendmsg",
    "connect", "recvmmsg", "io_uring_enter"))
# Calls that end soon by themselves.
_SHORT = frozenset(("mmap", "munmap", "mremap", "madvise", "mprotect", "brk"))
_SIGRETURN = {"x86_64": b"\x48\xc7\xc0\x0f\0\0\0\x0f\x05",
              "aarch64": b"\x68\x11\x80\xd2\x01\0\0\xd4"}
_STACK_POINTER = {"x86_64": "rsp", "aarch64": "sp"}
_RESULT = {"x86_64": "rax"}
# What that is of a call that was interrupted: EINTR, and what the kernel will make it again for.
_INTERRUPTED = frozenset(2 ** 64 - number for number in (4, 512, 513, 514, 516))
_LINK = {"aarch64": "x30"}  # has a return address


class Musl:
    """That of the process."""

    def __init__(self, debugger, session, is_unsafe, is_allocator):
        """@is_unsafe: whether a function of that name may hold a lock; @is_allocator: whether all
        functions of a file of that name may."""
        self._debugger, self._session = debugger, session
        rows = session.query(_FUNCTIONS)
        self._path = next((row["module"] for row in rows if row["name"] == _MARK), None)
        self._modules = session.query(_MODULES) if self._path else []
        self._entries = {row["address"] for row in rows}
        self._code = [(row["address"], self._end(row), row["name"]) for row in rows
                      if (row["name"] in _HOLDS or is_unsafe(row["name"])) and
                      (row["name"] not in _ALLOCATION or row["module"] != self._path)]
        self._code += [(each["start"], each["end"], each["name"]) for each in self._modules
                       if is_allocator(each["name"]) and each["name"] != "[vdso]"]

    def is_there(self):
        return self._path is not None

    def _end(self, row):
        """One without a size ends at the latest where the next begins."""
        end = row["address"] + (row["size"] or _UNSIZED)
        return end if row["size"] else min([end] + [entry for entry in self._entries
                                                    if entry > row["address"]])

    def _is_own(self, address):
        return any(each["path"] == self._path and each["start"] <= address < each["end"]
                   for each in self._modules)

    def judge(self, stack):
        """Completes what is known of a stack that was not unwound to its end."""
        if stack.call in _SHORT or not stack.call and self._has_returned(stack):
            stack.waits = False
        words = self._words(stack)
        stack.rest = self._why_unsafe(stack, words)
        if not stack.waits and stack.frames[-1]["ip"] == stack.frames[0]["ip"]:
            stack.exits = self._exits(stack, words)

    def _why_unsafe(self, stack, words):
        """What may hold a lock there; None: nothing."""
        if stack.waits and stack.call not in _WAITING:
            return "in a system call in which it may hold a lock"
        if stack.call == "futex" and self._is_own(self._register(stack, FIRST_ARGUMENT)):
            return "waiting for a lock of the C library"
        if not words:
            return "on a stack that cannot be read to its end"
        last = stack.frames[-1]["ip"]
        if last != stack.frames[0]["ip"] and last in words:
            words = words[words.index(last):]
        if self._has_signal(words + tuple(frame["ip"] for frame in stack.frames)):
            return "in a signal handler"
        # Pointers to where a function begins return to none.
        returns = set(words).difference(self._entries)
        return next(("in " + name for start, end, name in self._code
                     if any(start < word <= end for word in returns)), None)

    def _exits(self, stack, words):
        """Where the function of musl that it is in may return to: one of these is it."""
        link, machine = self._register(stack, _LINK), self._debugger.machine()
        parts = [(row["start"], row["end"]) for row in self._session.query(_EXECUTABLE)]
        return [word for word in dict.fromkeys((link,) + words[:_NEAR])
                if any(start <= word < end for start, end in parts) and not self._is_own(word) and
                follows_a_call(machine, self._debugger.read(word - 8, 8))]

    def _has_returned(self, stack):
        """Whether a thread behind the instruction of a system call does not wait in it any more."""
        return self._debugger.machine() in _RESULT and \
            self._register(stack, _RESULT) not in _INTERRUPTED

    def _register(self, stack, names):
        name = names.get(self._debugger.machine())
        return self._debugger.registers(stack.tid, [name]).get(name, 0) if name else 0

    def _words(self, stack):
        """Its whole stack; empty: unknown."""
        sp = self._register(stack, _STACK_POINTER) & ~7
        rows = self._session.query(_STACK % (sp, sp))
        size = rows[0]["end"] - sp if rows else 0
        data = self._debugger.read(sp, size) if 0 < size <= _MOST else b""
        return struct.unpack("<%dQ" % (size // 8), data) if len(data) == size else ()

    def _has_signal(self, words):
        code = _SIGRETURN[self._debugger.machine()]
        return any(self._debugger.read(word, len(code)) == code for word in set(words)
                   if self._is_own(word))


def follows_a_call(machine, before):
    """Whether the 8 bytes @before an address end in a call of a function."""
    if len(before) < 8:
        return False
    if machine == "aarch64":
        code = int.from_bytes(before[4:], "little")
        return code >> 26 == 0x25 or code & 0xfffffc1f == 0xd63f0000
    return before[3] == 0xe8 or any(before[-n] == 0xff and before[1 - n] >> 3 & 7 == 2
                                    for n in (2, 3, 6, 7))

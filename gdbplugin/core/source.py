# SPDX-License-Identifier: GPL-3.0-or-later
"""The functions of struct probing_debugger, by which libprobing reads the debugger's process.

A process of this machine is read directly, which is some times faster; only its registers come
from the debugger. Anything else is read through the debugger.
"""

import ctypes

from . import library
from .errors import Problem

MACHINES = {"x86_64": 62, "aarch64": 183}
# By DWARF number; the program counter last.
REGISTERS = {
    "x86_64": ["rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"] +
              ["r%d" % i for i in range(8, 16)] + ["rip"],
    "aarch64": ["x%d" % i for i in range(31)] + ["sp", "pc"],
}
# And the thread pointer, by its DWARF number.
THREAD_POINTERS = {"x86_64": (58, "fs_base"), "aarch64": (36, "tpidr")}


class Source:
    """The functions; must live as long as the session. Exceptions in them are kept, since none may
    pass through C."""

    def __init__(self, debugger, pid, direct):
        machine = debugger.machine()
        if machine not in MACHINES:
            raise Problem("the process is one of %s, and probing reads x86_64 and aarch64"
                          % machine)
        self.debugger = debugger
        self.tell = debugger.facts()
        self.names = REGISTERS[machine]
        self.numbers = dict(enumerate(self.names[:-1]))
        self.numbers.update([THREAD_POINTERS[machine]])
        self.failure = None
        self.struct = library.DebuggerStruct(
            size=ctypes.sizeof(library.DebuggerStruct), pid=pid, machine=MACHINES[machine],
            held=debugger.all_stopped(), registers=library.ON_REGISTERS(self._registers))
        if not direct:
            self.struct.read = library.READ(self._read)
            self.struct.fact = library.FACT(self._fact)

    def _guarded(self, function, failed):
        if self.failure is not None:
            return failed
        try:
            return function()
        except BaseException as error:
            self.failure = error
            return failed

    def _read(self, _, address, buffer, length):
        def read():
            data = self.debugger.read(address, length)
            ctypes.memmove(buffer, data, len(data))
            return len(data)
        return self._guarded(read, 0)

    def _fact(self, _, name, put, to):
        def fact():
            data = self.tell(name.decode())
            if data is None:
                return 1
            return put(to, data, len(data))
        return self._guarded(fact, 1)

    def _registers(self, _, tid, ret):
        def registers():
            found = self.debugger.registers(tid, list(self.numbers.values()) + self.names[-1:])
            if self.names[-1] not in found:
                return 1
            ret[0].pc = found[self.names[-1]]
            for number, name in self.numbers.items():
                if name in found:
                    ret[0].value[number] = found[name]
                    ret[0].known |= 1 << number
            return 0
        return self._guarded(registers, 1)

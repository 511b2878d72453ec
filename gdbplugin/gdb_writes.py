# SPDX-License-Identifier: GPL-3.0-or-later
"""gdb: whether it puts a thread's registers back after a call of a function.

Before gdb 14 there is room for 2,696 bytes of vector registers, and the kernel takes them as a whole
or not at all. Processors with AMX have 11,008. gdb then gives up in the middle: the vector registers
are lost, and a system call of the thread returns a number that no program expects. Such a gdbserver
says nothing to gdb, but to its own standard error.
"""

import os
import re

import gdb

from .core.debugger import status_field
from .gdb_files import Files

# The kernel reports to each process the stack space of a signal (AT_MINSIGSTKSZ): these registers,
# and some 900 bytes.
LARGEST = 4096
_STACK_OF_SIGNAL = re.compile(r"^51\s.*\s(0x[0-9a-f]+|\d+)$", re.M)
FIRST = 14  # version of gdb
# A request that gdbserver knows from 15 on; this one sets nothing.
FROM_15 = b"QThreadOptions;"


def obstacle(pid):
    """Why nothing may be run in the process, and what to do; None if it may."""
    if not has_large_registers():
        return None
    connection = getattr(gdb.selected_inferior(), "connection", None)
    if is_native(connection, pid):
        version = re.match(r"\D*(\d+)\.", gdb.VERSION)
        old = version and int(version.group(1)) < FIRST
        program, needed = "gdb " + gdb.VERSION, "gdb %d or newer, or LLDB" % FIRST
    else:
        old = is_old_gdbserver(connection)
        program, needed = "this gdbserver", "gdbserver 15 or newer"
    if not old:
        return None
    return "%s cannot put back the registers of this processor, which has AMX, and would break a system " \
           "call of the process: use %s, or 'detach' and then 'probing -t %d eval' in a shell" % (
               program, needed, pid)


def has_large_registers():
    try:
        text = gdb.execute("info auxv", False, True)
    except gdb.error:
        return False
    found = _STACK_OF_SIGNAL.search(text)
    return bool(found) and gdb.selected_inferior().architecture().name() == "i386:x86-64" and \
        int(found.group(1), 0) > LARGEST


def is_native(connection, pid):
    if connection is not None:
        return connection.type == "native"
    return status_field(pid, "TracerPid") == os.getpid()


def is_old_gdbserver(connection):
    """False also if unknown: other stubs may restore registers."""
    if not hasattr(connection, "send_packet"):
        return False
    files = Files(gdb.selected_inferior())
    tracer = re.search(rb"^TracerPid:\s*(\d+)$", files.read("status") or b"", re.M)
    name = files.read("../%d/comm" % int(tracer.group(1))) if tracer else None
    return b"gdbserver" in (name or b"") and not connection.send_packet(FROM_15)

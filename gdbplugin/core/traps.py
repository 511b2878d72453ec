# SPDX-License-Identifier: GPL-3.0-or-later
"""Breakpoints that a debugger has left in the dynamic loader, as injector/traps.c finds them.

Our debugger shows memory without its own, so what is there is of one that was killed."""

from .debugger import traced_by_us
from .errors import Problem

TRAPS = {"x86_64": b"\xcc", "aarch64": b"\x00\x00\x20\xd4"}
TYPES = {1: "char", 4: "int"}


def check(debugger):
    """Refuses to load anything there; of a process elsewhere nothing is known."""
    trap = TRAPS.get(debugger.machine())
    if trap is None or not traced_by_us(debugger.pid()):
        return
    found = []
    for address, original in code_of_loader(debugger.pid()):
        there = debugger.read(address, len(original))
        found += [(address + at, was) for at, was in differences(there, original, trap)]
    if found:
        # This debugger took it for its own when it was attached, and would again.
        raise Problem("the dynamic loader has a breakpoint that a debugger has left, so to load a "
                      "library would end the process: that debugger was killed; 'gdb -p %d -batch%s' "
                      "puts it back, when this one is detached" % (
                          debugger.pid(), "".join(command(*each) for each in found)))


def command(address, was):
    return ' -ex "set var *(unsigned %s *)%#x = %#x"' % (
        TYPES[len(was)], address, int.from_bytes(was, "little"))


def differences(there, original, trap):
    """[(offset, what the file has)] of traps that the file does not have."""
    size = len(trap)
    at, found = there.find(trap), []
    while at >= 0:
        was = original[at:at + size]
        if at % size == 0 and len(was) == size and was != trap:
            found.append((at, was))
        at = there.find(trap, at + 1)
    return found


def code_of_loader(pid):
    """(address, bytes of the file) of each of its executable mappings."""
    try:
        with open("/proc/%d/maps" % pid, encoding="utf-8", errors="surrogateescape") as maps:
            lines = maps.read().splitlines()
    except OSError:
        return
    for line in lines:
        words = line.split(None, 5)
        if len(words) == 6 and "x" in words[1] and words[5].rpartition("/")[2].startswith("ld"):
            start, end = (int(word, 16) for word in words[0].split("-"))
            try:
                with open("/proc/%d/root%s" % (pid, words[5]), "rb") as file:
                    file.seek(int(words[2], 16))
                    yield start, file.read(end - start)
            except OSError:
                pass

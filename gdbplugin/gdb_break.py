# SPDX-License-Identifier: GPL-3.0-or-later
"""gdb: its own breakpoint behind those of Python, see core/breaks.py. 'info breakpoints' does not list
it, and it costs nothing while it is not reached."""

import gdb

from .core import agent, breaks
from .core.errors import Problem

OWN = []  # (breakpoint, the inferior's number, face)


def ours(inferior):
    return [each for each in OWN if each[1] == inferior.num and each[0].is_valid()]


def stop_at(face, address):
    inferior = gdb.selected_inferior()
    if ours(inferior):
        return
    # By name, so that it is nowhere in a process without the agent.
    made = gdb.Breakpoint("*" + agent.BREAK_STOPS, internal=True)
    if made.pending:
        made.delete()
        made = gdb.Breakpoint("*%#x" % address, internal=True)
    made.silent = True
    if not OWN:
        gdb.events.stop.connect(on_stop)
    OWN.append((made, inferior.num, face))


def stop_no_more():
    for each in ours(gdb.selected_inferior()):
        each[0].delete()
    OWN[:] = [each for each in OWN if each[0].is_valid()]
    if not OWN:
        gdb.events.stop.disconnect(on_stop)


def on_stop(event):
    if not isinstance(event, gdb.BreakpointEvent):
        return
    for made, _, face in OWN:
        if made.is_valid() and any(each is made for each in event.breakpoints):
            try:
                face.write(breaks.show_stop(face))
            except (Problem, gdb.error) as problem:
                face.warn("a breakpoint of Python was reached; where cannot be shown: %s" % problem)
            return

# SPDX-License-Identifier: GPL-3.0-or-later
"""gdb: its own breakpoint behind those of Python, see core/breaks.py. 'info breakpoints' does not list
it, and it is free until it is reached."""

import gdb

from .core import agent, breaks
from .core.debugger import FIRST_ARGUMENT
from .core.errors import Problem
from .gdb_files import Silent

OWN = []  # (breakpoint, the inferior's number, face)


class Own(gdb.Breakpoint):
    """Asks the condition of a script before gdb stops."""

    face = None

    def stop(self):
        # gdb still takes the thread for running.
        from .core import script
        try:
            with Silent():
                return script.stops(self.face, number_of(self.face))
        except (Problem, gdb.error, ValueError):
            return True


def number_of(face):
    """Of the breakpoint of Python that the selected thread has come to."""
    name = FIRST_ARGUMENT[face.machine()]
    address = int(gdb.newest_frame().read_register(name)) & 0xffffffffffffffff
    return int(face.read(address, 16).split()[0])


def ours(inferior):
    return [each for each in OWN if each[1] == inferior.num and each[0].is_valid()]


def stop_at(face, address):
    inferior = gdb.selected_inferior()
    if ours(inferior):
        return
    # By name, so that it is nowhere in a process without the agent.
    made = Own("*" + agent.BREAK_STOPS, internal=True)
    if made.pending:
        made.delete()
        made = Own("*%#x" % address, internal=True)
    made.silent, made.face = True, face
    if not OWN:
        gdb.events.stop.connect(on_stop)
    OWN.append((made, inferior.num, face))


def stop_no_more():
    for each in ours(gdb.selected_inferior()):
        each[0].delete()
    OWN[:] = [each for each in OWN if each[0].is_valid()]
    if not OWN:
        gdb.events.stop.disconnect(on_stop)


def face_of(event):
    """Whose breakpoint it is, None: not one of ours."""
    if isinstance(event, gdb.BreakpointEvent):
        for made, _, face in OWN:
            if made.is_valid() and any(each is made for each in event.breakpoints):
                return face
    return None


def reached(event):
    """The number of the breakpoint of Python, None: it is none."""
    face = face_of(event)
    return number_of(face) if face else None


def on_stop(event):
    face = face_of(event)
    if face:
        try:
            face.write(breaks.show_stop(face))
        except (Problem, gdb.error) as problem:
            face.warn("a breakpoint of Python was reached; where cannot be shown: %s" % problem)

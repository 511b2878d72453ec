# SPDX-License-Identifier: GPL-3.0-or-later
"""gdb: its own breakpoints behind those of Python, see core/breaks.py. All are at one function of the agent: an
internal one that holds the agent's attention as long as there is any, and one for each that the user has set, so
that 'info breakpoints', 'delete', 'disable', 'ignore' and 'commands' know it."""

import gdb

from . import gdb_start
from .core import agent, breaks, control, marks
from .core.debugger import FIRST_ARGUMENT
from .core.errors import Problem
from .core.text import safe
from .gdb_files import Silent
from .gdb_run import enable

TEXT = 200  # bytes of what the agent says
OWN = []  # (breakpoint, the inferior's number, face)
USERS = []  # each Users that there is
DELETED = []  # (pid, number of the agent) that is still there
# gdb runs it behind its own list.
LIST = "define info hookpost-breakpoints\npython import %s; %s.show()\nend" % (__name__, __name__)


class Own(gdb.Breakpoint):
    """Stops for what no breakpoint of the user's stands for: steps, and those of an earlier debugger."""

    face = None

    def stop(self):
        # gdb still takes the thread for running.
        try:
            with Silent():
                pid = gdb.selected_inferior().pid
                return any(not (user_of(number, pid) or (pid, number) in DELETED)
                           for number in numbers_of(self.face))
        except (Problem, gdb.error, ValueError):
            return True


class Users(marks.Mark, gdb.Breakpoint):
    """One that the user has set."""

    face = None
    off = False  # in the agent, too

    def stop(self):
        from .core import script
        try:
            with Silent():
                return self.pid == gdb.selected_inferior().pid and self.known in numbers_of(self.face) and \
                    script.stops(self.face, self.own)
        except (Problem, gdb.error, ValueError):
            return True

    def set(self, pid, told):
        marks.Mark.set(self, pid, told)
        gdb_start.look(self.face)

    def described(self):
        text, pid = safe(self.wanted.text), gdb.selected_inferior().pid
        if self.is_set(pid):
            return text
        return breaks.WAITS % text if self in marks.waiting([self], self.face) else "%s, not in this process" % text


def numbers_of(face):
    """Of the breakpoints of Python that the selected thread has come to, as the agent counts."""
    name = FIRST_ARGUMENT[face.machine()]
    address = int(gdb.newest_frame().read_register(name)) & 0xffffffffffffffff
    return breaks.numbers_in(face.read(address, TEXT) or face.read(address, 16))


def users():
    USERS[:] = [each for each in USERS if each.is_valid()]
    return USERS


def user_of(known, pid, stops=True):
    """The one that the agent knows by this number; @stops: and that gdb stops at, which it does not where it does
    not see the agent's symbols; None."""
    made = marks.by_known(users(), pid, known)
    return None if made and stops and made.pending else made


def ours(inferior):
    return [each for each in OWN if each[1] == inferior.num and each[0].is_valid()]


def stop_at(face, address):
    inferior = gdb.selected_inferior()
    for each in ours(inferior):
        enable(each[0], True)
        return
    # By name, so that it is nowhere in a process without the agent.
    made = Own(agent.BREAK_STOPS, internal=True)
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


def quietly(make):
    """Calls it without what gdb says of a function that is not there yet."""
    made = []
    QUIET.append(lambda: made.append(make()))
    gdb.execute("python import %s; %s.QUIET.pop()()" % (__name__, __name__), False, True)
    return made[0]


QUIET, LISTED = [], []


def mark(face, wanted, told):
    """gdb's own for one that is set, as the agent has @told, or waits (None). Its number."""
    if not LISTED:
        gdb.events.breakpoint_deleted.connect(on_deleted)
        gdb.events.breakpoint_modified.connect(on_modified)
        gdb.execute(LIST, False, True)
        LISTED.append(True)
    made = quietly(lambda: Users(agent.BREAK_STOPS, temporary=wanted.once))
    made.silent, made.face, made.wanted = True, face, wanted
    made.own = marks.new_number(users(), told)
    USERS.append(made)
    if told:
        made.set(face.pid(), told)
    else:
        gdb_start.look(face)
    return made.own


def is_on(number):
    made = marks.by_number(users(), number)
    return not made or made.enabled


def switch(number, on):
    made = marks.by_number(users(), number)
    if made:
        made.off = not on  # before gdb tells of the change
        enable(made, on)


def unmark(number):
    made = marks.by_number(users(), number)
    if made:
        USERS.remove(made)
        made.delete()
        gdb_start.look(made.face)


def deleted():
    """The agent's numbers of those that the user has deleted, once."""
    pid = gdb.selected_inferior().pid
    found = [number for each, number in DELETED if each == pid]
    DELETED[:] = []
    return found


def on_deleted(made):
    if not isinstance(made, Users) or made not in USERS:
        return
    USERS.remove(made)
    if made.known is not None:
        DELETED.append((made.pid, made.known))
    if not USERS:
        # Nobody listens any more, so the agent removes what there is.
        for each in OWN:
            enable(each[0], False)
    gdb_start.look(made.face)


def on_modified(made):
    """What the agent does not stop at any more cannot be enabled by gdb alone."""
    if isinstance(made, Users) and made.off and made.enabled and not control.Control.active:
        made.face.warn("'probing break-py --enable %d' has it stop again" % made.own)


def show():
    for each in users():
        gdb.write("%-7d is Python breakpoint %d: %s\n" % (each.number, each.own, each.described()))


def face_of(event):
    """Whose breakpoint it is, None: not one of ours."""
    if isinstance(event, gdb.BreakpointEvent):
        for made, face in [each[::2] for each in OWN] + [(each, each.face) for each in users()]:
            if made.is_valid() and any(each is made for each in event.breakpoints):
                return face
    return None


def reached(event):
    """The number of the breakpoint of Python, None: it is none."""
    face = face_of(event)
    if not face:
        return None
    # gdb lists all that are there, also those that do not stop.
    numbers, pid = numbers_of(face), gdb.selected_inferior().pid
    found = [user_of(number, pid) for number in numbers]
    return next((each.own for each in found if each and each.enabled), numbers[0])


def is_silent(number):
    """Whether the user's commands for it begin with gdb's own word for that."""
    made = marks.by_number(users(), number)
    return bool(made and made.commands) and made.commands.split()[:1] == ["silent"]


def on_stop(event):
    face = face_of(event)
    if face:
        try:
            number = reached(event)
            if not is_silent(number):
                face.write(breaks.show_stop(face, number))
        except (Problem, gdb.error) as problem:
            face.warn("a breakpoint of Python was reached; where cannot be shown: %s" % problem)

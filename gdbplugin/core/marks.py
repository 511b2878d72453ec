# SPDX-License-Identifier: GPL-3.0-or-later
"""Breakpoints of Python as the user has set them: they outlast the processes, each of which numbers its own."""


class Mark:
    """One of them."""

    own, wanted = 0, None  # its number; see core/breaks.py
    pid = known = None  # where it is set, and its number there

    def is_set(self, pid):
        return bool(pid) and self.pid == pid

    def set(self, pid, told):
        """As the agent of the process has @told."""
        self.pid, self.known = pid, told["number"]


def new_number(marks, told):
    """A number for a new breakpoint: the agent's number, unless that is missing or taken."""
    taken = [each.own for each in marks] + [0]
    return told["number"] if told and told["number"] not in taken else max(taken) + 1


def by_number(marks, number):
    return next((each for each in marks if each.own == number), None)


def by_known(marks, pid, known):
    """The one that the agent knows by this number; None."""
    return next((each for each in marks if each.is_set(pid) and each.known == known), None)


def own_number(marks, pid, number):
    """The agent's of the one that the user knows by this number; None."""
    made = by_number(marks, number)
    if made:
        return made.known if made.is_set(pid) else None
    # One of an earlier debugger has the agent's number.
    return None if any(each.known == number for each in marks) else number


def shown(marks, pid, told):
    made = by_known(marks, pid, told["number"])
    return dict(told, number=made.own) if made else told


def waiting(marks, debugger):
    """Breakpoints that are still to be set in the process that the debugger starts. A process that it has attached
    to gets only what the user asks for: if the debugger were killed, a breakpoint in the interpreter would kill
    that process, too."""
    pid = debugger.pid()
    if pid and debugger.attached():
        return []
    return [each for each in marks if not each.is_set(pid) and each.wanted.lasts]

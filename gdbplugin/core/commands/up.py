# SPDX-License-Identifier: GPL-3.0-or-later
"""probing up"""

from ..command import Command, number, open_session
from ..frames import select, selected


class Up(Command):
    name = "up"
    summary = "Select the Python frame that called the selected one."
    usage = "[COUNT]"
    description = """
Goes COUNT frames, 1 if it is not given. The C frame that runs the Python frame becomes the selected
frame of the debugger."""

    def run(self, debugger, words):
        _, rest = self.parse(words)
        count = number(rest, "count") if rest else 1
        with open_session(debugger) as session:
            select(debugger, session, selected(debugger) + count)


COMMAND = Up

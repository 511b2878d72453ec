# SPDX-License-Identifier: GPL-3.0-or-later
"""probing frame"""

from ..command import Command, number, open_session
from ..frames import select, selected


class Frame(Command):
    name = "frame"
    summary = "Select a Python frame by its number, or show the selected one."
    usage = "[NUMBER]"
    description = """
Numbers are those of 'probing backtrace'; 0 is the innermost frame. The C frame that runs the Python
frame becomes the selected frame of the debugger."""

    def run(self, debugger, words):
        _, rest = self.parse(words)
        chosen = number(rest, "frame") if rest else selected(debugger)
        with open_session(debugger) as session:
            select(debugger, session, chosen)


COMMAND = Frame

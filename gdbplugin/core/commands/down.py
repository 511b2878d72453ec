# SPDX-License-Identifier: GPL-3.0-or-later
"""probing down"""

from ..command import Command, number, open_session
from ..errors import Problem
from ..frames import select, selected


class Down(Command):
    name = "down"
    summary = "Select the Python frame that the selected one called."
    usage = "[COUNT]"
    description = """
Goes COUNT frames, 1 if it is not given. The C frame that runs the Python frame becomes the selected
frame of the debugger."""

    def run(self, debugger, words):
        _, rest = self.parse(words)
        count = number(rest, "count") if rest else 1
        with open_session(debugger) as session:
            now = selected(debugger)
            if now < count:
                raise Problem("frame %d is %d from the innermost one" % (now, now)
                              if now else "this is the innermost frame")
            select(debugger, session, now - count)


COMMAND = Down

# SPDX-License-Identifier: GPL-3.0-or-later
"""probing until"""

from .. import breaks
from ..command import Command, number


class Until(Command):
    name = "until"
    summary = "Run it to a later line of this Python function, out of a loop."
    usage = "[LINE]"
    description = """
As 'probing next', but not back to an earlier line of the function that runs now: at the end of a loop
this goes on behind it. With LINE it goes on to that line, or behind it. If the function returns
first, it stops in its caller."""

    def run(self, debugger, words):
        _, rest = self.parse(words)
        breaks.run_to(debugger, breaks.OVER, str(number(rest, "line")) if rest else "")


COMMAND = Until

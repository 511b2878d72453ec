# SPDX-License-Identifier: GPL-3.0-or-later
"""probing next"""

from .. import breaks
from ..command import Command


class Next(Command):
    name = "next"
    summary = "Run it to the next line of this Python function, over calls."
    description = """
The next line of the function that runs now or, once that has returned, of its caller.
All threads run meanwhile. If the thread waits for long, Ctrl-C stops the process; the step is still
on then, and ends at its line, or when the next one begins."""

    def run(self, debugger, words):
        _, rest = self.parse(words)
        self.no_more(rest)
        breaks.run_to(debugger, breaks.OVER)


COMMAND = Next

# SPDX-License-Identifier: GPL-3.0-or-later
"""probing finish"""

from .. import breaks
from ..command import Command


class Finish(Command):
    name = "finish"
    summary = "Run it until this Python function has returned."
    description = """
The next line of the caller of the function that runs now.
All threads run meanwhile. If the thread waits for long, Ctrl-C stops the process; the step is still
on then, and ends at its line, or when the next one begins."""

    def run(self, debugger, words):
        _, rest = self.parse(words)
        self.no_more(rest)
        breaks.run_to(debugger, breaks.OUT)


COMMAND = Finish

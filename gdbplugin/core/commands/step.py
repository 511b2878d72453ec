# SPDX-License-Identifier: GPL-3.0-or-later
"""probing step"""

from .. import breaks
from ..command import Command


class Step(Command):
    name = "step"
    summary = "Run the selected thread to its next line of Python."
    description = """
The next line of any Python function, also of one that is called. 'step' of the debugger itself
steps through the C code of the interpreter.
All threads run meanwhile. If the thread waits for long, Ctrl-C stops the process; the step is still
on then, and ends at its line, or when the next one begins."""

    def run(self, debugger, words):
        _, rest = self.parse(words)
        self.no_more(rest)
        breaks.run_to(debugger, breaks.INTO)


COMMAND = Step

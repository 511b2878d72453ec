# SPDX-License-Identifier: GPL-3.0-or-later
"""probing raise"""

from .. import breaks, stops
from ..command import Command
from ..errors import Problem


class Raise(Command):
    name = "raise"
    summary = "Raise an exception in the selected thread when it goes on."
    usage = "EXPRESSION"
    description = """
EXPRESSION is Python, evaluated with the variables of the line at which the thread is stopped:
  probing raise ValueError("no rows")
The thread has to be at a breakpoint of Python, or where a step has ended. The exception is raised
there as soon as the process goes on, and handled as any other. CPython has no way to make a running
function return another value."""

    def run(self, debugger, words):
        _, rest = self.parse(words)
        if not rest:
            raise Problem("raise: no exception was given, such as 'probing raise ValueError(1)'")
        control = debugger.control()
        breaks.check(debugger, control, self.name)
        ident, tid = breaks.identity(debugger)
        if not tid:
            raise Problem("no thread is selected")
        stops.check(debugger, control, self.name)
        with stops.kept(debugger, control):
            breaks.Breaks(debugger, control).make_raise(ident, tid, rest)


COMMAND = Raise

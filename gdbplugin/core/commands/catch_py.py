# SPDX-License-Identifier: GPL-3.0-or-later
"""probing catch-py"""

from .. import breaks, stops
from ..command import Command, Option
from .break_py import told_lines


class CatchPy(Command):
    name = "catch-py"
    summary = "Stop where exceptions of Python are raised."
    usage = "[CLASS] [OPTIONS]"
    description = """
CLASS is the name of the exception's class or of one that it is derived from; without it, all count:
  probing catch-py ValueError
  probing catch-py --uncaught
It is one of the breakpoints of 'probing break-py', which lists and deletes it. Python 3.12 or later."""
    options = (Option("uncaught", "only if no caller's code has an 'except' for it"),)

    def run(self, debugger, words):
        options, rest = self.parse(words)
        name, _, more = rest.partition(" ")
        self.no_more(more)
        control = debugger.control()
        breaks.check(debugger, control, self.name)
        stops.check(debugger, control, self.name)
        with stops.kept(debugger, control):
            told = breaks.Breaks(debugger, control).catch(name, "uncaught" in options, "")
        debugger.write("\n".join(told_lines(told, "Python breakpoint %d at ")) + "\n")


COMMAND = CatchPy

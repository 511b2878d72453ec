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
It is one of the breakpoints of 'probing break-py', which lists and deletes it. Before Python 3.12 all
lines of the program are traced for it."""
    options = (Option("uncaught", "only if no caller's code has an 'except' for it"),)

    def run(self, debugger, words):
        options, rest = self.parse(words)
        name, _, more = rest.partition(" ")
        self.no_more(more)
        wanted = breaks.wanted_catch(name, "uncaught" in options)
        if breaks.is_early(debugger):
            lines = [breaks.waits(debugger, wanted)]
        else:
            control = debugger.control()
            version = breaks.check(debugger, control, self.name)
            stops.check(debugger, control, self.name)
            with stops.kept(debugger, control):
                told = breaks.Breaks(debugger, control).add(wanted)
            lines = told_lines(told, "Python breakpoint %d at ") + breaks.cost(version, True)
        debugger.write("\n".join(lines) + "\n")


COMMAND = CatchPy

# SPDX-License-Identifier: GPL-3.0-or-later
"""probing print"""

from ..command import Command, Option, open_session
from ..errors import Problem
from ..frames import need_thread, selected
from ..text import cut, safe


class Print(Command):
    name = "print"
    summary = "Print a value in the selected Python frame."
    usage = "[OPTIONS] EXPRESSION"
    aliases = ("p",)
    argument = "expression"
    description = """
Names of the frame, globals and builtins, with attributes and constant indexes:
  probing print self.queue.maxsize
  probing print rows[-1]['key']
No code runs in the process, so there are no calls and operators. A property shows as such, and is
not looked into."""
    options = (Option("type", "with the type of the value and where it lies", short="t"),)

    def run(self, debugger, words):
        options, expression = self.parse(words)
        if not expression:
            raise Problem("there is no expression: for example 'probing print self'")
        tid = need_thread(debugger)
        if not debugger.all_stopped():
            raise Problem("a value is read while all threads are stopped, and some run: '%s' them first"
                          % debugger.INTERRUPT)
        with open_session(debugger) as session:
            type_name, value, address = session.look_up(tid, selected(debugger),
                                                        expression)
        text = safe(cut(value, debugger.settings.max_string))
        if "type" in options:
            text = "(%s at %#x) %s" % (safe(type_name), address, text)
        debugger.write(text + "\n")


COMMAND = Print

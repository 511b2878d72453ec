# SPDX-License-Identifier: GPL-3.0-or-later
"""probing inject"""

from .. import agent, stops
from ..command import Command


class Inject(Command):
    name = "inject"
    summary = "Load the agent into the process."
    aliases = ("in", "i")
    description = """
For 'probing eval' of a shell, once the process runs: while a debugger holds it, nobody else can load
the agent. A thread that stands at a safe place calls dlopen(), which is undone but for the agent.
'probing eject' of a shell takes it out again."""

    def run(self, debugger, words):
        _, rest = self.parse(words)
        self.no_more(rest)
        control = debugger.control()
        agent.check(debugger, control, "inject")
        there = bool(agent.find(debugger))
        if not there:
            stops.keep(debugger, control)
            with stops.kept(debugger, control):
                agent.load(debugger, control)
        pid = debugger.pid()
        debugger.write("process %d: the agent %s; once the process runs, 'probing -t %d eval' "
                       "reaches it\n" % (pid, "was there already" if there else "is loaded", pid))


COMMAND = Inject

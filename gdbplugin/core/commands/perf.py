# SPDX-License-Identifier: GPL-3.0-or-later
"""probing perf"""

from ..command import Command
from ..errors import Problem


class Perf(Command):
    name = "perf"
    summary = "Explain how to sample the process, which a debugger prevents."
    usage = "[OPTIONS]"
    aliases = ("performance", "flamegraph", "flame", "fg", "top")
    description = """
A thread that runs is stopped for some 40 microseconds to read its stack, and the kernel lets one program
at a time stop the threads of a process. So let it run without the debugger and sample it from a shell."""

    def run(self, debugger, words):
        if debugger.core_path() is not None:
            raise Problem("a core file does not run, so there is nothing to sample; "
                          "'probing backtrace --all' shows its stacks")
        raise Problem("%s holds process %d, and only one program can stop its threads: it cannot be "
                      "sampled now. Type 'detach', and in a shell 'probing %d perf' (or 'flamegraph', or "
                      "'top'). To attach again afterwards: 'attach %d'"
                      % (debugger.name, debugger.pid(), debugger.pid(), debugger.pid()))


COMMAND = Perf

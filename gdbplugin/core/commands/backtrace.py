# SPDX-License-Identifier: GPL-3.0-or-later
"""probing backtrace"""

from ..command import Command, Option, number, open_session
from ..errors import Problem
from ..frames import selected
from ..stacks import read_stacks, show_threads


class Backtrace(Command):
    name = "backtrace"
    summary = "Print the Python stack of the selected thread, or of all."
    usage = "[OPTIONS]"
    aliases = ("bt", "b")
    description = """
The innermost call comes first. Numbers are those that 'probing frame' takes. Calls of a recursion
are shown once, and those that start a thread are one line. With 'set probing format json' it is what
'probing backtrace --json' prints in a shell."""
    options = (Option("all", "all threads", short="a"),
               Option("tid", "this thread, by the number that the kernel gave it", "TID",
                      values="thread"),
               Option("locals", "with the variables of each frame", short="l"),
               Option("all-names", "with --locals: modules, functions and classes of modules, too"),
               Option("native", "with the C frames in between; all: the interpreter's own, too",
                      short="n", choice="all"),
               Option("source", "with the line of source that each is at", short="s"),
               Option("no-fold", "all calls of a recursion, and those that start a thread"),
               Option("json", "as 'probing backtrace --json' of a shell prints it"))

    def run(self, debugger, words):
        options, rest = self.parse(words)
        self.no_more(rest)
        if "all" in options and "tid" in options:
            raise Problem("--all and --tid exclude each other")
        tid = None if "all" in options else debugger.thread()
        if "tid" in options:
            tid = number(options["tid"], "thread")
        with open_session(debugger) as session:
            if "json" in options or debugger.settings.format == "json":
                show_json(debugger, session, tid, options)
                return
            threads = read_stacks(session, tid, options.get("native"), "locals" in options,
                                  "source" in options)
            mark = selected(debugger) if tid is not None and "tid" not in options else None
            show_threads(debugger, threads, tid is None, mark, "all-names" in options,
                         "no-fold" not in options)
            for text in session.warnings:
                debugger.warn(text)


def show_json(debugger, session, tid, options):
    """What `probing backtrace --json` prints in a shell."""
    from ..library import LOCALS, NATIVE, NATIVE_ALL
    what = (LOCALS if "locals" in options else 0) | (NATIVE if "native" in options else 0)
    if options.get("native") == "all":
        what |= NATIVE_ALL
    debugger.write(session.dump(tid or 0, what) + "\n")


COMMAND = Backtrace

# SPDX-License-Identifier: GPL-3.0-or-later
"""probing info"""

from ..command import Command, open_session
from ..text import safe

_PROCESS = "SELECT pid, cmdline, python_version, free_threaded, debug_build FROM process.info"


class Info(Command):
    name = "info"
    summary = "Print what is read, and how."
    description = """
The process with its Python, the way its memory is read, and the versions of plugin and library."""

    def run(self, debugger, words):
        _, rest = self.parse(words)
        self.no_more(rest)
        with open_session(debugger) as session:
            row = session.query(_PROCESS)[0]
            lines = [("process", "%s  %s" % (row["pid"], safe(row["cmdline"] or ""))),
                     ("python", python(row)),
                     ("read", session.how),
                     ("library", session.version())]
        debugger.write("".join("%-8s %s\n" % line for line in lines))


def python(row):
    if not row["python_version"]:
        return "none that can be read"
    return row["python_version"] + (" free-threaded" if row["free_threaded"] else "") + \
        (" debug build" if row["debug_build"] else "")


COMMAND = Info

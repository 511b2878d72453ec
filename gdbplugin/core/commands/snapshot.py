# SPDX-License-Identifier: GPL-3.0-or-later
"""probing snapshot"""

import os

from ..command import Command, Option, open_session
from ..errors import Problem


class Snapshot(Command):
    name = "snapshot"
    summary = "Save what can be asked about the process to a file."
    usage = "[OPTIONS] FILE"
    argument = "file"
    description = """
On any machine, 'probing FILE backtrace' and 'probing FILE query' then answer what they would answer
here, without the program."""
    options = (Option("redact", "leave the values of variables out"),)

    def run(self, debugger, words):
        options, path = self.parse(words)
        if not path:
            raise Problem("there is no file: for example 'probing snapshot hang.snapshot'")
        path = os.path.expanduser(path)
        with open_session(debugger) as session:
            session.snapshot(path, "redact" in options)
            for text in session.warnings:
                debugger.warn(text)
        debugger.write("%s: %d bytes\n" % (path, os.path.getsize(path)))


COMMAND = Snapshot

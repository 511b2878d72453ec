# SPDX-License-Identifier: GPL-3.0-or-later
"""probing list"""

import os

from ..command import Command, number, open_session
from ..errors import Problem
from ..frames import find_frame, read_selected, selected
from ..text import CURRENT, Painter, safe

AROUND = 5


class List(Command):
    name = "list"
    summary = "Print the source around the line that the selected Python frame is at."
    usage = "[LINE]"
    aliases = ("ls", "l")

    def run(self, debugger, words):
        _, rest = self.parse(words)
        with open_session(debugger) as session:
            frame = find_frame(read_selected(session, debugger), selected(debugger))
            rows = session.query("SELECT cwd FROM process.info")
        if not frame["file"] or not frame["lineno"]:
            raise Problem("this frame does not say where its source is")
        center = number(rest, "line") if rest else frame["lineno"]
        lines = read_lines(debugger, frame["file"], rows[0]["cwd"] if rows else None)
        if center > len(lines):
            raise Problem("%s has only %d lines" % (safe(frame["file"]), len(lines)))
        paint, shown = Painter(debugger), []
        for line in range(max(1, center - AROUND), min(len(lines), center + AROUND) + 1):
            here = line == frame["lineno"]
            text = "%s %4d  %s" % (">" if here else " ", line, safe(lines[line - 1]))
            shown.append(paint(CURRENT, text) if here else text)
        debugger.write("\n".join(text.rstrip() for text in shown) + "\n")


def read_lines(debugger, path, cwd):
    """The file as the process sees it, else as we do."""
    if not path.startswith("/") and cwd:
        path = os.path.join(cwd, path)
    for root in ("/proc/%d/root" % (debugger.pid() or 0), ""):
        try:
            with open(root + path, encoding="utf-8", errors="replace") as file:
                return [line.rstrip("\n").expandtabs() for line in file]
        except (OSError, ValueError):
            pass
    raise Problem("the source %s is not on this machine" % safe(path))


COMMAND = List

# SPDX-License-Identifier: GPL-3.0-or-later
"""probing list"""

import ast
import os
import re

from ..command import Command, number, open_session
from ..errors import Problem
from ..frames import find_frame, read_selected, selected
from ..text import CURRENT, Painter, safe

AROUND = 5


class List(Command):
    name = "list"
    summary = "Print the source around the line that the selected Python frame is at."
    usage = "[LINE | FIRST,LAST | FUNCTION]"
    aliases = ("ls", "l")
    argument = "expression"
    description = """
LINE is another line of the same file, FIRST,LAST are the first and last line to be printed. FUNCTION is
a function that the frame sees, such as 'load' or 'self.step': its source is printed from its first line."""

    def run(self, debugger, words):
        _, rest = self.parse(words)
        with open_session(debugger) as session:
            thread, depth = read_selected(session, debugger), selected(debugger)
            frame = find_frame(thread, depth)
            rows = session.query("SELECT cwd FROM process.info")
            path, wanted, first, last = asked(session, thread.row["tid"], depth, frame, rest)
        if not path or not wanted:
            raise Problem("this frame does not say where its source is")
        lines = read_lines(debugger, path, rows[0]["cwd"] if rows else None)
        if wanted > len(lines):
            raise Problem("%s has only %d lines" % (safe(path), len(lines)))
        paint, shown = Painter(debugger), []
        for line in range(max(1, first), min(len(lines), last) + 1):
            here = line == frame["lineno"] and path == frame["file"]
            text = "%s %4d  %s" % (">" if here else " ", line, safe(lines[line - 1]))
            shown.append(paint(CURRENT, text) if here else text)
        debugger.write("\n".join(text.rstrip() for text in shown) + "\n")


def asked(session, tid, depth, frame, text):
    """(file, line that it must have, first line, last line) of what the @text means."""
    span = re.match(r"(\d+)\s*,\s*(\d+)$", text)
    if span:
        first, last = map(int, span.groups())
        if not 0 < first <= last:
            raise Problem("'%s' are no lines: the first and the last are needed" % text)
        return frame["file"], first, first, last
    if text and not re.match(r"[-+]?\d", text):
        path, line = place_of_function(session, tid, depth, text)
        return path, line, line, line + 2 * AROUND
    line = number(text, "line") if text else frame["lineno"] or 0
    return frame["file"], line, line - AROUND, line + AROUND


def place_of_function(session, tid, depth, text):
    """Where the code of the function begins, which is looked up as 'probing print' does."""
    try:
        path, line = [session.look_up(tid, depth, "%s.__code__.%s" % (text, name))[1]
                      for name in ("co_filename", "co_firstlineno")]
        return ast.literal_eval(path), int(line)
    except (Problem, ValueError, SyntaxError) as problem:
        raise Problem("'%s' is neither a line nor a function that this frame sees: %s" % (text, problem))


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

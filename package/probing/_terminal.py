# SPDX-License-Identifier: GPL-3.0-or-later
"""What scripts print: names and texts of a target may hold what controls a terminal, or no UTF-8."""

import re
import sys

# All controls but tab and newline, and marks that change the direction of the text.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def escaped(found):
    return "".join("\\x%02x" % ord(c) if ord(c) < 256 else "\\u%04x" % ord(c)
                   for c in found.group(0))


class Terminal:
    """A stream to a terminal. Colours of your own go to sys.__stdout__."""

    def __init__(self, stream):
        self._stream = stream

    def write(self, text):
        return self._stream.write(CONTROLS.sub(escaped, text))

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def __getattr__(self, name):
        return getattr(self._stream, name)


def install():
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            continue
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
        if stream.isatty():
            setattr(sys, name, Terminal(stream))

# SPDX-License-Identifier: GPL-3.0-or-later
"""A terminal with a readable screen, for the tests of full-screen views."""
import fcntl
import struct
import termios
import time

import pytest
import terminal

try:
    import pyte
except ImportError:
    pyte = None


class Screen(terminal.Terminal):
    """The command on a terminal, and its screen."""

    def __init__(self, *words, size=(30, 100), **variables):
        if not pyte:
            pytest.skip("python3-pyte is not installed")
        self.screen = pyte.Screen(size[1], size[0])
        self.stream = pyte.ByteStream(self.screen)
        super().__init__(*words, size=size, **{"TERM": "linux", **variables})
        self.before = termios.tcgetattr(self.leader)
        self.seen = b""

    def take(self, timeout=20):
        """Reads more output; False at its end."""
        more = self.read(timeout)
        self.stream.feed(self.printed)
        self.seen += self.printed
        self.printed = b""
        return more

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def shows(self, wanted, timeout=30):
        """The screen, once wanted(screen), or a text, is true of it."""
        condition = wanted if callable(wanted) else lambda text: wanted in text
        end = time.monotonic() + timeout
        while not condition(self.text()):
            assert time.monotonic() < end, self.text()
            assert self.take(), "it has ended:\n" + self.text()
        return self.text()

    def resize(self, rows, columns):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.leader, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def ended(self):
        """(exit status, screen) when it has ended; the terminal is as it was."""
        while self.take():
            pass
        code = self.process.wait(20)
        assert b"\x1b[?25l" not in self.seen.rpartition(b"\x1b[?25h")[2], "no cursor"
        return code, self.text()

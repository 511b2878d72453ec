# SPDX-License-Identifier: GPL-3.0-or-later
"""The command on a terminal of its own, for the tests of input and output there."""
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import support


MOST = 1 << 22  # bytes between two texts that are waited for
PATIENCE = 300  # seconds


def environment(**more):
    kept = {key: value for key, value in os.environ.items()
            if not key.startswith("PROBING_") and key not in ("NO_COLOR", "COLUMNS", "LINES")}
    return {**kept, "TERM": "xterm", "LANG": "", "LC_ALL": "", "LC_CTYPE": "", **more}


def take_terminal():
    """As a shell starts a command: also where the tests run under nohup."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Terminal:
    """The command on a terminal of its own."""

    def __init__(self, *words, size=(24, 80), stderr=None, program=support.BINARY, **variables):
        self.leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.process = subprocess.Popen(
            [str(program), *map(str, words)], stdin=follower, stdout=follower,
            stderr=follower if stderr is None else stderr,
            env=environment(**variables), start_new_session=True,
            preexec_fn=take_terminal)
        os.close(follower)
        self.printed = b""

    def read(self, timeout):
        """Reads more output; False at its end."""
        assert select.select([self.leader], [], [], timeout)[0], self.printed
        try:
            chunk = os.read(self.leader, 65536)
        except OSError:
            chunk = b""
        self.printed += chunk
        assert len(self.printed) < MOST, "it prints without end: %r" % self.printed[-200:]
        return bool(chunk)

    def until(self, text, timeout=20):
        """The output up to this text, without it. @timeout limits the time without output, PATIENCE the
        time in all."""
        end = time.monotonic() + PATIENCE
        while text.encode() not in self.printed:
            assert self.read(timeout) and time.monotonic() < end, "no %r in %r" % (text, self.printed)
        before, _, self.printed = self.printed.partition(text.encode())
        return before.decode().replace("\r\n", "\n")

    def send(self, text):
        os.write(self.leader, text.encode())

    def hang_up(self):
        """The terminal is gone, as when its window is closed."""
        os.close(self.leader)
        self.leader = None

    def end(self):
        """All that is printed from here on, and the exit status."""
        while self.read(20):
            pass
        return self.printed.decode().replace("\r\n", "\n"), self.process.wait(20)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.leader is not None:
            os.close(self.leader)

# SPDX-License-Identifier: GPL-3.0-or-later
"""What a debugger has to do for commands that run something in the process; a face has one of these
(Debugger.control()), and only these commands use it."""

class Late(Exception):
    """A function has not returned in time, or a Ctrl-C came first. The thread is still in it."""


STOPPED, TIMER, OTHER, EXITED = "stopped", "timer", "other", "exited"
PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS = 3, 0x22
SIGSTOP, SIGURG = 19, 23


class Control:
    """Use as a context manager: what the user selected, his breakpoints, and what happens at
    signals are put back at its end."""

    active = 0  # how many there are in their `with`
    keeps, kept = False, None  # the thread `kept` does not run on from where it is, see core/stops.py
    hijacked = None  # see core/hijack.py; until anything but its calls runs

    def __enter__(self):
        raise NotImplementedError

    def __exit__(self, *_):
        raise NotImplementedError

    def obstacle(self):
        """Why nothing may be run, and what to do: one line; None if it may."""
        raise NotImplementedError

    def write(self, address, data):
        """Writes memory of the process."""
        raise NotImplementedError

    def call(self, tid, address, arguments, alone, seconds=None):
        """Calls a function of the process on a thread and gives what it returns, as a signed
        number; @alone: all other threads stay stopped. Late, if it has @seconds and needs more."""
        raise NotImplementedError

    def run(self, tid, addresses, alone):
        """Lets the process run until the thread comes to one of the addresses, if there are any:
        STOPPED; or SIGURG to it: TIMER; or something else stops it: OTHER with a text; EXITED.
        Gives (which, text). A breakpoint is made for an address only: a process whose debugger is
        killed while it has one dies of it."""
        raise NotImplementedError

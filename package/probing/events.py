# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens in gdb and LLDB: `probing.events.stopped.connect(function)`.

`stopped` is each stop that the user sees; `breakpoint_hit` those at a breakpoint of the debugger or
of break_py(). The functions are called with a Stop.
"""

import traceback
from typing import Any, Callable, Optional

from . import target
from ._errors import Error
from .frame import Frame, Thread


class Stop:
    """A stop: .program, .reason in words, .number of the breakpoint or None, .python: whether it is
    one of break_py(), .thread, .frame (None: the thread runs no Python)."""

    def __init__(self, program, reason, tid, number, python):
        self.program, self.reason, self.number, self.python = program, reason, number, python
        self._tid, self._thread = tid, None

    @property
    def thread(self) -> Thread:
        """The thread that stopped."""
        if self._thread is None:
            self._thread = self.program.thread(self._tid)
        return self._thread

    @property
    def frame(self) -> Optional[Frame]:
        """Its innermost Python frame."""
        try:
            return self.thread.frames[0]
        except (Error, IndexError):
            return None

    def __repr__(self):
        return "<stop: %s>" % self.reason


class Event:
    """Functions that are called when something happens."""

    def __init__(self, name):
        self._name, self._functions = name, []

    def connect(self, function: Callable[[Stop], Any]) -> Callable:
        """Has the function called from now on."""
        target.debugger("probing.events").watch()
        self._functions.append(function)
        return function

    def disconnect(self, function: Callable) -> None:
        """The end of that."""
        self._functions.remove(function)

    def _call(self, stop, say):
        for function in list(self._functions):
            try:
                function(stop)
            except Exception:
                say("a function of probing.events.%s failed:\n%s" % (
                    self._name, traceback.format_exc()))

    def __repr__(self):
        return "<probing.events.%s, %d functions>" % (self._name, len(self._functions))


stopped, breakpoint_hit = Event("stopped"), Event("breakpoint_hit")


def happen(stop, say):
    """Called by the debugger's side; @say shows a line."""
    stopped._call(stop, say)
    if stop.number is not None:
        breakpoint_hit._call(stop, say)

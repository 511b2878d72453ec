# SPDX-License-Identifier: GPL-3.0-or-later
"""The package `probing` in a debugger: the debugger's process as a Program.

The session is opened again when the process has run since: values know their address and type, and
are read from the current memory.
"""

import atexit
import ctypes
import traceback

from probing import _library as lib
from probing import _errors, events
from probing.target import Program

from . import breaks, control, extensions, library
from . import stops as kept_places
from .errors import Interrupted, Problem
from .frames import selected
from .session import encode, means


def translated(function, *arguments):
    """Calls it; what a command would show as one line is an exception of the package."""
    try:
        return function(*arguments)
    except Interrupted:
        raise KeyboardInterrupt
    except Problem as problem:
        raise _errors.Error(str(problem))


class Poll(lib.Poll):
    """A Ctrl-C may be the debugger's: LLDB keeps a Ctrl-C that arrives during `script CODE`."""

    def __init__(self, debugger):
        self._debugger = debugger
        lib.Poll.__init__(self)

    def _ask(self, context):
        if self._debugger.interrupted():
            self.interrupted = True
        return lib.Poll._ask(self, context)


class Inferior(Program):
    """What current() returns in a debugger."""

    _moves = False

    def __init__(self, debugger):
        self.debugger, self._source, self._handle, self._opened = debugger, None, None, None
        Program.__init__(self, debugger.name)

    def _poller(self):
        return Poll(self.debugger)

    @property
    def _pointer(self):
        if self.debugger.interrupted():
            raise KeyboardInterrupt
        if self._handle and self._opened != self.debugger.moment():
            self.close()
            self._start()
        return self._handle

    @_pointer.setter
    def _pointer(self, handle):
        self._handle = handle

    def _open(self):
        if not self._pointer:
            self._start()
        return self._pointer

    def _start(self):
        self._opened = self.debugger.moment()
        translated(Program._start, self)

    def _twin(self):
        return Inferior(self.debugger)

    def _say(self, text):
        self.debugger.warn(text)

    def _connect(self):
        core, self._source, _ = means(self.debugger)
        if core:
            return self._call(lib.LIBRARY.probing_open, encode(core), None)
        if not self._source.struct.held:
            lib.check(lib.LIBRARY.probing_set(self._handle, b"probing.query.mode", b"nonblocking"))
        return self._call(library.LIBRARY.probing_open_debugger, self.debugger.name.encode(),
                          ctypes.byref(self._source.struct))

    def _settle(self, error, outcome=None):
        failure = self._source and self._source.failure
        if failure:
            self._source.failure = None
            if error:
                lib.LIBRARY.probing_error_destroy(error)
            if isinstance(failure, Problem):
                raise _errors.Error(str(failure))
            raise failure
        Program._settle(self, error, outcome)

    def __del__(self):
        pass  # at the debugger's end, when there may be no debugger to ask: close_all()

    def close(self):
        """Ends the session; another one begins when something is read."""
        lib.LIBRARY.probing_destroy(self._handle)
        self._handle, self._source = None, None
        if self._reader is not None:
            self._reader.close()

    def thread(self, wanted=None):
        return Program.thread(self, self.debugger.thread() if wanted is None else wanted)

    def frame(self):
        """The selected Python frame of the selected thread."""
        frames = self.thread().frames
        if not frames:
            raise _errors.Error("the selected thread has no Python frames")
        return frames[min(selected(self.debugger), len(frames) - 1)]

    def native(self, value):
        return self.debugger.native(value.address)

    def _returned_to(self, thread):
        return translated(breaks.returned, self.debugger) if thread.tid == self.debugger.thread() else None


def never(_):
    """The condition of one that was deleted: a thread may have come to it before."""
    return False


class Breakpoint:
    """Of break_py(): number, delete()."""

    def __init__(self, debugger, number, text):
        self._debugger, self.number, self.place = debugger, number, text

    def delete(self):
        PYTHON[self.number] = never, None
        translated(_with_breaks, self._debugger, lambda known: known.delete(self.number))

    def __repr__(self):
        return "<Python breakpoint %d at %s>" % (self.number, self.place)


PROGRAMS = {}  # {face: its Inferior}
WATCHED = []
PYTHON = {}  # {number of a breakpoint: (condition, action)}


@atexit.register
def close_all():
    for program in PROGRAMS.values():
        program.close()


def current(debugger):
    if debugger not in PROGRAMS:
        PROGRAMS[debugger] = Inferior(debugger)
    return PROGRAMS[debugger]


def _with_breaks(debugger, function):
    made = debugger.control()
    breaks.check(debugger, made)
    kept_places.check(debugger, made, "break_py()")
    with kept_places.kept(debugger, made):
        return function(breaks.Breaks(debugger, made))


def break_py(debugger, place, condition, action):
    from .commands.break_py import read_place
    why = debugger.cannot_ask() if condition or action else None
    if why:
        raise _errors.Error("%s; \"PLACE if CONDITION\" is evaluated in the process" % why)
    wanted = translated(lambda: breaks.wanted(debugger, *read_place(place), None))
    if translated(breaks.is_early, debugger):
        number, text = debugger.mark(wanted, None), wanted.text
    else:
        told = translated(_with_breaks, debugger, lambda known: known.add(wanted))
        number, text = told["number"], breaks.described(told)[0]
    PYTHON[number] = condition, action
    return Breakpoint(debugger, number, text)


def stops(debugger, number):
    """Whether the selected thread, which has come to the breakpoint of Python, is to stop."""
    condition, action = PYTHON.get(number, (None, None))
    if condition is None and action is None:
        return True
    try:
        program = current(debugger)
        program.close()
        frame = program.thread().frames[0]
        if condition is not None and not condition(frame):
            return False
        return True if action is None else bool(action(frame))
    except Exception:
        debugger.warn("the function of Python breakpoint %d failed, so it stops:\n%s" % (
            number, traceback.format_exc()))
        return True


def add_command(debugger, made):
    translated(extensions.add, debugger, made)


def watch(debugger):
    """Has the events of the package happen."""
    if debugger not in WATCHED:
        WATCHED.append(debugger)
        debugger.watch(lambda *what: _happened(debugger, *what))


def _happened(debugger, reason, tid, number, python):
    # Stops of our own are none of the user's.
    if not control.Control.active:
        stop = events.Stop(current(debugger), reason, tid, number, python)
        events.happen(stop, debugger.warn)

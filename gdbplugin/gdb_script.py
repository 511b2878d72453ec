# SPDX-License-Identifier: GPL-3.0-or-later
"""gdb: what scripts and gdb's own expressions have from the package `probing`."""

import gdb

from .core.errors import Problem
from .gdb_files import Silent
from .gdb_threads import tid_of

# Events after which memory, or the process, may be another one.
CHANGES = ("stop", "cont", "exited", "memory_changed", "register_changed", "inferior_call",
           "new_objfile", "clear_objfiles")
COUNT = []  # number of these events since the first query
INTS = (-2 ** 63, 2 ** 64)
WATCHERS = []


def changed(*_):
    COUNT[0] += 1


def moment():
    """Differs when something has happened."""
    if not COUNT:
        COUNT.append(0)
        for name in CHANGES:
            if hasattr(gdb.events, name):
                getattr(gdb.events, name).connect(changed)
    inferior = gdb.selected_inferior()
    return COUNT[0], inferior.num, inferior.pid


def native(address):
    for name in ("PyObject", "char"):
        try:
            return gdb.Value(address).cast(gdb.lookup_type(name).pointer())
        except gdb.error:
            continue
    return gdb.Value(address)


def watch(function):
    if not WATCHERS:
        gdb.events.stop.connect(on_stop)
    WATCHERS.append(function)


def on_stop(event):
    from .gdb_break import reached
    reason, number, python = "a step or another command", None, False
    if isinstance(event, gdb.SignalEvent):
        reason = event.stop_signal
    elif isinstance(event, gdb.BreakpointEvent):
        number, python = event.breakpoints[0].number, False
        if reached(event) is not None:
            number, python = reached(event), True
        reason = "%sbreakpoint %d" % ("Python " if python else "", number)
    thread = gdb.selected_thread()
    for function in WATCHERS:
        function(reason, thread and tid_of(thread), number, python)


def program(face):
    import probing
    if not face.pid() and face.core_path() is None:
        raise Problem("there is no process")
    why = in_condition() and face.cannot_ask()
    if why:
        raise Problem("%s; 'probing break-py PLACE if CONDITION' is evaluated in the process" % why)
    return probing.current()


def in_condition():
    """gdb still takes a thread for running then."""
    thread = gdb.selected_thread()
    return bool(thread) and not thread.is_stopped()


def asked(function):
    """Called by an expression, which may be the condition of a breakpoint."""
    def call(*arguments):
        if not in_condition():
            return function(*arguments)
        with Silent():
            return function(*arguments)
    return call


@asked
def local(face, name, number=None):
    """$probing_local()"""
    import probing
    try:
        current = program(face)
        frame = current.frame() if number is None else current.thread().frames[int(number)]
        found = frame.locals[name.string()]
        known, constant = found._prb_constant()
    except KeyError:
        raise Problem("there is no variable %s in %s" % (name.string(), frame))
    except (probing.Error, IndexError) as error:
        raise Problem(str(error))
    if not known or constant is None or \
            isinstance(constant, int) and not INTS[0] <= constant < INTS[1]:
        return native(found.address)
    return gdb.Value(constant)


@asked
def thread(face, name):
    """$probing_thread()"""
    wanted = name.string()
    tids = {each.tid for each in program(face).threads() if each.name == wanted}
    for each in gdb.selected_inferior().threads():
        if tid_of(each) in tids:
            return each.num
    return 0

# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the process stands, which commands that run code keep: where the user had it stop, nothing runs on
without being asked to."""

import contextlib

from . import agent, interpreter
from .command import open_session
from .errors import Problem
from .frames import selected

EXACT, LOOSE, GONE = "exact", "loose", "gone"


def is_chosen(debugger):
    """As Debugger.chosen(), which says nothing of where our own commands have left the process."""
    if debugger.own_stop and debugger.own_stop[0] == debugger.runs():
        return debugger.own_stop[1]
    return debugger.chosen()


def keep(debugger, control, everyone=False):
    """Whether the selected thread is to stay where the user had it stop."""
    control.keeps, control.kept = is_chosen(debugger) and not everyone, debugger.thread()


def check(debugger, control, what, everyone=False):
    """Refuses what would have to run threads on from where the user had them stop, unless all may run
    (@everyone). What of the selected thread's frames is left when code runs: EXACT: all; LOOSE: they have
    to be looked at again; GONE: it runs on."""
    keep(debugger, control, everyone)
    if at_python_breakpoint(debugger):
        control.keeps = False
        return EXACT
    with open_session(debugger) as session:
        threads = interpreter.read_threads(session)
        free_threaded = interpreter.is_free_threaded(session)
    holder = interpreter.holder(threads)
    runs = next((each.tid for each in threads if not each.waits), None) if free_threaded else holder
    if runs is not None and control.keeps:
        raise Problem("%s: thread %d %s, and would have to run on from where it is stopped before any "
                      "other code of Python can run: %s" % (
                          what, runs, "computes" if free_threaded else "holds the GIL",
                          "'probing eval --all' lets all threads run" if what == "eval" else
                          "let the process run, and interrupt it"))
    if free_threaded or holder is not None and holder == debugger.thread():
        return GONE
    return EXACT if holder is None and not everyone else LOOSE


def at_python_breakpoint(debugger):
    """Whether the selected thread is where the agent holds it, without the GIL, whatever runs."""
    where = debugger.position()
    return bool(where) and where[2] == agent.find(debugger).get(agent.BREAK_STOPS)


POSITION = {"x86_64": ("rip", "rsp"), "aarch64": ("pc", "sp")}  # registers, by machine


class Place:
    """Where the selected thread is, of which another one may be selected meanwhile."""

    def __init__(self, debugger):
        self._debugger, self._tid = debugger, debugger.thread()
        self._before = self._now()

    def _now(self):
        return self._debugger.registers(self._tid, POSITION.get(self._debugger.machine(), ()))

    def is_left(self):
        return not self._before or self._now() != self._before


@contextlib.contextmanager
def kept(debugger, control):
    """Runs the body within the control, and says if the selected thread is not where it was."""
    where, frame, python = debugger.position(), selected(debugger), at_python_breakpoint(debugger)
    chosen = is_chosen(debugger)
    try:
        with control:
            yield
    finally:
        stays = debugger.position() == where
        debugger.own_stop = debugger.runs(), chosen and (stays or python)
    if stays:
        return
    if python:  # it has not gone on
        debugger.selection = debugger.position(), frame
    else:
        debugger.warn("thread %d ran on meanwhile" % debugger.thread())

# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps the process at the stop of the user, for commands that run code: there, no thread runs on
unless the user asks for it."""

import contextlib
import os
import re

from . import agent, interpreter
from .command import open_session
from .errors import Problem
from .frames import selected

EXACT, LOOSE, GONE, HERE = "exact", "loose", "gone", "here"
_INTERPRETER = "SELECT module FROM native.symbols WHERE name = 'PyErr_Occurred'"
_ALLOCATES = re.compile(r"(_*libc_)?(malloc|calloc|realloc|free|memalign|posix_memalign|aligned_alloc)\b")
_FRAMES = "SELECT frame_type, func, module FROM native.frames WHERE tid = %d ORDER BY depth"
# Functions of these may be called from anywhere within the interpreter.
_SYSTEM = re.compile(r"(ld|libc|libm|libpthread|libdl|librt|ld-musl|libc\.musl|\[vdso\])\b")


def is_chosen(debugger):
    """As Debugger.chosen(), which says nothing of where our own commands have left the process."""
    if debugger.own_stop and debugger.own_stop[0] == debugger.runs():
        return debugger.own_stop[1]
    return debugger.chosen()


def keep(debugger, control, everyone=False):
    """Whether the selected thread is to stay where the user had it stop."""
    control.keeps, control.kept = is_chosen(debugger) and not everyone, debugger.thread()


def check(debugger, control, what, everyone=False, may_here=False):
    """Refuses commands that would resume threads from the user's stop, unless all may run
    (@everyone). Returns which of the selected thread's frames survive the code: EXACT: all; LOOSE:
    they have to be looked at again; GONE: it runs on; HERE: all, and the code can run on that thread
    alone."""
    keep(debugger, control, everyone)
    if at_python_breakpoint(debugger):
        control.keeps = False
        return EXACT
    with open_session(debugger) as session:
        threads = interpreter.read_threads(session)
        free_threaded = interpreter.is_free_threaded(session)
        holder = interpreter.holder(threads)
        own = next((each for each in threads if each.tid == debugger.thread() and each.gil == "holds"), None)
        obstacle = why_not_here(session, own) if own and may_here and not everyone else None
        if own and may_here and not everyone and not obstacle:
            control.keeps = True
            return HERE
    runs = next((each.tid for each in threads if not each.waits), None) if free_threaded else holder
    if runs is not None and control.keeps:
        raise Problem("%s: thread %d %s, and would have to run on from where it is stopped before any "
                      "other code of Python can run%s: %s" % (
                          what, runs, "computes" if free_threaded else "holds the GIL",
                          ", nor may code run on it there: %s" % obstacle if obstacle else "",
                          "'probing eval --all' lets all threads run" if may_here else
                          "let the process run, and interrupt it"))
    if free_threaded or holder is not None and holder == debugger.thread():
        return GONE
    return EXACT if holder is None and not everyone else LOOSE


def why_not_here(session, thread):
    """Why code must not run on the thread that holds the GIL, at whatever instruction it is; None: the
    interpreter has called an extension there, and so expects that code runs."""
    callable_one = next((each for each in session.hijackable(True) if each.tid == thread.tid), None)
    if thread.collects or callable_one is None or callable_one.why:
        return "it collects garbage" if thread.collects else "it is %s" % (
            callable_one.why if callable_one else "unknown")
    own = {row["module"] for row in session.query(_INTERPRETER)}
    extension = False
    for row in session.query(_FRAMES % thread.tid):
        if row["frame_type"] == "python" or row["module"] in own:
            break
        if row["frame_type"] == "error" or _ALLOCATES.match(row["func"] or ""):
            return "its C stack cannot be read" if row["frame_type"] == "error" else "it allocates memory"
        extension |= bool(row["module"]) and not _SYSTEM.match(os.path.basename(row["module"]))
    return None if extension else "it is not in a function of an extension"


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

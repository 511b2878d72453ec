# SPDX-License-Identifier: GPL-3.0-or-later
"""gdb: breakpoints of Python that were set before Python was there. The interpreter calls one function for the
code of each module, also of the program: there any code may run, so what waits is set there, on that thread."""

import gdb

from .core import breaks, control
from .core.errors import Problem

RUNS_CODE = "PyEval_EvalCode"
INITIALISED = "((int (*)(void))Py_IsInitialized)()"
MAKES_GIL = (3, 7)  # at its start; before, with the first thread, so that nobody else could have it
GIL = "((void (*)(void))PyEval_InitThreads)()"
GOES_ON = "silent\npython import %s; %s.come()" % (__name__, __name__)
STARTER = []  # (gdb's breakpoint there, face)
FAILED = set()  # pids


class Starter(gdb.Breakpoint):
    def stop(self):
        return not control.Control.active


def look(face):
    """Has gdb stop there if something waits."""
    from .gdb_break import quietly, waiting
    wanted = bool(waiting())
    if not (STARTER and STARTER[0][0].is_valid()):
        made = quietly(lambda: Starter(RUNS_CODE, internal=True))
        made.silent = True
        made.commands = GOES_ON
        if not STARTER:
            gdb.events.exited.connect(again)
            gdb.events.new_objfile.connect(again)
        STARTER[:] = [(made, face)]
    if STARTER[0][0].enabled != wanted:
        STARTER[0][0].enabled = wanted


def again(_):
    if STARTER:
        look(STARTER[0][1])


def come():
    """At the start of code of a module. gdb forgets what follows this of the commands, when it has run anything."""
    set_waiting()
    if gdb.selected_inferior().pid:
        gdb.execute("continue")


def set_waiting():
    """Sets what waits, if Python can be used by now."""
    from .gdb_break import is_set, waiting
    face, pid = STARTER[0][1], gdb.selected_inferior().pid
    try:
        if not int(gdb.parse_and_eval(INITIALISED)):
            return
        if breaks.is_early(face):
            return
        made = face.control()
        version = breaks.check(face, made)
        tid = face.thread()
        with made:
            if version < MAKES_GIL:
                gdb.parse_and_eval(GIL)
            known = breaks.Breaks(face, made, tid)
            for each in waiting():
                is_set(each, known.set(each.wanted, each.own))
    except (Problem, gdb.error) as problem:
        if breaks.EARLY in str(problem):
            return  # 3.6 says earlier that it is initialised than it has its files
        if pid not in FAILED:
            face.warn("breakpoints of Python are not set: %s" % problem)
        FAILED.add(pid)
        STARTER[0][0].enabled = False

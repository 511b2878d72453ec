# SPDX-License-Identifier: GPL-3.0-or-later
"""Breakpoints of Python that were set before Python was there. The interpreter calls one function for the code of
each module, also of the program: there any code may run, so what waits is set there, on that thread."""

from . import breaks, marks

RUNS_CODE = "PyEval_EvalCode"
INITIALISED = "Py_IsInitialized"
MAKES_GIL = (3, 7)  # at its start; before, with the first thread, so that nobody else could have it
GIL = "PyEval_InitThreads"


def set_waiting(debugger, call):
    """Sets what waits, if Python can be used by now. @call: calls a function of the process by its name."""
    if not call(INITIALISED) or breaks.is_early(debugger):
        return
    control = debugger.control()
    version = breaks.check(debugger, control)
    tid = debugger.thread()
    with control:
        if version < MAKES_GIL:
            call(GIL)
        known = breaks.Breaks(debugger, control, tid)
        for each in marks.waiting(debugger.marks(), debugger):
            each.set(debugger.pid(), known.set(each.wanted, each.own))

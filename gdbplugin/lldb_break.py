# SPDX-License-Identifier: GPL-3.0-or-later
"""LLDB: its own breakpoint behind those of Python, see core/breaks.py."""

from .core import breaks
from .core.errors import Problem

NAME = "probing_break_py"  # which 'breakpoint list' shows
CALLBACK = "on_python_breakpoint"
SHOWS = {}  # the face, and the module in which LLDB looks for the function


def install(module, face):
    SHOWS.update(face=face, module=module.__name__)
    setattr(module, CALLBACK, on_stop)


def own(target):
    return [each for each in target.breakpoint_iter() if each.MatchesName(NAME)]


def stop_at(target, address):
    if own(target):
        return
    made = target.BreakpointCreateByAddress(address)
    made.AddName(NAME)
    made.SetScriptCallbackFunction("%s.%s" % (SHOWS["module"], CALLBACK))


def stop_no_more(target):
    for each in own(target):
        target.BreakpointDelete(each.GetID())


def on_stop(frame, _, internal):
    """LLDB calls it when a thread has stopped there, and has the process stay stopped."""
    face = SHOWS["face"]
    debugger = frame.GetThread().GetProcess().GetTarget().GetDebugger()
    frame.GetThread().GetProcess().SetSelectedThread(frame.GetThread())
    face.begin(debugger, None)
    try:
        print(breaks.show_stop(face), end="")
    except Problem as problem:
        print("probing: a breakpoint of Python was reached; where cannot be shown: %s" % problem)
    return True

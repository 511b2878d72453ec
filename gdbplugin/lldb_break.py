# SPDX-License-Identifier: GPL-3.0-or-later
"""LLDB: its own breakpoint behind those of Python, see core/breaks.py."""

import re
import sys

import lldb

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


def stopped_number(face, tid):
    return breaks.numbers_in(breaks.what_stopped(face, tid))[0]


def on_stop(frame, _, internal):
    """LLDB calls it when a thread has stopped there, and has the process stay stopped if it says
    so."""
    face = SHOWS["face"]
    process = frame.GetThread().GetProcess()
    process.SetSelectedThread(frame.GetThread())
    face.begin(process.GetTarget().GetDebugger(), None)
    try:
        if "probing" in sys.modules and not script_stops(face):
            return False
        print(breaks.show_stop(face), end="")
    except Problem as problem:
        print("probing: a breakpoint of Python was reached; where cannot be shown: %s" % problem)
    return True


def script_stops(face):
    from .core import script
    return script.stops(face, stopped_number(face, face.thread()))


class StopHook:
    """What LLDB makes for `target stop-hook add -P`, for events of the package."""

    def __init__(self, target, *_):
        pass

    def handle_stop(self, exe_ctx, _):
        face, thread = SHOWS["face"], exe_ctx.GetThread()
        face.begin(exe_ctx.GetTarget().GetDebugger(), None)
        tid, number, python = thread.GetThreadID(), None, False
        text = thread.GetStopDescription(256)
        if thread.GetStopReason() == lldb.eStopReasonBreakpoint:
            number = thread.GetStopReasonDataAtIndex(0)
            python = exe_ctx.GetTarget().FindBreakpointByID(number).MatchesName(NAME)
            if python:
                number = stopped_number(face, tid)
            text = "%sbreakpoint %d" % ("Python " if python else "", number)
        elif thread.GetStopReason() == lldb.eStopReasonSignal:
            text = text.replace("signal ", "", 1)
        SHOWS["watcher"](text, tid, number, python)
        return True


def watch(target, function):
    result, interpreter = lldb.SBCommandReturnObject(), target.GetDebugger().GetCommandInterpreter()
    SHOWS["watcher"] = function
    setattr(sys.modules[SHOWS["module"]], "StopHook", StopHook)
    interpreter.HandleCommand("target stop-hook add -P %s.StopHook" % SHOWS["module"], result)
    SHOWS["hook"] = re.sub(r"\D", "", result.GetOutput())
    if not SHOWS["hook"]:
        raise Problem("LLDB made no hook for events: %s" % result.GetError())


def hush(debugger, quiet):
    """Whether stops are ours, and no events: LLDB prints a line for each call of the hook."""
    if SHOWS.get("hook"):
        debugger.HandleCommand("target stop-hook %s %s" % ("disable" if quiet else "enable",
                                                          SHOWS["hook"]))

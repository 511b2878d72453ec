# SPDX-License-Identifier: GPL-3.0-or-later
"""LLDB: its own breakpoint behind those of Python, see core/breaks.py, and what the user has set. LLDB calls us when
the process has come to a place of ours, and we may call functions on that thread then."""

import re
import sys

import lldb

from .core import breaks, control, marks, start
from .core.errors import Problem

# Names of LLDB's own, which 'breakpoint list' shows.
NAME = "probing_break_py"
STARTS = "probing_start_py"  # enabled while something waits for Python
BEGINS = "probing_begin_py"  # enabled for good: each process comes to it once or twice, before Python has started
BEGINNINGS = "Py_BytesMain", "_Py_UnixMain", "Py_Main", "Py_InitializeEx", "Py_InitializeFromConfig"
SHOWS = {}  # the face, the module in which LLDB looks for functions, the process that NAME is for
MARKS = []
FAILED = set()  # pids


def install(module, face):
    SHOWS.update(face=face, module=module.__name__)
    for each in on_stop, on_start, on_begin:
        setattr(module, each.__name__, each)


def own(target, name=NAME):
    return [each for each in target.breakpoint_iter() if each.MatchesName(name)]


def learn_names(target):
    """Has LLDB call us for breakpoints of these names: not within such a call, where LLDB 19 can learn no more."""
    known = lldb.SBStringList()
    target.GetBreakpointNames(known)
    names = {known.GetStringAtIndex(i) for i in range(known.GetSize())}
    for name, function in ((NAME, on_stop), (STARTS, on_start), (BEGINS, on_begin)):
        if name not in names:
            made = lldb.SBBreakpointName(target, name)
            made.SetScriptCallbackFunction("%s.%s" % (SHOWS["module"], function.__name__))


def forget_earlier(target):
    """One that an earlier process has left must not be in the agent of this one, which looks for it."""
    process = target.GetProcess().GetUniqueID()
    if SHOWS.get("process") != process:
        stop_no_more(target)
    SHOWS["process"] = process


def stop_at(target, address):
    if own(target):
        return
    learn_names(target)
    target.BreakpointCreateByAddress(address).AddName(NAME)


def remove(target, name):
    for each in own(target, name):
        target.BreakpointDelete(each.GetID())


def stop_no_more(target):
    remove(target, NAME)


def mark(face, wanted, told):
    made = marks.Mark()
    made.wanted, made.own = wanted, marks.new_number(MARKS, told)
    MARKS.append(made)
    if told:
        made.set(face.pid(), told)
    learn_names(face.target())
    if wanted.lasts and not (face.pid() and face.attached()) and not own(face.target(), BEGINS):
        face.target().BreakpointCreateByNames(list(BEGINNINGS), len(BEGINNINGS), *anywhere()).AddName(BEGINS)
    look(face)
    return made.own


def unmark(number):
    MARKS[:] = [each for each in MARKS if each.own != number]
    for name in () if MARKS else (STARTS, BEGINS):
        remove(SHOWS["face"].target(), name)


def anywhere():
    """No modules or files that the names have to be of."""
    return lldb.eFunctionNameTypeAuto, lldb.SBFileSpecList(), lldb.SBFileSpecList()


def look(face):
    """Has LLDB stop where the process starts code of a module, if something waits for that."""
    wanted, target = face.pid() not in (0, *FAILED) and bool(marks.waiting(MARKS, face)), face.target()
    if wanted and not own(target, STARTS):
        target.BreakpointCreateByName(start.RUNS_CODE).AddName(STARTS)
    for each in own(target, STARTS):
        each.SetEnabled(wanted)


def begin(frame):
    thread = frame.GetThread()
    thread.GetProcess().SetSelectedThread(thread)
    face = SHOWS["face"]
    face.begin(thread.GetProcess().GetTarget().GetDebugger(), None)
    return face


def on_begin(frame, *_):
    look(begin(frame))
    return False


def on_start(frame, *_):
    if control.Control.active:
        return False
    face = begin(frame)
    try:
        start.set_waiting(face, lambda name: call(face, name))
    except Problem as problem:
        if breaks.EARLY not in str(problem) and face.pid() not in FAILED:
            face.warn("breakpoints of Python are not set: %s" % problem)
            FAILED.add(face.pid())
    look(face)
    return False


def call(face, name):
    """A function of Python without arguments."""
    found = [each.GetSymbol().GetStartAddress().GetLoadAddress(face.target()) for each in face.target().FindSymbols(name)]
    if not found:
        raise Problem("the process has no %s()" % name)
    made = face.control()
    with made:
        return made.call(face.thread(), found[0], (), True)


def stopped_number(face, tid):
    """As the user knows it."""
    number = breaks.numbers_in(breaks.what_stopped(face, tid))[0]
    made = marks.by_known(MARKS, face.pid(), number)
    return made.own if made else number


def forget_reached(face):
    """Those that were to stop once, as the agent has."""
    for number in breaks.numbers_in(breaks.what_stopped(face, face.thread())):
        made = marks.by_known(MARKS, face.pid(), number)
        if made and made.wanted.once:
            MARKS.remove(made)


def on_stop(frame, _, internal):
    """LLDB calls it when a thread has stopped there, and has the process stay stopped if it says
    so."""
    face = begin(frame)
    try:
        if "probing" in sys.modules and not script_stops(face):
            return False
        print(breaks.show_stop(face, stopped_number(face, face.thread())), end="")
        forget_reached(face)
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

# SPDX-License-Identifier: GPL-3.0-or-later
"""LLDB: running something in its process, for core/control.py."""

import re

import lldb

from . import lldb_break
from .core import control
from .core.errors import Problem

LATE = re.compile("timed out|interrupted|was halted")
PATIENCE_US = 60 * 1000 * 1000  # with a function of the C library that is called


class LldbControl(control.Control):
    def __init__(self, debugger):
        self._debugger = debugger
        self._target = debugger.GetSelectedTarget()
        self._process = self._target.GetProcess()

    def __enter__(self):
        control.Control.active += 1
        lldb_break.forget_earlier(self._target)
        lldb_break.hush(self._debugger, True)
        thread = self._process.GetSelectedThread()
        self._selected = thread.GetThreadID(), thread.GetSelectedFrame().GetCFA()
        self._asynchronous = self._debugger.GetAsync()
        self._debugger.SetAsync(False)
        self._disabled = [each for each in list(self._target.breakpoint_iter()) +
                          list(self._target.watchpoint_iter()) if each.IsEnabled()]
        for each in self._disabled:
            each.SetEnabled(False)
        signals = self._process.GetUnixSignals()
        self._urgent = (signals.GetShouldStop(control.SIGURG),
                        signals.GetShouldSuppress(control.SIGURG),
                        signals.GetShouldNotify(control.SIGURG))
        self._handle(False, True, False)  # or it would end calls
        return self

    def __exit__(self, *_):
        control.Control.active -= 1
        lldb_break.hush(self._debugger, False)
        for each in self._disabled:
            if each.IsValid():
                each.SetEnabled(True)
        self._handle(*self._urgent)
        self._debugger.SetAsync(self._asynchronous)
        thread = self._process.GetThreadByID(self._selected[0])
        if not thread.IsValid():
            return
        self._process.SetSelectedThread(thread)
        for frame in thread:
            if frame.GetCFA() == self._selected[1]:
                thread.SetSelectedFrame(frame.GetFrameID())
                break

    def _handle(self, stop, suppress, notify):
        signals = self._process.GetUnixSignals()
        signals.SetShouldStop(control.SIGURG, stop)
        signals.SetShouldSuppress(control.SIGURG, suppress)
        signals.SetShouldNotify(control.SIGURG, notify)

    def obstacle(self):
        return None

    def write(self, address, data):
        error = lldb.SBError()
        self._process.WriteMemory(address, data, error)
        if error.Fail():
            raise Problem("lldb cannot write to the process: %s" % error.GetCString())

    def _thread(self, tid):
        thread = self._process.GetThreadByID(tid)
        if not thread.IsValid():
            raise Problem("thread %d has ended: try again" % tid)
        self._process.SetSelectedThread(thread)
        return thread

    def call(self, tid, address, arguments, alone, seconds=None):
        options = lldb.SBExpressionOptions()
        options.SetIgnoreBreakpoints(True)
        options.SetUnwindOnError(False)
        options.SetTryAllThreads(False)
        options.SetStopOthers(alone)
        options.SetTimeoutInMicroSeconds(int(seconds * 1e6) if seconds else PATIENCE_US)
        options.SetLanguage(lldb.eLanguageTypeC)
        options.SetSuppressPersistentResult(True)
        types = ", ".join(["long"] * len(arguments)) or "void"
        given = ", ".join("%dL" % argument for argument in arguments)
        value = self._thread(tid).GetFrameAtIndex(0).EvaluateExpression(
            "((long (*)(%s))%#x)(%s)" % (types, address, given), options)
        if value.GetError().Fail() and seconds and LATE.search(value.GetError().GetCString()):
            raise control.Late
        if value.GetError().Fail():
            raise Problem("lldb cannot call functions of this process (%s): behind a gdbserver gdb "
                          "can, and 'probing eval' in a shell of its machine"
                          % value.GetError().GetCString().replace("error: ", "").strip())
        return value.GetValueAsSigned()

    def run(self, tid, addresses, alone):
        thread = self._thread(tid)
        others = [other for other in self._process
                  if alone and other.GetThreadID() != tid and not other.IsSuspended()]
        here = [self._breakpoint(tid, address) for address in addresses]
        for other in others:
            other.Suspend()
        self._handle(True, True, False)
        try:
            error = self._process.Continue()
        finally:
            self._handle(False, True, False)
            for other in others:
                other.Resume()
            for each in here:
                self._target.BreakpointDelete(each.GetID())
        if error.Fail():
            raise Problem("lldb cannot let the process run: %s" % error.GetCString())
        return self._reason(thread, addresses)

    def _breakpoint(self, tid, address):
        made = self._target.BreakpointCreateByAddress(address)
        made.SetThreadID(tid)
        return made

    def _reason(self, thread, addresses):
        if self._process.GetState() != lldb.eStateStopped:
            return control.EXITED, ""
        if thread.GetFrameAtIndex(0).GetPC() in addresses and \
                thread.GetStopReason() == lldb.eStopReasonBreakpoint:
            return control.STOPPED, ""
        for each in [thread] + list(self._process):
            if each.GetStopReason() == lldb.eStopReasonSignal:
                number = each.GetStopReasonDataAtIndex(0)
                # LLDB stops threads by SIGSTOP when it attaches, and may report one only now; it
                # passes none on.
                if number in (control.SIGURG, control.SIGSTOP):
                    return control.TIMER, ""
                return control.OTHER, self._process.GetUnixSignals().GetSignalAsCString(number)
        return control.OTHER, "another stop"

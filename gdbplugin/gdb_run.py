# SPDX-License-Identifier: GPL-3.0-or-later
"""gdb: running something in its inferior, for core/control.py."""

import re

import gdb

from .core import control
from .core.errors import Problem

LOCKING = "scheduler-locking"
SILENCE = "suppress-cli-notifications"


class GdbControl(control.Control):
    def __init__(self, find_thread):
        self._find_thread = find_thread
        self._called = {}  # {thread: function}, the last one

    def __enter__(self):
        self._thread = gdb.selected_thread()
        try:
            self._frame = gdb.selected_frame()
        except gdb.error:
            self._frame = None
        self._locking = gdb.parameter(LOCKING)
        self._language = gdb.parameter("language")
        self._disabled = [b for b in gdb.breakpoints() if b.enabled]
        self._signal = self._how_urgent()
        for breakpoint in self._disabled:
            breakpoint.enabled = False
        self._silence = None
        try:
            self._silence = gdb.parameter(SILENCE)
            quiet("set %s on" % SILENCE)
        except RuntimeError:
            pass  # before gdb 12 the stops at signals are told
        quiet("set language c")
        quiet("handle SIGURG stop print nopass")
        return self

    def __exit__(self, *_):
        try:
            self._forget_faults()
        finally:
            self._put_back()

    def _forget_faults(self):
        """gdb has functions return to the stack, where nothing may be executed: the fault shows that
        they have. A gdbserver keeps that signal for the thread until it stops once more, and would
        kill the program with it at 'detach'."""
        connection = getattr(gdb.selected_inferior(), "connection", None)
        if getattr(connection, "type", None) == "native" or not gdb.selected_inferior().pid:
            return
        for tid, address in self._called.items():
            here = self._breakpoint(self._select(tid, True), address)
            try:
                quiet("call ((long (*)(void))%#x)()" % address)
            except gdb.error:
                pass  # it has not returned, since it stopped
            finally:
                here.delete()
            if gdb.newest_frame().pc() == address:
                quiet("with confirm off -- return")

    def _put_back(self):
        for breakpoint in self._disabled:
            if breakpoint.is_valid():
                breakpoint.enabled = True
        quiet("handle SIGURG %s" % self._signal)
        quiet("set language %s" % self._language)
        if self._silence is not None:
            quiet("set %s %s" % (SILENCE, "on" if self._silence else "off"))
        quiet("set %s %s" % (LOCKING, self._locking))
        if self._thread and self._thread.is_valid():
            self._thread.switch()
            if self._frame and self._frame.is_valid():
                self._frame.select()

    def _how_urgent(self):
        words = quiet("info signals SIGURG").splitlines()[-1].split()[1:4]
        return " ".join(("" if word == "Yes" else "no") + name
                        for word, name in zip(words, ("stop", "print", "pass")))

    def obstacle(self):
        if gdb.current_recording() is not None:
            return "the process is recorded, and what is replayed cannot be changed: " \
                   "'record stop' first"
        if gdb.parameter("non-stop"):
            return "in non-stop mode threads run on: start gdb without 'set non-stop on'"
        return None

    def write(self, address, data):
        gdb.selected_inferior().write_memory(address, data)

    def _select(self, tid, alone):
        thread = self._find_thread(tid)
        if thread is None:
            raise Problem("thread %d has ended: try again" % tid)
        thread.switch()
        gdb.newest_frame().select()
        quiet("set %s %s" % (LOCKING, "on" if alone else "off"))
        return thread

    def call(self, tid, address, arguments, alone):
        self._select(tid, alone)
        self._called[tid] = address
        types = ", ".join(["long"] * len(arguments)) or "void"
        given = ", ".join("%dL" % argument for argument in arguments)
        try:
            return int(gdb.parse_and_eval("((long (*)(%s))%#x)(%s)" % (types, address, given)))
        finally:
            # gdb goes on to show threads that were made meanwhile as running, until the next stop.
            if not all(thread.is_stopped() for thread in gdb.selected_inferior().threads()):
                quiet("stepi 0")

    def run(self, tid, address, alone):
        thread, events = self._select(tid, alone), []
        here = self._breakpoint(thread, address)
        try:
            gdb.events.stop.connect(events.append)
            try:
                quiet("continue")
            finally:
                gdb.events.stop.disconnect(events.append)
        finally:
            if here.is_valid():
                here.delete()
        if not gdb.selected_inferior().pid:
            return control.EXITED, ""
        return self._reason(tid, address, events[-1] if events else None)

    @staticmethod
    def _breakpoint(thread, address):
        made = gdb.Breakpoint("*%#x" % address, internal=True)
        made.silent = True
        made.thread = thread.global_num
        return made

    def _reason(self, tid, address, event):
        now = gdb.selected_thread()
        if (now.ptid[1] or now.ptid[0]) == tid and gdb.newest_frame().pc() == address:
            return control.STOPPED, ""
        if isinstance(event, gdb.SignalEvent):
            if event.stop_signal == "SIGURG":
                return control.TIMER, ""
            return control.OTHER, event.stop_signal
        return control.OTHER, "another stop"


def quiet(command):
    return gdb.execute(command, False, True)

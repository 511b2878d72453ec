# SPDX-License-Identifier: GPL-3.0-or-later
"""gdb: running something in its inferior, for core/control.py."""

import os
import signal
import threading

import gdb

from . import gdb_writes
from .core import control
from .core.debugger import status_field
from .core.errors import Problem
from .gdb_threads import Selection, find_thread, tid_of

SIGNALED = "was signaled while in a function called from GDB"
LOCKING = "scheduler-locking"
# With it gdb 16 resumes only a new thread, not its creator, behind a gdbserver older than gdb 15.
EVENTS = "remote thread-events-packet"
# Settings that are changed meanwhile, as far as this gdb has them, with their values.
SETTINGS = ((LOCKING, None), ("language", "c"), ("suppress-cli-notifications", "on"),
            ("print thread-events", "off"), (EVENTS, "off"))


RUNS = [0]  # how often the process was let run


def count(_):
    RUNS[0] += 1


gdb.events.cont.connect(count)

ACTIVE = []  # controls in their `with`


def enable(breakpoint, on):
    """Also for what is within a control, which enables at its end what it has disabled."""
    for each in ACTIVE:
        each.to_enable = [other for other in each.to_enable if other is not breakpoint]
    if on and ACTIVE:
        ACTIVE[0].to_enable.append(breakpoint)
    else:
        breakpoint.enabled = on


class GdbControl(control.Control):
    def __init__(self):
        self._selection = Selection()
        self._called = {}  # {thread: function}, the last one
        self._catch = None  # number of the catchpoint that stops at SIGURG

    def __enter__(self):
        control.Control.active += 1
        self._selection.__enter__()
        self.to_enable = [b for b in gdb.breakpoints() if b.enabled]
        self._signal = self._how_urgent()
        for breakpoint in self.to_enable:
            breakpoint.enabled = False
        ACTIVE.append(self)
        self._before = []
        for name, value in SETTINGS:
            try:
                self._before.append((name, gdb.parameter(name)))
            except RuntimeError:
                continue  # this gdb has none
            if value:
                quiet("set %s %s" % (name, value))
        quiet("handle SIGURG nostop noprint nopass")  # or it would end calls
        return self

    def __exit__(self, *_):
        try:
            self._forget_faults()
        finally:
            control.Control.active -= 1
            self._put_back()

    def _forget_faults(self):
        """gdb makes functions return to the stack, which is not executable: the fault shows that
        they have returned. A gdbserver keeps that signal until the thread's next stop, and would
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
        if self in ACTIVE:  # not, if its beginning has failed
            ACTIVE.remove(self)
        if self._catch:
            quiet("delete %s" % self._catch)
        for breakpoint in self.to_enable:
            if breakpoint.is_valid():
                breakpoint.enabled = True
        quiet("handle SIGURG %s" % self._signal)
        for name, value in self._before:
            quiet("set %s %s" % (name, {None: "auto", True: "on", False: "off"}.get(value, value)))
        self._selection.__exit__()

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
        return gdb_writes.obstacle(gdb.selected_inferior().pid)

    def write(self, address, data):
        gdb.selected_inferior().write_memory(address, data)

    def _select(self, tid, alone):
        thread = find_thread(tid)
        if thread is None:
            raise Problem("thread %d has ended: try again" % tid)
        thread.switch()
        gdb.newest_frame().select()
        quiet("set %s %s" % (LOCKING, "on" if alone else "off"))
        return thread

    def call(self, tid, address, arguments, alone, seconds=None):
        if seconds:
            return self._call_for(seconds, tid, address, arguments, alone)
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

    def _call_for(self, seconds, *call):
        """A Ctrl-C of the user, or ours when the time is over, leaves the thread in the function."""
        pid = gdb.selected_inferior().pid
        here = status_field(pid, "TracerPid") == os.getpid()
        timer = threading.Timer(seconds, os.kill, (pid, signal.SIGINT))
        if here:
            timer.start()
        try:
            return self.call(*call)
        except gdb.error as error:
            if SIGNALED not in str(error):
                raise
            raise control.Late
        finally:
            timer.cancel()

    def run(self, tid, addresses, alone):
        thread, events = self._select(tid, alone), []
        here = [self._breakpoint(thread, address) for address in addresses]
        self._stop_when_urgent(True)
        try:
            gdb.events.stop.connect(events.append)
            try:
                quiet("continue")
            finally:
                gdb.events.stop.disconnect(events.append)
        finally:
            self._stop_when_urgent(False)
            for each in here:
                if each.is_valid():
                    each.delete()
        if not gdb.selected_inferior().pid:
            return control.EXITED, ""
        return self._reason(tid, addresses, events[-1] if events else None)

    def _stop_when_urgent(self, on):
        """gdb prints a signal in spite of "silent" settings, unless a catchpoint stops at it."""
        if self._catch is None:
            quiet("catch signal SIGURG")
            self._catch = int(gdb.parse_and_eval("$bpnum"))
            quiet("commands %s\nsilent\nend" % self._catch)
        quiet("%s %s" % ("enable" if on else "disable", self._catch))
        quiet("handle SIGURG %s nopass" % ("stop print" if on else "nostop noprint"))

    @staticmethod
    def _breakpoint(thread, address):
        made = gdb.Breakpoint("*%#x" % address, internal=True)
        made.silent = True
        made.thread = thread.global_num
        return made

    def _reason(self, tid, addresses, event):
        now = gdb.selected_thread()
        if tid_of(now) == tid and gdb.newest_frame().pc() in addresses:
            return control.STOPPED, ""
        if isinstance(event, gdb.SignalEvent):
            if event.stop_signal == "SIGURG":
                quiet("queue-signal 0")  # the user's next command is not to pass it on
                return control.TIMER, ""
            return control.OTHER, event.stop_signal
        return control.OTHER, "another stop"


def quiet(command):
    return gdb.execute(command, False, True)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluating code in the process that a debugger holds: agent/eval/debugger.h from the other side.

The code runs on a thread of the agent, and takes the GIL as any other thread does, so it never runs
in the middle of something. As long as no thread holds the GIL, that thread alone runs. If a thread
holds it, all run until that one gives it up, which it does at a place where Python allows it; from
there on only ours.
"""

import os
import re
import struct
import time

from . import interpreter
from . import control as run
from .command import open_session
from .debugger import traced_by_us
from .errors import Interrupted, Problem
from .hijack import breathe, hijack, only

# struct prba_debugger, up to its code
_HEAD = struct.Struct("=IIIiIIQQQ")
VERSION = 5
CODE_MAX = 64 << 10
INTERRUPT_SECONDS, MOMENT_SECONDS = 5, 0.1
STATE_AT, ASKS_AT, LENGTH_AT = 8, 20, 24
EVALUATES, BREAKS, IN_FRAME, INTERRUPT = range(4)
NONE, IDLE, REQUESTED, WAITING, RUNNING, DONE = range(6)
# agent/protocol.h
_FRAME = struct.Struct("<IHH")
FRAME_TRACEBACK, FRAME_DONE = 68, 69
OK, RAISED = 0, 1


class Head:
    """What the agent says of its thread."""

    def __init__(self, debugger, address):
        data = debugger.read(address, _HEAD.size)
        if len(data) != _HEAD.size:
            raise Problem("the agent's memory cannot be read")
        (self.version, self.code_max, self.state, self.tid, self.stops, _, _, self.out,
         self.out_length) = _HEAD.unpack(data)


class Result:
    """The output of the code, in its original order."""

    def __init__(self, data):
        self.parts = []  # (type of frame, bytes)
        self.outcome, self.text, at = None, "", 0
        while at + _FRAME.size <= len(data):
            length, kind, _ = _FRAME.unpack_from(data, at)
            payload = data[at + _FRAME.size:at + _FRAME.size + length]
            at += _FRAME.size + length
            if kind == FRAME_DONE:
                self.outcome = struct.unpack_from("<I", payload)[0]
                self.text = payload[4:].decode("utf-8", "replace")
            else:
                self.parts.append((kind, payload.decode("utf-8", "replace")))
        if self.outcome is None:
            raise Problem("the agent's answer cannot be read: load plugin and agent of one version")


class Evaluation:
    """One, from its request to its result."""

    def __init__(self, debugger, control, known, everyone):
        self.debugger, self.control, self.known = debugger, control, known
        self.everyone = everyone  # all threads run meanwhile
        self.watched = None  # where the thread is whose frame the code is for, see core/stops.py
        self.waits_by_itself = True  # code of the user may
        self.base = known["probing_agent_debugger"]
        self.tid = None

    def head(self):
        return Head(self.debugger, self.base)

    def evaluate(self, code, seconds, asks=EVALUATES):
        """What the @code is: Python, or a request about breakpoints (core/breaks.py)."""
        self.waits_by_itself = asks != BREAKS
        self._hush(True)
        try:
            self._prepare(seconds)
            self._request(code, asks)
            return self._wait(seconds)
        finally:
            self._hush(False)

    def evaluate_here(self, code, seconds, asks, tid):
        """The same on that thread, which holds the GIL, and then is where it was. Only its own code runs: what
        needs another thread does not end."""
        self._hush(True)
        try:
            thread = only(self.debugger, self.control, tid)
            if self.head().state == NONE:
                self._start(thread)
            self._put(code, asks)
            stops = self.head().stops
            value = thread.call_for(seconds, self.known["probing_agent_debugger_here"])
        except run.Late:
            self._end_here(tid, stops, seconds)
        finally:
            self._hush(False)
        if value < 0:
            raise Problem("the code of an earlier 'probing eval' has not ended: let the process run until it "
                          "has")
        head = self.head()
        return Result(self.debugger.read(head.out, head.out_length))

    def _end_here(self, tid, stops, seconds):
        """Interrupts code that runs on a thread of the program, and waits for its end. No function may be
        called on that thread now, so a thread of the agent does it."""
        said, until = "the code has not ended within %g s, or before a Ctrl-C" % seconds, time.monotonic()
        until += INTERRUPT_SECONDS
        self.control.write(self.base + ASKS_AT, struct.pack("=I", INTERRUPT))
        self.control.write(self.base + STATE_AT, struct.pack("=I", REQUESTED))
        while traced_by_us(self.debugger.pid()) and self.head().stops == stops and time.monotonic() < until:
            which, _ = breathe(self.debugger, self.control, tid, MOMENT_SECONDS)
            if which == run.EXITED:
                raise Problem("the process ended meanwhile")
        if self.head().stops == stops:
            raise Problem("%s, nor when it was interrupted; thread %d is in it: let it run until %s has stopped "
                          "it again, else it dies" % (said, tid, self.debugger.name))
        raise Problem("%s, and was interrupted" % said)

    def _hush(self, quiet):
        """Whether breakpoints of Python do not count: what runs, runs for us."""
        if self.debugger.pid():
            self.control.write(self.known["probing_agent_break_quiet"], struct.pack("=I", quiet))

    def _prepare(self, seconds):
        """Has a thread of the agent that waits for code."""
        head = self.head()
        if head.state != NONE:
            self.tid = self.debugger.evaluators.get(self.debugger.pid(), head.tid)
            self._let_earlier_code_end(seconds)
            return
        self._start(hijack(self.debugger, self.control))

    def _start(self, thread):
        before = set(self.debugger.tids())
        value = thread.call(self.known["probing_agent_debugger_start"])
        if value < 0:
            raise Problem("the process can start no thread (%s): let it run for a moment, and try "
                          "again" % os.strerror(-value))
        made = sorted(set(self.debugger.tids()) - before)
        if not made:
            raise Problem("%s does not see the agent's thread: let the process run for a moment, "
                          "and try again" % self.debugger.name)
        # Numbers of the process itself differ where it has a namespace of its own.
        tid = self.head().tid
        self.tid = tid if tid in made else made[-1]
        self.debugger.evaluators[self.debugger.pid()] = self.tid

    def _let_earlier_code_end(self, seconds):
        """Code that was given up was interrupted, too, but ends only when the process runs: its own
        thread, and the interrupting thread, which needs the GIL. So all threads run."""
        until = time.monotonic() + seconds
        if self.head().state not in (IDLE, DONE):
            self._hijacked("probing_agent_debugger_start")  # its timer may have stopped
        while self.head().state not in (IDLE, DONE):
            which, text = self._run(False)
            if which == run.OTHER and text == "SIGINT":
                raise Interrupted("interrupted: nothing was run")
            if which == run.OTHER:
                raise Problem("the process was stopped by %s before the code of an earlier "
                              "'probing eval' had ended, and nothing was run" % text)
            if time.monotonic() > until and self.head().state not in (IDLE, DONE):
                raise Problem("the code of an earlier 'probing eval' has not ended within %g s, and "
                              "nothing was run: let the process run until it has" % seconds)

    def _run(self, alone):
        """Until something stops it; a Ctrl-C of ours does so as SIGINT."""
        self.control.hijacked = None
        try:
            which, text = self.control.run(self.tid, (), alone)
        except KeyboardInterrupt:
            return run.OTHER, "SIGINT"
        if which == run.EXITED:
            raise Problem("the process ended meanwhile")
        return which, text

    def _hijacked(self, name):
        return hijack(self.debugger, self.control).call(self.known[name])

    def _request(self, code, asks):
        head = self.head()
        if head.version != VERSION:
            raise Problem("the agent in the process is of another version: 'probing eject' of a "
                          "shell takes it out")
        self._put(code, asks)
        self.control.write(self.base + STATE_AT, struct.pack("=I", REQUESTED))

    def _hide_frame(self):
        """The code is about to begin, and its thread has gone on: "-" before the number of the frame has
        the agent not look for it (agent/eval/bootstrap.py)."""
        code = self.debugger.read(self.base + _HEAD.size, 128)
        number = code.index(b"\t", code.index(b"\t") + 1) + 1
        self.control.write(self.base + _HEAD.size + number, b"-")

    def _put(self, code, asks):
        if len(code) > CODE_MAX:
            raise Problem("the code has %d bytes, and at most %d can be evaluated here" % (len(code), CODE_MAX))
        self.control.write(self.base + _HEAD.size, code)
        self.control.write(self.base + ASKS_AT, struct.pack("=I", asks))
        self.control.write(self.base + LENGTH_AT, struct.pack("=Q", len(code)))

    def _nobody_is_needed(self):
        """Whether the interpreter is free without any other thread's doing."""
        with open_session(self.debugger) as session:
            threads = interpreter.read_threads(session)
            if interpreter.is_free_threaded(session) and not all(t.waits for t in threads):
                # Stopping the world waits for each attached thread.
                self.everyone = True
        return interpreter.holder(threads) is None

    def _needs_others(self):
        """It waits for the GIL, if another thread requested the GIL just before that thread was
        stopped: then ours drops it, and goes on only when the other one has held it. Or our thread
        holds the GIL, so that no Python code can run, or has left Python for good, and waits for a
        thread that was stopped in the middle of a wait, for instance to hand it the GIL. Our thread
        waits for nothing else while it runs no code of the user. In a free-threaded build it may
        wait until Python has stopped all threads."""
        with open_session(self.debugger) as session:
            ours = [t for t in interpreter.read_threads(session) if t.tid == self.tid]
            if interpreter.is_free_threaded(session) and any(t.waits for t in ours):
                self.everyone = True
        return not ours or any(t.gil == "waits" or t.waits and
                               (t.gil == "holds" or t.waits_in_c or not self.waits_by_itself)
                               for t in ours)

    def _wait(self, seconds):
        """Lets it run until there is a result."""
        until = time.monotonic() + seconds
        alone = self._nobody_is_needed() and not self.everyone
        stops = self.head().stops
        while True:
            which, text = self._run(alone)
            head = self.head()
            if which == run.TIMER and head.state == DONE:
                return Result(self.debugger.read(head.out, head.out_length))
            if which == run.TIMER and head.stops != stops:
                stops = head.stops
                if self.watched and self.watched.is_left():
                    self._hide_frame()
                alone = not self.everyone
            elif which == run.TIMER and time.monotonic() < until:
                needed = head.state != RUNNING or self._needs_others()
                alone = not needed and not self.everyone
            else:
                self._give_up(which, text, head.state, seconds)

    def _give_up(self, which, text, state, seconds):
        value = self._hijacked("probing_agent_debugger_interrupt")
        if value < 0:
            raise Problem("the code has not ended and cannot be interrupted now (%s): let the "
                          "process run for a moment; 'probing eject' of a shell ends it"
                          % os.strerror(-value))
        if which == run.OTHER and text == "SIGINT":
            if state == RUNNING:
                raise Interrupted("interrupted: the code ends as soon as the process runs")
            raise Interrupted("interrupted: nothing was run")
        if which == run.OTHER:
            raise Problem("the process was stopped by %s before the code had ended, which it does "
                          "as soon as the process runs" % text)
        if state == RUNNING:
            raise Problem("the code has not ended within %g s%s; it is interrupted as soon as the "
                          "process runs" % (seconds, "" if self.everyone else
                                            ", while all other threads stood: 'probing eval --all' "
                                            "lets them run"))
        raise Problem("the interpreter was not free within %g s, and nothing was run: 'probing "
                      "threads' shows who holds the GIL" % seconds)


def describe_exception(line):
    """What is said after a traceback, whose last line this is and was shown."""
    missing = re.match(r"NameError: name '(\w+)' is not defined", line)
    if missing:
        return ("the code raised NameError: if '%s' is a variable of another frame, 'probing print' "
                "shows it there" % missing.group(1))
    return "the code raised " + line.partition(":")[0]


def show(debugger, result):
    """Prints what came, and raises what went wrong."""
    text = "".join(part for _, part in result.parts)
    if text:
        debugger.write(text if text.endswith("\n") else text + "\n")
    if result.outcome == RAISED:
        trace = "".join(part for kind, part in result.parts if kind == FRAME_TRACEBACK)
        raise Problem(describe_exception((trace.strip().splitlines() or ["an exception"])[-1]))
    if result.outcome != OK or result.text:
        raise Problem(result.text or "the code was interrupted")

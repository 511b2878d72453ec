# SPDX-License-Identifier: GPL-3.0-or-later
"""Breakpoints at lines of Python: agent/trace/breaks.py from the other side.

The agent has the interpreter call it at these lines, and calls an empty function of its own then,
at which the debugger has a real breakpoint. So the debugger does nothing at lines without one. Before
Python 3.12 the interpreter has to trace for that, which costs time.
"""

import ast

from . import agent, evaluator, marks, stops, values
from .command import open_session
from .debugger import FIRST_ARGUMENT
from .errors import Problem
from .frames import find_frame, read_selected, source_line
from .stacks import frame_name, frame_place
from .text import safe

SECONDS = 60  # all objects of the process are looked at
FIRST = (3, 6)  # version of Python
UNTRACED = (3, 12)  # the first that need not be
# How many times as long it takes: recursive calls, a loop, calls of functions of C, lines of a function
# that has one. From docs/breaks.tsv, which `make bench-breaks` makes.
COSTS = {
    (3, 6): (1.4, 1.0, 1.1, 3),
    (3, 7): (1.5, 1.0, 1.2, 3),
    (3, 8): (1.6, 1.0, 1.4, 3),
    (3, 9): (1.6, 1.0, 1.6, 3),
    (3, 10): (2.0, 1.4, 2.1, 4),
    (3, 11): (4.5, 2.0, 5.6, 5),
}
LISTS_BADLY = ("3.13.0",)  # gc.get_objects() during a collection of a free-threaded build
SHOWN = 3  # places of a breakpoint
MOST = 4  # functions of one name that are listed
TEXT_MAX = 4096
STEP = "0"  # the number that the agent has for the end of one
INTO, OVER, OUT = 1, 2, 3
_IDENT = "SELECT ident FROM python.threads WHERE tid = %d"
_STARTED = "SELECT id FROM python.interpreters"
WAITS = "%s, which waits for Python to start"
EARLY = "not initialised"  # what is said then
_VERSION = "SELECT python_version, free_threaded FROM process.info"


def version_of(text):
    """(3, 11) of 3.11.2."""
    return tuple(int(part) for part in text.split(".")[:2])


def check(debugger, control, command="break-py"):
    """Refuses what can have none. The version."""
    agent.check(debugger, control, command)
    with open_session(debugger) as session:
        rows = session.query(_VERSION)
    text = rows[0]["python_version"] if rows else None
    if not text:
        raise Problem("%s: there is no Python in this process" % command)
    if version_of(text) < FIRST:
        raise Problem("%s needs Python 3.6 or later, and this is %s, whose code cannot be traced "
                      "in this way" % (command, text))
    if rows[0]["free_threaded"] and text in LISTS_BADLY:
        raise Problem("%s: free-threaded Python %s may die when its objects are listed, which "
                      "3.13.1 has mended: run the program with that" % (command, text))
    return version_of(text)


def identity(debugger):
    """(what Python knows the selected thread by, or 0; its tid)"""
    tid = debugger.thread()
    with open_session(debugger) as session:
        rows = session.query(_IDENT % tid) if tid else []
    return (rows[0]["ident"] or 0) if rows else 0, tid


def run_to(debugger, stride, line="0"):
    """Has the selected thread run to a line of Python, and all others with it."""
    control = debugger.control()
    check(debugger, control)
    ident, tid = identity(debugger)
    if not tid:
        raise Problem("no thread is selected")
    with control:
        Breaks(debugger, control).step(ident, tid, stride, line)
    debugger.resume()


def cost(version, catches=False):
    """Lines about what a breakpoint, or one for exceptions, costs the program in that version; none: next to
    nothing."""
    if version >= UNTRACED:
        return []
    return ["  Python %d.%d is traced for this, which slows all threads down until the last breakpoint is "
            "deleted:" % version,
            "  calls take about %.1f times as long, calls of functions of C %.1f times, loops %.1f times, "
            "%s" % (COSTS[version][0], COSTS[version][2], COSTS[version][1], "all" if catches else "lines of"),
            "  %s %d times" % ("lines" if catches else "a function that has a breakpoint", COSTS[version][3])]


class Wanted:
    """A breakpoint as the user asked for it, which each process that is run gets: the words of the request to
    the agent, once as text. @lasts: not of a thread that there was."""

    def __init__(self, words, text, once=False, lasts=True):
        self.words, self.text, self.once, self.lasts = words, text, once, lasts


def wanted(debugger, file, place, condition, limits):
    """@place: a line of the file, or a function of the module; @limits: once, thread, ignored times."""
    once, thread, ignore = limits or (False, False, 0)
    ident = identity(debugger)[0] if thread else 0
    if thread and not ident:
        raise Problem("break-py: Python does not know the selected thread")
    kind = "add" if isinstance(place, int) else "function"
    text = "%s%s%s" % (file, ":" if file else "", place) + (" if " + condition if condition else "")
    return Wanted((kind, file, str(place), condition, "1" if once else "", str(ident), str(ignore)), text, once,
                  not thread)


def wanted_catch(name, uncaught):
    text = (name or "any exception") + (" that is not handled" if uncaught else "")
    return Wanted(("catch", name, "1" if uncaught else "", ""), text)


def waits(debugger, wanted):
    """Lists it until Python has started: a line about it."""
    return "Python breakpoint %d at %s" % (debugger.mark(wanted, None), WAITS % safe(wanted.text))


def is_early(debugger):
    """Whether breakpoints have to wait for Python."""
    if not debugger.pid():
        return debugger.core_path() is None
    try:
        with open_session(debugger) as session:
            if not session.query(_VERSION)[0]["python_version"]:
                return not debugger.attached()
            session.query(_STARTED)
    except Problem as problem:
        return EARLY in str(problem)
    return False


class Breaks:
    """The breakpoints of the process; use within its Control. @here: a thread at a place where any code may run,
    so that no other has to."""

    def __init__(self, debugger, control, here=None):
        self.debugger, self.control, self.here = debugger, control, here

    def _ask(self, known, *words):
        request = "\n".join(words).encode("utf-8", "surrogateescape")
        evaluation = evaluator.Evaluation(self.debugger, self.control, known, False)
        result = evaluation.evaluate_here(request, SECONDS, evaluator.BREAKS, self.here) if self.here else \
            evaluation.evaluate(request, SECONDS, evaluator.BREAKS)
        if result.outcome != evaluator.OK or not result.parts:
            raise Problem("break-py: %s" % (result.text or "the agent gave no answer"))
        return ast.literal_eval("".join(text for _, text in result.parts))

    def set(self, wanted, number=0):
        """Sets one, which the agent numbers, so if it can."""
        known, place = agent.need(self.debugger, self.control), wanted.words[2]
        told = self._ask(known, *wanted.words, str(number))
        if "near" in told:
            raise Problem("line %s of %s has no code that can be reached any more; lines nearby "
                          "that have: %s" % (place, ", ".join(map(safe, told["files"])),
                                             ", ".join(map(str, told["near"]))))
        if told.get("several"):
            raise Problem("there are %d functions %s; name more of it, or the line of one: %s, …"
                          % (len(told["several"]), safe(place), listed_places(told["several"])))
        return self._told(known, told)

    def add(self, wanted):
        """The same, as the user knows it."""
        told = self.set(wanted)
        return dict(told, number=self.debugger.mark(wanted, told))

    def _told(self, known, told):
        if "problem" in told:
            raise Problem(told["problem"])
        self.debugger.stop_at(known[agent.BREAK_STOPS])
        return told

    def step(self, ident, tid, stride, line):
        """The thread is to stop at its next line."""
        known = agent.need(self.debugger, self.control)
        self._told(known, self._ask(known, "step", str(ident), str(tid), str(stride), line))

    def make_raise(self, ident, tid, expression):
        """The thread raises it at its line when it goes on."""
        known = agent.find(self.debugger)
        told = self._ask(known, "raise", str(ident), str(tid), expression) if known else {
            "problem": "the thread is not at a breakpoint of Python"}
        if told:
            raise Problem("raise: %s" % told["problem"])

    def _of(self, number):
        """(what the agent exports, its number of the breakpoint)"""
        known = agent.find(self.debugger)
        own = marks.own_number(self.debugger.marks(), self.debugger.pid(), number)
        if own is None or not known:
            raise Problem("there is no breakpoint %d: 'probing break-py' lists them" % number)
        return known, own

    def _shown(self, told):
        """The same, as the user knows it."""
        return marks.shown(self.debugger.marks(), self.debugger.pid(), told)

    def change(self, number, what, value=""):
        known, own = self._of(number)
        told = self._ask(known, "set", str(own), what, value)
        if told is None:
            raise Problem("there is no breakpoint %d: 'probing break-py' lists them" % number)
        return self._shown(told)

    def delete_all(self):
        """Those that were there."""
        return [self.delete(each["number"]) for each in self.list()]

    def delete(self, number):
        known, own = self._of(number)
        told = self._ask(known, "delete", str(own))
        if told is None:
            raise Problem("there is no breakpoint %d: 'probing break-py' lists them" % number)
        told = self._shown(told)
        self.debugger.unmark(told["number"])
        if not self._ask(known, "list"):
            self.debugger.stop_no_more()
        return told

    def trace(self, *words):
        """A request about logpoints (agent/trace/logpoints.py): what it prints."""
        known = agent.need(self.debugger, self.control) if words[0] in ("log", "calls") else \
            agent.find(self.debugger)
        if not known:
            return "no logpoints\n"
        request = "\n".join(("trace",) + words).encode("utf-8", "surrogateescape")
        result = evaluator.Evaluation(self.debugger, self.control, known, False).evaluate(
            request, SECONDS, evaluator.BREAKS)
        text = "".join(part for _, part in result.parts)
        if result.outcome != evaluator.OK or not text:
            raise Problem("trace: %s" % (text.strip() or result.text or "the agent gave no answer"))
        return text

    def list(self):
        """All that are in the process, which an earlier debugger may have left."""
        known = agent.find(self.debugger)
        for number in self.debugger.deleted() if known else ():
            self._ask(known, "delete", str(number))
        found = self._ask(known, "list") if known else []
        if found:
            self.debugger.stop_at(known[agent.BREAK_STOPS])
        return [self._shown(each) for each in found]


def listed_places(places):
    return ", ".join("%s:%d" % (safe(file), line) for file, line in places[:MOST])


def described(told):
    """Lines about a breakpoint."""
    text = "%s:%d" % (safe(told["file"]), told["line"]) if told["line"] else safe(told["file"])
    if told["others"]:
        all_of_them = sorted(told["others"] + [(told["file"], told["line"])])
        text = "%d places: %s%s" % (len(all_of_them), listed_places(all_of_them),
                                    ", …" if len(all_of_them) > MOST else "")
    if told["condition"]:
        text += " if " + safe(told["condition"])
    places, files = told["places"], sorted({file for file, _ in told["places"]})
    if not places and told["line"]:
        text += ", of which no code was found so far"
    names = [safe(name) for _, name in places[:SHOWN]]
    if len(places) > SHOWN:
        names.append("%d more" % (len(places) - SHOWN))
    if places:
        text += " in %s" % ", ".join(names)
    lines = [text]
    if len(files) > 1:
        lines[0] += ", of %d files" % len(files)
        lines += ["  " + safe(file) for file in files]
    if told["deaf"]:
        lines.append("  %d thread%s a tracer or profiler of the program's own, and may not stop"
                     % (told["deaf"], " has" if told["deaf"] == 1 else "s have"))
    if told["lost"]:
        lines.append("  and %d more of this line's code, in which it does not stop" % told["lost"])
    return lines


def what_stopped(debugger, tid):
    """What the agent says of the stop of this thread."""
    name = FIRST_ARGUMENT[debugger.machine()]
    address = debugger.registers(tid, [name]).get(name, 0)
    data = debugger.read(address, TEXT_MAX) or debugger.read(address, 64)
    return data.split(b"\0")[0].decode("utf-8", "replace")


def returned(debugger):
    """The address of what was returned to the innermost frame, where 'probing finish' has stopped the selected
    thread; None. The agent keeps the object until the thread goes on."""
    tid = debugger.thread()
    if not tid or not stops.at_python_breakpoint(debugger):
        return None
    number, _, what = what_stopped(debugger, tid).partition(" ")
    return int(what[1:], 16) if number == STEP and what.startswith("@") else None


def numbers_in(text):
    """Of the breakpoints that the thread has come to: "1+3 …"."""
    return [int(each) for each in text.split()[0].split("+" if isinstance(text, str) else b"+")]


def show_stop(debugger, shown=None):
    """What is printed when the selected thread has come to one, which the user may know by another number."""
    number, _, problem = what_stopped(debugger, debugger.thread()).partition(" ")
    number = number.partition("+")[0] if shown is None or number == STEP else str(shown)
    lines = []
    with open_session(debugger) as session:
        frame = find_frame(read_selected(session, debugger), 0)
        lines.append("%s%s  %s" % ("" if number == STEP else "Python breakpoint %s, " % safe(number),
                                   frame_name(frame), frame_place(frame)))
        text = source_line(session, frame)
        if text:
            lines.append("%-4d %s" % (frame["lineno"], safe(text)))
    if problem.startswith("="):  # of catch-py
        lines.append(safe(problem[1:]))
    elif number == STEP and problem.startswith("@"):
        lines.append("returned %s" % values.Values(debugger).text(int(problem[1:], 16)))
    elif problem:
        lines.append("its condition raised %s" % safe(problem))
    return "\n".join(lines) + "\n"

# SPDX-License-Identifier: GPL-3.0-or-later
"""probing break-py"""

import re

from .. import agent, breaks, marks, stops
from ..command import Command, Option, number
from ..errors import Problem
from ..text import safe

SWITCHES = "enable", "disable"
FILE_NAME = re.compile(r"\.py$")  # without a line


class BreakPy(Command):
    name = "break-py"
    summary = "Stop when a line or function of Python is reached; without one, list where."
    usage = "[PLACE [if CONDITION]] [OPTIONS]"
    argument = "place"
    description = """
PLACE is FILE:LINE, FUNCTION or MODULE:FUNCTION; FILE is a path, or the end of one:
  probing break-py train.py:22
  probing break-py models/layers.py:140 if len(batch) > 8
  probing break-py Trainer.step
  probing break-py json.decoder:JSONDecoder.decode
A function stops at the first line of its code, each time it is called.
The process goes on as ever until a thread comes to the line; it is stopped as at any breakpoint
then, and 'probing backtrace', 'probing locals' and 'probing eval' show where. CONDITION is Python,
evaluated in the process with the variables of that line; if it raises, the process is stopped, too.
Code of the file that is loaded later counts.

The agent is loaded first if it is not there, and has the interpreter call it at these lines only.
Before Python 3.12 it has to trace all threads for that, which slows them down until the last one is
deleted; the command says how much. Those left when the debugger goes are taken back by the process
itself, at the latest when it comes to one."""
    options = (Option("delete", "delete the one with that number; without one, all", "NUMBER", "d", bare=True),
               Option("enable", "let it stop again", "NUMBER"),
               Option("disable", "keep it, without stopping there", "NUMBER"),
               Option("ignore", "do not stop for that many times; of PLACE, or of a number in its place", "COUNT"),
               Option("once", "delete it when it is reached", short="o"),
               Option("thread", "only in the selected thread", short="t"))
    once = False

    def run(self, debugger, words):
        options, rest = self.parse(words)
        place, what = None, [name for name in ("delete", "enable", "disable") if name in options]
        if "ignore" in options and rest.isdigit():
            what.append("ignore")
        elif what:
            self.no_more(rest)
        elif rest:
            place = read_place(rest)
        which = self.numbered(what[0], options, rest) if what else None
        limits = "once" in options or self.once, "thread" in options, number(options.get("ignore", "0"), "count")
        lines = self.early(debugger, place, limits, what[:1], which) if breaks.is_early(debugger) else \
            self.now(debugger, place, limits, what[:1], which, options)
        debugger.write("\n".join(lines or ["no breakpoints of Python"]) + "\n")

    @staticmethod
    def early(debugger, place, limits, what, which):
        """Python has not started: nothing can run."""
        if place and limits[1]:
            raise Problem("break-py: there is no thread of Python yet")
        if place:
            return [breaks.waits(debugger, breaks.wanted(debugger, *place, limits))]
        listed = marks.waiting(debugger.marks(), debugger)
        if what and what != ["delete"]:
            raise Problem("break-py: --%s needs Python, which has not started%s" % (
                what[0], ": gdb's own '%s' can change breakpoints" % what[0] if debugger.name == "gdb" else ""))
        if not what:
            return waiting_lines(debugger)
        gone = [each.own for each in listed if which in (None, each.own)]
        if which is not None and not gone:
            raise Problem("there is no breakpoint %d: 'probing break-py' lists them" % which)
        for each in gone:
            debugger.unmark(each)
        return ["breakpoint %d deleted" % each for each in gone]

    def now(self, debugger, place, limits, what, which, options):
        control = debugger.control()
        version = breaks.check(debugger, control)
        if place or agent.find(debugger):
            stops.check(debugger, control, self.name)
        if what and what[0] in SWITCHES:
            debugger.switch(which, what[0] == SWITCHES[0])
        with stops.kept(debugger, control):
            known = breaks.Breaks(debugger, control)
            if what:
                found = self.changed(known, what[0], which, options)
            elif place:
                found = [known.add(breaks.wanted(debugger, *place, limits))]
            else:
                found = known.list()
        if place:
            return told_lines(found[0], "Python breakpoint %d at ") + breaks.cost(version)
        if what == ["delete"]:
            return ["breakpoint %d deleted" % each["number"] for each in found]
        lines = [line for each in found for line in listed(debugger, each)]
        return lines if what else lines + waiting_lines(debugger)

    @staticmethod
    def numbered(what, options, rest):
        """The number of the breakpoint to be changed; None: all."""
        text = rest if what == "ignore" else options[what]
        return None if what == "delete" and text in ("all", True) else number(text, "breakpoint")

    @staticmethod
    def changed(known, what, which, options):
        if what == "delete":
            return known.delete_all() if which is None else [known.delete(which)]
        return [known.change(which, what, str(number(options[what], "count")) if what == "ignore" else "")]


def waiting_lines(debugger):
    return ["%-3d %s" % (each.own, breaks.WAITS % safe(each.wanted.text))
            for each in marks.waiting(debugger.marks(), debugger)]


def read_place(text):
    """(file, line, condition), or (module or "", function, condition)"""
    match = re.match(r"(.+?):(\d+)(?:\s+if\s+(\S.*?))?\s*$", text) or \
        re.match(r"(?:([\w.]+):)?([^\W\d][\w.]*)(?:\s+if\s+(\S.*?))?\s*$", text)
    line = match and match.group(2).isdigit()
    if not match or line and not int(match.group(2)) or FILE_NAME.search(text.split(" if ")[0]):
        raise Problem("'%s' is no place: for example 'probing break-py train.py:22', 'probing "
                      "break-py train.py:22 if step > 100' or 'probing break-py Trainer.step'" % text)
    condition = match.group(3) or ""
    if condition:
        try:
            compile(condition, "<condition>", "eval")
        except SyntaxError as error:
            raise Problem("'%s' is no condition: %s" % (condition, error.msg))
    return match.group(1) or "", int(match.group(2)) if line else match.group(2), condition


def told_lines(told, beginning):
    lines = breaks.described(told)
    return [beginning % told["number"] + lines[0]] + lines[1:]


def listed(debugger, told):
    hits = "reached %d time%s" % (told["hits"], "" if told["hits"] == 1 else "s")
    hits += ", %d more are ignored" % told["ignore"] if told["ignore"] else ""
    hits += ", once" if told["once"] else ""
    hits += ", in one thread" if told["one_thread"] else ""
    hits += "" if told["enabled"] and debugger.is_on(told["number"]) else ", disabled"
    lines = told_lines(told, "%-3d ")
    return [lines[0] + "; " + hits] + lines[1:]


COMMAND = BreakPy

# SPDX-License-Identifier: GPL-3.0-or-later
"""probing trace"""

import re

from .. import agent, breaks, stops
from ..command import Command, Option, number
from ..errors import Problem

RATE, MAX_RATE = "1000", 10 ** 9  # rows a second
PLACE = re.compile(r"(\S+):(\d+)\s+(\S.*)$")


class Trace(Command):
    name = "trace"
    summary = "Record values at a line, or calls of a function, without stopping anything."
    usage = "FILE:LINE EXPRESSIONS | --calls FUNCTION | list | clear [NUMBER]"
    description = """
A logpoint: each time the line runs, the values are recorded in python.trace_variables; of --calls, when
each call begins and ends, its arguments and its result, in python.trace_event. It stays when the debugger
leaves, until 'probing trace clear' here or in a shell:
  probing trace train.py:22 loss, step
  probing trace --calls Model.step
  probing query SELECT * FROM python.trace_variables
The agent is loaded first if it is not there. Before Python 3.12 all threads are traced meanwhile, which
slows them down."""
    options = (Option("calls", "calls of the functions with this name", "FUNCTION"),
               Option("rate", "record so often a second at most (%s)" % RATE, "N"))

    def run(self, debugger, words):
        options, rest = self.parse(words)
        request = read_request(options, rest.strip())
        control = debugger.control()
        breaks.check(debugger, control, self.name)
        if request[0] in ("log", "calls") or agent.find(debugger):
            stops.check(debugger, control, self.name)
        with stops.kept(debugger, control):
            text = breaks.Breaks(debugger, control).trace(*request)
        debugger.write(text)


def read_request(options, text):
    """What agent/trace/logpoints.py takes, as lines."""
    rate = options.get("rate", RATE)
    if not 0 < number(rate, "rate") <= MAX_RATE:
        raise Problem("'%s' is no rate" % rate)
    end = ["", rate, "0", "k"] if "calls" in options else [rate, "0", "k"]
    if "calls" in options:
        if text:
            raise Problem("'probing trace --calls' takes the name of a function only")
        return ["calls", options["calls"]] + end
    if text == "list":
        return ["list"]
    if re.match(r"clear(\s+\d+)?$", text):
        return ["clear", text[len("clear"):].strip()]
    match = PLACE.match(text)
    if not match:
        raise Problem("what is to be recorded, and where? For example 'probing trace train.py:22 loss, step', "
                      "'probing trace --calls Model.step' or 'probing trace list'")
    return ["log", match.group(1), match.group(2), "", match.group(3)] + end


COMMAND = Trace

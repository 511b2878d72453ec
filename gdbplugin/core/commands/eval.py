# SPDX-License-Identifier: GPL-3.0-or-later
"""probing eval"""

from .. import agent, breaks, evaluator, interpreter
from ..command import Command, Option, number, open_session, read_file
from ..errors import Problem
from ..frames import find_frame, read_selected, selected

SECONDS = 10


class Eval(Command):
    name = "eval"
    summary = "Run Python code in the process, and print what it prints and its value."
    usage = "[OPTIONS] CODE"
    aliases = ("e",)
    argument = "expression"
    description = """
The code is what follows, to the end of the line, and sees the variables of the selected frame and
of its module; those of __main__ if there is no frame, or it is gone when the code begins:
  probing eval len(model.layers)
  probing eval import gc; gc.get_count()
It runs on a thread of its own that the agent has, which is loaded first if it is not there, and
takes the GIL as any other thread does. All other threads stay stopped where they are; only if one
of them holds the GIL they run until it gives it up, and in a free-threaded build if one computes.
Code that needs another thread is ended."""
    options = (Option("all", "all threads run while the code does", short="a"),
               Option("file", "run a file, also with several lines", "FILE", "f", "file"),
               Option("frame", "in this frame, by its number in 'probing backtrace'", "N"),
               Option("timeout", "how long it may take, %d at first" % SECONDS, "SECONDS", "t"))

    def run(self, debugger, words):
        options, code = self.parse(words)
        if "file" in options:
            self.no_more(code)
            code = read_file(options["file"])
        if not code:
            raise Problem("there is no code: for example 'probing eval 1 + 1', or 'probing eval "
                          "--file FILE' for several lines")
        seconds = read_seconds(options.get("timeout", str(SECONDS)))
        control = debugger.control()
        agent.check(debugger, control, "eval")
        where, frame = debugger.position(), selected(debugger)
        head = frame_head(debugger, options.get("frame"), frame)
        text = (head + code).encode("utf-8", "surrogateescape")
        with control:
            known = agent.need(debugger, control)
            result = evaluator.Evaluation(debugger, control, known, "all" in options).evaluate(
                text, seconds, evaluator.IN_FRAME if head else evaluator.EVALUATES)
        if debugger.position() != where:
            if where and where[2] == known[agent.BREAK_STOPS]:
                # It has not gone on: the agent holds it there.
                debugger.selection = debugger.position(), frame
            else:
                debugger.warn("thread %d ran on meanwhile" % debugger.thread())
        evaluator.show(debugger, result)


def frame_head(debugger, chosen, selected_one):
    """What names the frame to the agent; "" if the code is to see __main__."""
    ident, tid = breaks.identity(debugger)
    with open_session(debugger) as session:
        try:
            if interpreter.is_free_threaded(session):
                raise Problem("in a free-threaded build other threads run on, so no code runs in a frame: "
                              "'probing print' shows its variables")
            depth = number(chosen, "frame") if chosen else selected_one
            frame = find_frame(read_selected(session, debugger), depth)
        except Problem:
            if chosen:
                raise
            return ""
    parts = [ident, tid, depth, 1 if chosen else 0, frame["lineno"] or 0, frame["func"], frame["file"]]
    head = "\t".join(map(str, parts))
    return head + "\n" if head.count("\t") == 6 and "\n" not in head else ""


def read_seconds(text):
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0.001 <= seconds <= 86400:
        raise Problem("'%s' is no time: a number of seconds is needed" % text)
    return seconds


COMMAND = Eval

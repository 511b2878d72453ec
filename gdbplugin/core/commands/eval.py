# SPDX-License-Identifier: GPL-3.0-or-later
"""probing eval"""

from .. import agent, breaks, evaluator, interpreter, stops
from ..command import Command, Option, number, open_session, read_file
from ..errors import Problem
from ..frames import find_frame, read_selected, selected

SECONDS = 10
WITHOUT_FRAME = "%s, so no code runs in a frame: 'probing print' shows its variables"
_FRAMES = "SELECT 1 AS one FROM python.stacks WHERE tid = %d AND frame_type = 'python' LIMIT 1"
_MODULE = "SELECT module FROM python.stacks WHERE tid = %d AND depth = %d"
_NAMES = "SELECT name FROM python.locals WHERE tid = %d AND depth = %d"


class Eval(Command):
    name = "eval"
    summary = "Run Python code in the process, and print what it prints and its value."
    usage = "[OPTIONS] CODE"
    aliases = ("e",)
    argument = "expression"
    description = """
The code is what follows, to the end of the line, and sees the variables of the selected frame and
of its module; those of __main__ if there is no frame:
  probing eval len(model.layers)
  probing eval import gc; gc.get_count()
It runs on a thread of its own that the agent has, which is loaded first if it is not there, and
takes the GIL as any other thread does. All other threads stay stopped where they are. If the selected
one holds the GIL in a function of an extension, the code runs on that one. If another one holds it they
have to run until it gives it up, and in a free-threaded build if one computes: that is refused at a
breakpoint or after a step, unless --all allows it. When the frame is gone by then, the code may name
variables of its module only. Code that needs another thread is ended."""
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
        everyone = "all" in options
        left, tid = stops.check(debugger, control, "eval", everyone, True), debugger.thread()
        head = frame_head(debugger, options.get("frame"), left)
        watched = None if stops.at_python_breakpoint(debugger) else stops.Place(debugger)
        text = (head + code).encode("utf-8", "surrogateescape")
        with stops.kept(debugger, control):
            known = agent.need(debugger, control)
            evaluation = evaluator.Evaluation(debugger, control, known, everyone)
            evaluation.watched = watched if head else None
            asks = evaluator.IN_FRAME if head else evaluator.EVALUATES
            result = evaluation.evaluate_here(text, seconds, asks, tid) if left == stops.HERE else \
                evaluation.evaluate(text, seconds, asks)
        evaluator.show(debugger, result)


def frame_head(debugger, chosen, left):
    """What names the frame to the agent; "" if the code is to see __main__, since there is no frame."""
    ident, tid = breaks.identity(debugger)
    if not tid:
        return ""
    with open_session(debugger) as session:
        if chosen and left == stops.GONE:
            raise Problem(WITHOUT_FRAME % ("in a free-threaded build other threads run on"
                                           if interpreter.is_free_threaded(session) else
                                           "thread %d holds the GIL and has to run on" % tid))
        depth = number(chosen, "frame") if chosen else selected(debugger)
        if not chosen and not has_frames(session, tid):
            return ""
        thread = read_selected(session, debugger)
        frame = find_frame(thread, depth)
        module, names = scope(session, tid, frame, [depth] + depths_around(thread, frame))
    parts = [ident, tid, "-" if left == stops.GONE else depth, 1 if chosen else 0, frame["lineno"] or 0,
             frame["func"], frame["file"], module, ",".join(names)]
    head = "\t".join(map(str, parts))
    if head.count("\t") != 8 or "\n" in head:
        raise Problem("the name of the frame's file or module has a tab or line feed, so no code runs there: "
                      "'probing print' shows its variables")
    return head + "\n"


def has_frames(session, tid):
    return bool(session.query(_FRAMES % tid))


def depths_around(thread, frame):
    """The numbers of callers that may be the function around the frame's, whose variables its code may mean."""
    func = frame["func"]
    nested = "<locals>" in (frame["qualname"] or "") or func.startswith("<") and func != "<module>"
    return [each["number"] for each in thread.frames if nested and each["number"] is not None and
            each["number"] > frame["number"] and each["file"] == frame["file"] and each["func"] != "<module>"]


def scope(session, tid, frame, depths):
    """(name of the module, names of variables that are not the module's)"""
    module = session.query(_MODULE % (tid, depths[0]))[0]["module"]
    if frame["interpreter"]:
        raise Problem("the frame is one of interpreter %d, and code runs in the first one alone: 'probing "
                      "print' shows its variables" % frame["interpreter"])
    names = {row["name"] for depth in depths for row in session.query(_NAMES % (tid, depth))}
    return module, ["*"] if frame["func"] == "<module>" else sorted(filter(str.isidentifier, names))


def read_seconds(text):
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0.001 <= seconds <= 86400:
        raise Problem("'%s' is no time: a number of seconds is needed" % text)
    return seconds


COMMAND = Eval

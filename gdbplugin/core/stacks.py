# SPDX-License-Identifier: GPL-3.0-or-later
"""Stacks: read by one query, and shown as `probing backtrace` does in a shell."""

from .errors import Problem
from .text import GIL, RUNNING, UNREADABLE, Painter, cut, duration, safe

_STACKS = """
SELECT t.tid, t.name, t.os_name, t.state, t.idle_seconds, t.waits_for, t.gil, t.gc,
       t.interpreter AS interpreter, t.read, t._error AS thread_error,
       f.depth, f.func, f.qualname, f.file, f.lineno, f.frame_type, %s AS module, f.ip, f.offset,
       %s AS source, f._error AS frame_error
FROM python.threads AS t LEFT JOIN %s AS f ON f.tid = %s AND f.interpreter IS t.interpreter
%s ORDER BY t.main DESC, t.tid, t.interpreter, f.depth"""
_LOCALS = "SELECT tid, depth, name, value, kind FROM python.locals %s"

DEFINITIONS = ("<module ", "<class ", "<function ", "<built-in ", "<enum ")  # texts of such values


STARTS = ("run", "_bootstrap_inner", "_bootstrap")


class Thread:
    """A thread and its frames, innermost first; each is a row of the query."""

    def __init__(self, row):
        self.row = row
        self.frames = []
        self.error = row["thread_error"]


def read_stacks(session, tid, native=False, with_locals=False, with_source=False):
    """The threads, or the one with that number. `native`: True, or "all" as --native=all."""
    # A Python frame's module costs requests to a gdbserver, and is not shown.
    table, module = ("native.backtrace", "f.module") if native else ("python.stacks", "NULL")
    if native == "all":
        table = "native.frames"
    # A number in both places, so that no other thread is read.
    where, same = ("", "t.tid") if tid is None else ("WHERE t.tid = %d" % tid, tid)
    threads = []
    source = "f.source" if with_source else "NULL"
    for row in session.query(_STACKS % (module, source, table, same, where)):
        if not threads or (row["tid"], row["interpreter"]) != (
                threads[-1].row["tid"], threads[-1].row["interpreter"]):
            threads.append(Thread(row))
        if row["depth"] is not None and row["frame_type"] != "error":
            row["number"] = None
            row["locals"] = []
            threads[-1].frames.append(row)
    if not threads:
        raise Problem("thread %s runs no Python: 'probing threads' lists those that do" % tid
                      if tid else "no thread runs Python here")
    for thread in threads:
        number_frames(thread)
    if with_locals:
        add_locals(session, threads, tid)
    return threads


def number_frames(thread):
    """Python frames count from 0; C frames have no number here."""
    count = 0
    for frame in thread.frames:
        if frame["frame_type"] == "python":
            frame["number"] = count
            count += 1


def add_locals(session, threads, tid):
    frames = {(t.row["tid"], f["number"]): f for t in threads for f in t.frames
              if f["number"] is not None}
    for row in session.query(_LOCALS % ("" if tid is None else "WHERE tid = %d" % tid)):
        frame = frames.get((row["tid"], row["depth"]))
        if frame:
            row["value"] = cut(row["value"], session.debugger.settings.max_string)
            frame["locals"].append(row)


def folded(frames):
    """[frame, how many calls of it follow each other, how many start the thread]: recursion is shown
    once, and the calls by which `threading` starts every thread are one line, as in a shell."""
    result = []
    starts = starting(frames)
    for frame in frames[:len(frames) - starts]:
        if result and not frame["locals"] and all(
                frame[key] == result[-1][0][key]
                for key in ("frame_type", "func", "file", "lineno", "frame_error", "offset")):
            result[-1][1] += 1
        else:
            result.append([frame, 1, 0])
    if starts:
        result.append([frames[-starts], 1, starts - 1])
    return result


def starting(frames):
    """How many of the outermost frames are Thread.run, Thread._bootstrap_inner and
    Thread._bootstrap; 0 if there are no two of them, or one has something to show. C frames around
    them stay as they are, with all of these."""
    names = [frame["func"] for frame in frames[-3:]]
    count = next((n for n in (3, 2) if tuple(names[-n:]) == STARTS[-n:]), 0)
    for frame in frames[len(frames) - count:]:
        if frame["frame_type"] != "python" or frame["file"] != frames[-1]["file"] or \
                not (frame["file"] or "").endswith("/threading.py") or \
                frame["locals"] or frame["source"] or frame["frame_error"]:
            return 0
    return count


def frame_name(frame):
    name = frame["qualname"] or frame["func"]
    if name is None and frame["frame_type"] != "python":
        module = (frame["module"] or "").rsplit("/", 1)[-1]
        return "%s+%#x" % (safe(module), frame["offset"]) if frame["offset"] else \
            "%#x" % frame["ip"]
    return safe(name)


def frame_place(frame):
    if frame["frame_type"] == "python":
        place = safe(frame["file"])
    else:
        # The path where the interpreter was compiled is of no use.
        place = safe(frame["file"] or frame["module"]).rsplit("/", 1)[-1]
    return "%s:%d" % (place, frame["lineno"]) if frame["file"] and frame["lineno"] else place


def thread_state(row, paint):
    """What it does; "" if no more is known than that the debugger has stopped it."""
    parts, waits = [], ""
    if row["state"] == "running":
        parts.append(paint(RUNNING, "running"))
    elif row["state"] not in (None, "traced", "unknown"):
        parts.append(row["state"])
        if row["idle_seconds"] is not None and row["idle_seconds"] >= 0.001:
            parts[0] += " " + duration(row["idle_seconds"])
    if row["waits_for"]:
        waits = safe(row["waits_for"])
        parts[:1] = [" ".join(parts + ["in", waits])]
    if row["gil"] == "holds":
        parts.append(paint(GIL, "holds the GIL"))
    elif row["gil"] and "GIL" not in waits:
        parts.append("waiting for the GIL")
    if row["gc"]:
        parts.append("collecting garbage")
    if row["interpreter"]:
        parts.append("interpreter %d" % row["interpreter"])
    if row["read"] == "unstable":
        parts.append("unstable")
    return ", ".join(parts)


def thread_line(row, paint):
    line = "%d %s  %s" % (row["tid"], safe(row["name"] or row["os_name"] or ""),
                          thread_state(row, paint))
    return line.rstrip()


def frame_lines(thread, paint, selected=None, all_names=True, fold=True):
    """The lines of a thread's frames; @all_names: of modules, too, what their source defines."""
    parts = folded(thread.frames) if fold else [[frame, 1, 0] for frame in thread.frames]
    width = min(40, max([len(frame_name(frame)) for frame, _, _ in parts] or [0]))
    for frame, times, starts in parts:
        here = frame["number"] is not None and selected is not None and \
            frame["number"] <= selected < frame["number"] + times + starts
        label = "" if frame["number"] is None else "#%d" % frame["number"]
        line = "%s %-4s %-*s  %s" % ("*" if here else " ", label, width, frame_name(frame),
                                     frame_place(frame))
        if frame["frame_type"] == "inline":
            line += "   (inlined)"
        if times > 1:
            line += "   (%d calls deep)" % times
        if starts:
            line += "   (and %s)" % ("1 call that starts the thread" if starts == 1 else
                                     "%d calls that start the thread" % starts)
        if frame["frame_error"]:
            line += "   " + paint(UNREADABLE, "unreadable: " + safe(frame["frame_error"]))
        yield line
        if frame["source"]:
            yield " " * 9 + safe(frame["source"].split("\n")[0].strip())
        shown = [v for v in frame["locals"] if all_names or not is_definition(v)]
        for line in local_lines(shown, 9):
            yield line
        if len(shown) < len(frame["locals"]):
            yield left_out(len(frame["locals"]) - len(shown))
    if thread.error:
        word = "incomplete: " if thread.frames else "unreadable: "
        yield "  " + paint(UNREADABLE, word + safe(thread.error))
    elif not thread.frames:
        yield "  (no Python frames)"


def is_definition(variable):
    """Whether it is what the source of a module defines or imports, rather than a value."""
    return variable["kind"] == "name" and (variable["value"] or "").startswith(DEFINITIONS)


def left_out(count):
    return "%s%d name%s of modules, functions and classes (--all-names)" % (
        " " * 9, count, "" if count == 1 else "s")


def local_lines(variables, indent):
    width = min(24, max([len(safe(v["name"])) for v in variables] or [0]))
    for variable in variables:
        shown = "(unbound)" if variable["value"] is None else safe(variable["value"])
        yield "%s%-9s%-*s = %s" % (" " * indent, variable["kind"], width, safe(variable["name"]),
                                   shown)


def show_threads(debugger, threads, several, selected=None, all_names=True, fold=True):
    """@selected: number of the frame that is marked in the one thread that is shown."""
    paint = Painter(debugger)
    lines = []
    for thread in threads:
        if lines:
            lines.append("")
        lines.append(thread_line(thread.row, paint))
        lines += frame_lines(thread, paint, selected, all_names, fold)
    if several:
        lines.append("")
        lines.append("%d thread%s" % (len(threads), "" if len(threads) == 1 else "s"))
    debugger.write("\n".join(lines) + "\n")

# SPDX-License-Identifier: GPL-3.0-or-later
"""The selected Python frame: which it is, and moving to another one.

It is forgotten when the thread runs, which shows in its position: nothing of ours is called when
the process stops.
"""

from .command import Command, number, open_session
from .errors import Problem
from .stacks import frame_name, frame_place, read_stacks
from .text import safe


def selected(debugger):
    """Number of the selected frame of the selected thread."""
    # Without one the position is not asked for: gdb looks at code and stack for it.
    if debugger.selection is None:
        return 0
    where = debugger.position()
    return debugger.selection[1] if where is not None and debugger.selection[0] == where else 0


def need_thread(debugger):
    tid = debugger.thread()
    if tid is None and debugger.pid() and not debugger.all_stopped():
        raise Problem("the process runs: '%s' stops it" % debugger.INTERRUPT)
    if tid is None:
        raise Problem("no thread is selected: there is no process, or it has ended")
    return tid


def read_selected(session, debugger, native=False):
    """The selected thread with its frames in the innermost interpreter."""
    return read_stacks(session, need_thread(debugger), native)[0]


def find_frame(thread, number):
    """The Python frame with that number."""
    frames = [frame for frame in thread.frames if frame["number"] is not None]
    if not frames:
        raise Problem("thread %d has no Python frames" % thread.row["tid"])
    if not 0 <= number < len(frames):
        raise Problem("there is no frame %d: they go from 0 to %d" % (number, len(frames) - 1))
    return frames[number]


def native_place(thread, frame):
    """(pc, nth) for Debugger.select_native(): of the C frame that was called by the one that runs
    @frame, the last before it."""
    before = [row["ip"] for row in thread.frames[:thread.frames.index(frame)]
              if row["frame_type"] == "native"]
    return (before[-1], before.count(before[-1]) - 1) if before else (None, 0)


def select(debugger, session, number):
    """Makes it the selected frame, and the C frame that runs it that of the debugger."""
    thread = read_selected(session, debugger, "all")
    frame = find_frame(thread, number)
    chosen = debugger.select_native(*native_place(thread, frame))
    debugger.selection = (debugger.position(), number)
    show(debugger, session, frame, chosen)


class Move(Command):
    """Selects a frame some calls away from the selected one."""

    usage = "[COUNT]"
    description = """
Goes COUNT frames, 1 if it is not given. The C frame that runs the Python frame becomes the selected
frame of the debugger."""

    def destination(self, now, count):
        """Number of the frame, from that of the selected one."""
        raise NotImplementedError

    def run(self, debugger, words):
        _, rest = self.parse(words)
        count = number(rest, "count") if rest else 1
        with open_session(debugger) as session:
            select(debugger, session, self.destination(selected(debugger), count))


def show(debugger, session, frame, chosen):
    lines = ["#%-3d %s  %s" % (frame["number"], frame_name(frame), frame_place(frame))]
    text = source_line(session, frame)
    if text:
        lines.append("%-4d %s" % (frame["lineno"], safe(text)))
    if chosen:
        lines.append("     (C frame %d, %s)" % chosen)
    else:
        lines.append("     (its C frame was not found; that of %s is selected still)"
                     % debugger.name)
    debugger.write("\n".join(lines) + "\n")


def source_line(session, frame):
    rows = session.query("SELECT source FROM python.stacks WHERE tid = %d AND depth = %d"
                         % (frame["tid"], frame["number"]))
    text = rows[0]["source"] if rows else None
    return text.split("\n")[0] if text else None

# SPDX-License-Identifier: GPL-3.0-or-later
"""probing threads"""

from ..command import Command, open_session
from ..stacks import frame_name, frame_place, read_stacks, thread_state
from ..text import Painter, safe


class Threads(Command):
    name = "threads"
    summary = "List the threads that run Python, and where each is."
    description = """
The number is the kernel's, as 'probing backtrace --tid' takes it. The selected thread is marked.
With 'set probing format json' it is the table python.threads."""

    def run(self, debugger, words):
        _, rest = self.parse(words)
        self.no_more(rest)
        here, paint = debugger.thread(), Painter(debugger)
        with open_session(debugger) as session:
            if debugger.settings.format == "json":
                session.print("SELECT * FROM python.threads", "json")
                return
            threads = read_stacks(session, None)
        names = [safe(t.row["name"] or t.row["os_name"] or "") for t in threads]
        width = min(24, max(len(name) for name in names))
        lines = []
        for thread, name in zip(threads, names):
            mark = "*" if thread.row["tid"] == here else " "
            lines.append("%s %-7d %-*s  %s" % (mark, thread.row["tid"], width, name,
                                               place(thread)))
            state = thread_state(thread.row, paint)
            if state:
                lines.append("%s%s" % (" " * (width + 12), state))
        debugger.write("\n".join(lines) + "\n")


def place(thread):
    frames = [frame for frame in thread.frames if frame["number"] is not None]
    if frames:
        return "%s  %s" % (frame_name(frames[0]), frame_place(frames[0]))
    return "(unreadable: %s)" % safe(thread.error) if thread.error else "(no Python frames)"


COMMAND = Threads

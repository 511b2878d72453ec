# SPDX-License-Identifier: GPL-3.0-or-later
"""probing locals"""

from ..command import Command, number, open_session
from ..frames import find_frame, read_selected, selected
from ..stacks import add_locals, local_lines


class Locals(Command):
    name = "locals"
    summary = "Print the variables of the selected Python frame."
    usage = "[FRAME]"
    description = """
FRAME is another frame, by its number in 'probing backtrace'. Values are shown as repr() would,
without running any code in the process."""

    def run(self, debugger, words):
        _, rest = self.parse(words)
        chosen = number(rest, "frame") if rest else selected(debugger)
        with open_session(debugger) as session:
            thread = read_selected(session, debugger)
            frame = find_frame(thread, chosen)
            add_locals(session, [thread], thread.row["tid"])
            lines = list(local_lines(frame["locals"], 0))
            debugger.write("\n".join(lines or ["no variables"]) + "\n")


COMMAND = Locals

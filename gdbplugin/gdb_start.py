# SPDX-License-Identifier: GPL-3.0-or-later
"""gdb: breakpoints of Python that were set before Python was there, see core/start.py."""

import gdb

from .core import breaks, control, marks, start
from .core.errors import Problem
from .gdb_run import enable

GOES_ON = "silent\npython import %s; %s.come()" % (__name__, __name__)
STARTER = []  # (gdb's breakpoint there, face)
FAILED = set()  # pids


class Starter(gdb.Breakpoint):
    def stop(self):
        return not control.Control.active


def look(face):
    """Has gdb stop there if something waits."""
    from .gdb_break import quietly
    wanted = bool(marks.waiting(face.marks(), face))
    if not (STARTER and STARTER[0][0].is_valid()):
        made = quietly(lambda: Starter(start.RUNS_CODE, internal=True))
        made.silent = True
        made.commands = GOES_ON
        if not STARTER:
            gdb.events.exited.connect(again)
            gdb.events.new_objfile.connect(again)
        STARTER[:] = [(made, face)]
    enable(STARTER[0][0], wanted)


def again(_):
    if STARTER:
        look(STARTER[0][1])


def come():
    """At the start of code of a module. gdb forgets what follows this of the commands, when it has run anything."""
    set_waiting()
    if gdb.selected_inferior().pid:
        gdb.execute("continue")


def call(name):
    return int(gdb.parse_and_eval("((int (*)(void))%s)()" % name))


def set_waiting():
    face = STARTER[0][1]
    try:
        start.set_waiting(face, call)
    except (Problem, gdb.error) as problem:
        if breaks.EARLY in str(problem):
            return  # 3.6 says earlier that it is initialised than it has its files
        if face.pid() not in FAILED:
            face.warn("breakpoints of Python are not set: %s" % problem)
        FAILED.add(face.pid())
        enable(STARTER[0][0], False)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads and frames of a target."""

import re
from typing import Dict, List, Optional

from . import extend
from ._errors import Gone, NeedsCode
from .value import Value, get

HELD = re.compile(r"waiting for an? (?P<lock>\w+)(?: held by (?P<owner>\d+))?")


class Wait:
    """What a thread waits for: .text in words, .lock the kind of lock, .owner the tid that holds
    it. False if it does not wait."""

    def __init__(self, text):
        held = HELD.search(text or "")
        self.text = text
        self.lock = held.group("lock") if held else None
        self.owner = int(held.group("owner")) if held and held.group("owner") else None

    def __bool__(self):
        return bool(self.text)

    def __repr__(self):
        return "<waits for %s>" % self.text if self.text else "<does not wait>"


class Names:
    """The names of a module: its globals."""

    def __init__(self, module):
        self._module = module

    def __getitem__(self, name):
        return get(self._module, name)

    def __contains__(self, name):
        return self._module._prb_has(name)


class Frame:
    """A frame: func, qualname, module, file, line, depth (0 is the innermost), native."""

    def __init__(self, thread, row):
        self.thread = thread
        self.depth, self.func, self.qualname = row["depth"], row["func"], row["qualname"]
        self.module, self.file, self.line = row["module"], row["file"], row["lineno"]
        self.ip, self.native = row["ip"], row["frame_type"] != "python"

    @property
    def locals(self) -> Dict[str, Value]:
        """{name: Value} of the variables that are bound."""
        return {} if self.native else self.thread._locals(self)

    @property
    def globals(self) -> Names:
        """The names of the frame's module, as a mapping."""
        rows = self.thread.program.query("SELECT address FROM python.modules WHERE name = %s"
                                         % quote(self.module or ""))
        if not rows:
            raise NeedsCode("the module of %s is not imported by its name" % self.func)
        return Names(Value(self.thread.program, rows[0]["address"]))

    @property
    def source(self) -> Optional[str]:
        """Text of the line; None if the file is not here."""
        rows = self.thread.program.query(
            "SELECT func, lineno, source FROM python.stacks WHERE tid = %d AND depth = %d"
            % (self.thread.tid, self.depth))
        if not rows or (rows[0]["func"], rows[0]["lineno"]) != (self.func, self.line):
            raise Gone("the thread has gone on since this frame was read")
        return rows[0]["source"]

    def __repr__(self):
        return "<frame %s %s:%s>" % (self.qualname or self.func, self.file, self.line)


class Thread:
    """A thread: tid, name, state, gil ("holds", "waits"), main, idle_seconds, waits_for, frames."""

    def __init__(self, program, rows):
        row = rows[0]
        self.program = program
        self.tid, self.state, self.gil = row["tid"], row["state"], row["gil"]
        self.name = row["name"] or row["os_name"]
        self.main, self.idle_seconds = bool(row["main"]), row["idle_seconds"]
        self._wait = Wait(row["waits_for"])
        self._rows = [] if row["depth"] is None else rows
        self._frames, self._variables, self._said = None, None, False

    @property
    def waits_for(self) -> Wait:
        """A Wait; one of your own words if a function of probing.wait() has some."""
        if extend.WAITS and not self._said:
            self._said = True
            text = extend.words_of(self)
            if text is not None:
                self._wait.text = text
        return self._wait

    @property
    def frames(self) -> List[Frame]:
        """Python frames, the innermost first."""
        if self._frames is None:
            self._frames = [Frame(self, row) for row in self._rows]
        return self._frames

    def _locals(self, frame):
        if self._variables is None:
            self._variables = self._read_variables()
        return self._variables.get(frame.depth, {})

    def _read_variables(self):
        # One statement is of one instant: the frames that it has must be those that we know.
        rows = self.program.query(VARIABLES % self.tid)
        now = {row["depth"]: (row["func"], row["lineno"], row["ip"]) for row in rows}
        if now != {each.depth: (each.func, each.line, each.ip) for each in self.frames}:
            raise Gone("the thread has gone on since its frames were read")
        found = {}
        for row in rows:
            if row["address"]:
                found.setdefault(row["depth"], {})[row["name"]] = Value(self.program,
                                                                        row["address"])
        return found

    def __repr__(self):
        return "<thread %s %s, %s>" % (self.tid, self.name, self.state)


STACKS = "SELECT t.tid, t.name, os_name, state, gil, main, idle_seconds, waits_for, depth, func, " \
    "qualname, module, file, lineno, ip, frame_type FROM python.threads t LEFT JOIN " \
    "%s s ON s.tid = t.tid AND s.interpreter = t.interpreter"
VARIABLES = "SELECT s.depth, s.func, s.lineno, s.ip, l.name, l.address FROM python.stacks s " \
    "LEFT JOIN python.locals l ON l.tid = s.tid AND l.depth = s.depth WHERE s.tid = %d"


def quote(text):
    """A text in SQL."""
    return "'%s'" % text.replace("'", "''").replace("\0", "")

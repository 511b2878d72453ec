# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads and frames of a target."""

import json
import re
from typing import Dict, List, Optional

from . import extend
from ._errors import Gone, NeedsCode, NotThere
from .value import Value, get, of_instant

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

    def __init__(self, thread, row, number):
        self.thread, self._number = thread, number
        self.depth, self.func, self.qualname = row["depth"], row["func"], row["qualname"]
        self.module, self.file, self.line = row["module"], row["file"], row["lineno"]
        self.ip, self.native = row["ip"], row["frame_type"] != "python"

    @property
    def locals(self) -> Dict[str, Value]:
        """{name: Value} of the variables that are bound."""
        return {} if self.native else self.thread._locals(self._number)

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

    @property
    def return_value(self) -> Value:
        """What was returned to this frame, where `probing finish` of gdb or LLDB has stopped."""
        address = None if self.depth else self.thread.program._returned_to(self.thread)
        if address is None:
            raise NotThere("nothing was returned to this frame by 'probing finish'")
        return Value(self.thread.program, address)

    def __repr__(self):
        return "<frame %s %s:%s>" % (self.qualname or self.func, self.file, self.line)


class Thread:
    """A thread: tid, name, state, gil ("holds", "waits"), main, idle_seconds, waits_for, frames."""

    def __init__(self, program, rows, variables=None):
        row = rows[0]
        self.program = program
        self.tid, self.state, self.gil = row["tid"], row["state"], row["gil"]
        self.name = row["name"] or row["os_name"]
        self.main, self.idle_seconds = bool(row["main"]), row["idle_seconds"]
        self._wait = Wait(row["waits_for"])
        self._rows = [] if row["depth"] is None else rows
        self._frames, self._variables, self._said = None, variables, False

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
            self._frames, number = [], 0
            for row in self._rows:
                self._frames.append(Frame(self, row, number))
                number += not self._frames[-1].native
        return self._frames

    def _locals(self, number):
        if self._variables is None:
            self._variables = self._read_variables()
        found = self._variables.get(number)
        if found is None:
            return {}
        return {name: of_instant(self.program, address, kind, constant)
                for name, address, kind, constant in zip(*map(json.loads, found))}

    def _read_variables(self):
        # One statement is of one instant: its frames must be the frames that we know.
        rows = self.program._rows(VARIABLES % (self.tid, self.tid))
        now = {row["depth"]: (row["func"], row["lineno"], row["ip"]) for row in rows}
        if now != {each._number: (each.func, each.line, each.ip) for each in self.frames
                   if not each.native}:
            raise Gone("the thread has gone on since its frames were read")
        return {row["depth"]: parts(row) for row in rows if row["names"]}

    def __repr__(self):
        return "<thread %s %s, %s>" % (self.tid, self.name, self.state)


def parts(row):
    """Variables of a frame, each as JSON: names, addresses, classes, numbers."""
    return row["names"], row["addresses"], row["types"], row["numbers"]


OF_THREADS = "t.tid, t.name, os_name, state, gil, main, idle_seconds, waits_for, depth, func, " \
    "qualname, module, file, lineno, ip, frame_type"
LOCALS = "SELECT tid, depth, json_group_array(name) AS names, json_group_array(address) AS addresses, " \
    "json_group_array(type_address) AS types, json_group_array(number) AS numbers " \
    "FROM python.locals WHERE %s GROUP BY tid, depth"
STACKS = "SELECT " + OF_THREADS + " FROM python.threads t LEFT JOIN " \
    "%s s ON s.tid = t.tid AND s.interpreter = t.interpreter"
VARIABLES = "SELECT s.depth, s.func, s.lineno, s.ip, l.* FROM python.stacks s LEFT JOIN (" + \
    LOCALS % "tid = %d AND address" + ") l ON l.depth = s.depth WHERE s.tid = %d"


def at_once(stacks):
    """The statement, with the variables of all frames behind the threads: of one instant."""
    return "SELECT *, NULL AS names, NULL AS addresses, NULL AS types, NULL AS numbers FROM (%s) " \
        "UNION ALL SELECT tid, %sdepth, %snames, addresses, types, numbers FROM (%s)" % (
            stacks, "NULL, " * 7, "NULL, " * 7, LOCALS % "address")


def quote(text):
    """A text in SQL."""
    return "'%s'" % text.replace("'", "''").replace("\0", "")

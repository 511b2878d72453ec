# SPDX-License-Identifier: GPL-3.0-or-later
"""Extensions behind the library: the functions that it calls while it prints (struct
probing_extension).

Functions of the user read through a session of their own, since the calling one is busy.
"""

import ctypes
import json
import time
import traceback

from . import _library as lib
from . import extend
from ._errors import Error, Gone
from ._library import LIBRARY, decode

PUT = ctypes.CFUNCTYPE(ctypes.c_int, lib.POINTER, ctypes.c_char_p, ctypes.c_size_t)
HAS = ctypes.CFUNCTYPE(ctypes.c_int, lib.POINTER, lib.TEXT)
OBJECT = ctypes.CFUNCTYPE(ctypes.c_int, lib.POINTER, lib.ADDRESS, lib.ADDRESS, PUT, lib.POINTER)
WAIT = ctypes.CFUNCTYPE(ctypes.c_int, lib.POINTER, ctypes.c_int64, ctypes.c_uint, lib.TEXT,
                        lib.TEXT, lib.TEXT, PUT, lib.POINTER)
TABLE = ctypes.CFUNCTYPE(ctypes.c_int, lib.POINTER, lib.TEXT, PUT, lib.POINTER)
MOMENT = 0.1  # seconds that the frames of all threads are taken for present ones
SMALLEST, LARGEST = -2 ** 63, 2 ** 63


class Extension(ctypes.Structure):
    """struct probing_extension"""

    _fields_ = [("size", ctypes.c_size_t), ("context", lib.POINTER), ("has_class", HAS),
                ("object", OBJECT), ("wait", WAIT), ("table", TABLE)]


def encode(text):
    """UTF-8; what is none is escaped."""
    return text.replace("\0", "").encode("utf-8", "backslashreplace")


class Answers:
    """What the extensions say about one target. `reader` opens a Program to read it with."""

    def __init__(self, reader, say):
        self._reader, self._say = reader, say
        self._program, self._failed, self._threads, self._read_at = None, set(), {}, 0

    def program(self):
        if self._program is None:
            self._program = self._reader()
        return self._program

    def _called(self, what, function, *arguments):
        """The text that it returns, or None. A failure is shown once."""
        try:
            text = function(*arguments)
            return None if text is None else str(text)
        except Gone:
            return None
        except Exception as error:
            if what not in self._failed:
                self._failed.add(what)
                self._say("the %s failed, and the usual text is shown: %s" % (
                    what, last_line(error)))
            return None

    def has_class(self, name):
        """Whether there is a printer for it, by the name alone."""
        return any(name == own or name.startswith(own.rpartition(".")[0] + ".") and
                   name.rpartition(".")[2] == own.rpartition(".")[2] for own in extend.PRINTERS)

    def text(self, address):
        def show():
            value = self.program().value(address)
            function = extend.printer_of(value)
            return function and self._called("printer of " + value.type.name, function, value)
        return self._called("reading of an object", show)

    def words(self, tid, depth, file, func, qualname):
        for function in extend.waits_in(file, func, qualname):
            text = self._called("function for waits in " + (qualname or func), self._words,
                                function, tid, depth, func)
            if text is not None:
                return text
        return None

    def _words(self, function, tid, depth, func):
        now = time.monotonic()
        if now - self._read_at > MOMENT:
            self._threads = {each.tid: each for each in self.program().threads()}
            self._read_at = now
        frames = self._threads[tid].frames if tid in self._threads else []
        if depth >= len(frames) or frames[depth].func != func:
            raise Gone("the thread has gone on")
        return function(frames[depth])

    def table(self, name):
        """JSON of the rows; None: there is no such table."""
        if name not in extend.TABLES:
            return None
        function, columns = extend.TABLES[name]
        try:
            return rows_text(name, list(function(self.program())), columns)
        except Error as error:
            raise Error("the table %s: %s" % (name, error))
        except Exception as error:
            raise Error("the function of the table %s failed: %s" % (name, last_line(error)))


    def findings(self):
        """What the rules find, as struct prb_custom has it. A rule that fails is shown, and finds nothing."""
        parts = []
        for name, function in extend.RULES.items():
            try:
                found = [fields_of(name, each) for each in function(self.program()) or ()]
            except Exception as error:
                self._say("the rule %s failed: %s" % (name, last_line(error)))
                continue
            parts += [b"".join(encode(field) + b"\0" for field in fields) for fields in found]
        return b"".join(parts) or None


def fields_of(name, finding):
    """The fields of a finding, which end with an empty one."""
    told = finding if isinstance(finding, dict) else {"sentence": finding}
    unknown = set(told) - {"sentence", "evidence", "confidence", "wrong_if", "next"}
    if unknown or not told.get("sentence"):
        raise Error("a finding has a sentence, and no %s" % (sorted(unknown) or "other kind of thing"))
    evidence = told.get("evidence") or []
    lines = [evidence] if isinstance(evidence, str) else evidence
    return [name, str(told["sentence"])] + [str(told.get(key) or "") for key in ("confidence", "wrong_if", "next")] + \
        [str(line) for line in lines if str(line)] + [""]


def last_line(error):
    """The exception, and where in the extension it was raised."""
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    frames = traceback.extract_tb(error.__traceback__)
    place = " (%s:%d)" % frames[-1][:2] if frames else ""
    return text.splitlines()[-1] + place


def cell(value):
    """As JSON."""
    constant = getattr(value, "_prb_constant", None)
    if constant:
        known, found = constant()
        value = found if known else repr(value)
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, float):
        return repr(value) if abs(value) < float("inf") else \
            "null" if value != value else "%s9e999" % ("-" if value < 0 else "")
    if isinstance(value, int):
        return repr(int(value)) if SMALLEST <= value < LARGEST else repr(float(value))
    return json.dumps(encode(str(value)).decode("utf-8"))


def rows_text(name, rows, columns):
    """[[column, …], [cell, …], …] as JSON."""
    if columns is None and not rows:
        raise Error("it has no row, and @probing.table names no columns")
    columns = list(columns if columns is not None else
                   rows[0] if isinstance(rows[0], dict) else
                   ["column%d" % (i + 1) for i in range(len(rows[0]))])
    found = [columns]
    for row in rows:
        more = set(row) - set(columns) if isinstance(row, dict) else row[len(columns):]
        if more:
            raise Error("a row has more than the columns %s: %r" % (", ".join(columns), row))
        found.append([row.get(each) for each in columns] if isinstance(row, dict) else row)
    return "[%s]" % ",\n".join("[%s]" % ",".join(map(cell, row)) for row in found)


class Hooks:
    """The functions that the library calls, of the Answers; keep it as long as the session."""

    def __init__(self, answers):
        self._answers, self.quiet = answers, False
        self.struct = Extension(ctypes.sizeof(Extension), None, HAS(self._has), OBJECT(self._object),
                                WAIT(self._wait), TABLE(self._table))

    def _has(self, _, name):
        return bool(extend.PRINTERS) and self._answers.has_class(decode(name))

    def _object(self, _, address, __, put, to):
        return given(self._answers.text(address), put, to)

    def _wait(self, _, tid, depth, file, func, qualname, put, to):
        if self.quiet or not extend.WAITS:
            return 0
        names = [each and decode(each) for each in (file, func, qualname)]
        return given(self._answers.words(tid, depth, *names), put, to)

    def _table(self, _, name, put, to):
        try:
            return given(self._answers.table(decode(name)), put, to)
        except Error as error:
            given(str(error), put, to)
            return -1


def given(text, put, to):
    if text is None:
        return 0
    data = encode(text)
    put(to, data, len(data))
    return 1


def attach(pointer, reader, say, library=LIBRARY):
    """Makes the extensions speak for a session. The result must live as long."""
    hooks = Hooks(Answers(reader, say))
    library.probing_set_extension(pointer, ctypes.byref(hooks.struct))
    return hooks

# SPDX-License-Identifier: GPL-3.0-or-later
"""A target: a process, a core file or a snapshot that is read."""

import ctypes

from . import _library as lib
from ._errors import Error, Gone
from ._library import LIBRARY, check, decode, encode
from .frame import STACKS, THREADS, Thread, quote
from .value import Value


class Rows(list):
    """Rows of a query, as dictionaries."""

    def df(self):
        """The same as a pandas DataFrame."""
        import pandas
        return pandas.DataFrame(list(self))


class Program:
    """What attach() returns. Use it from one thread; `with` or close() ends it."""

    def __init__(self, target, exe=None):
        self.target = str(target)
        self._pointer = ctypes.c_void_p()
        self._object = lib.Object(size=ctypes.sizeof(lib.Object))
        self._object_at = ctypes.addressof(self._object)
        check(LIBRARY.probing_create(ctypes.byref(self._pointer)))
        try:
            check(LIBRARY.probing_open(self._pointer, encode(self.target), exe and encode(exe)))
        except BaseException:
            self.close()
            raise

    def close(self):
        """Ends the session; values that came from it cannot be read any more."""
        LIBRARY.probing_destroy(self._pointer)
        self._pointer = ctypes.c_void_p()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_pointer", None):
            self.close()

    def _open(self):
        if not self._pointer:
            raise Error("the session of %s is closed" % self.target)
        return self._pointer

    def query(self, sql):
        """Rows of one SQL statement."""
        statement = ctypes.c_void_p()
        check(LIBRARY.probing_prepare(self._open(), encode(sql), None, ctypes.byref(statement)))
        if not statement:
            raise Error("there is no statement in %r" % sql)
        try:
            return self._rows(statement)
        finally:
            LIBRARY.probing_finish(statement)

    def _rows(self, statement):
        rows, more = Rows(), ctypes.c_int()
        columns = [(index, decode(LIBRARY.probing_column_name(statement, index)))
                   for index in range(LIBRARY.probing_columns(statement))]
        while True:
            check(LIBRARY.probing_next(statement, ctypes.byref(more)))
            if not more.value:
                return rows
            rows.append({name: _cell(statement, index) for index, name in columns})

    def threads(self):
        """All Python threads, the main thread first; their frames are read right after them."""
        threads = [Thread(self, row) for row in self.query(THREADS) if row["tid"]]
        frames = {}
        for row in self.query(STACKS):
            frames.setdefault(row["tid"], []).append(row)
        for thread in threads:
            thread._rows = frames.get(thread.tid, [])
        return threads

    def thread(self, wanted):
        """The thread of that tid or name."""
        for thread in self.threads():
            if wanted in (thread.tid, thread.name):
                return thread
        raise Error("there is no thread %r" % (wanted,))

    def value(self, address):
        """The object at an address, by its id()."""
        self._open()
        return Value(self, address)

    def find(self, type, where=None):
        """The objects of the heap of a class ("Session" or "app.Session") for which where() is
        true. Those that change or end meanwhile are left out."""
        rows = self.query("SELECT address FROM python.objects WHERE type = %s OR type LIKE %s"
                          % (quote(type), quote("%." + type)))
        for row in rows:
            try:
                found = Value(self, row["address"])
                if where is None or where(found):
                    yield found
            except Gone:
                continue

    def referrers(self, value):
        """[(Value, how)] of the objects that hold one in an attribute (".name") or as an item
        ("[number]", "[key]"), among those that the garbage collector knows."""
        found = {}
        for row in self.query(REFERRERS % (value.address, value.address)):
            how = "." + row["name"] if row["number"] is None else \
                "[%s]" % (row["number"] if row["key"] is None else row["key"])
            found.setdefault((row["address"], how))
        return [(Value(self, address), how) for address, how in found]

    def __repr__(self):
        return "<probing of %s>" % self.target


REFERRERS = "SELECT o.address, a.name, NULL AS number, NULL AS key FROM python.objects o, " \
    "python.attributes a WHERE a.address = o.address AND a.value_address = %d " \
    "UNION ALL SELECT o.address, NULL, i.number, i.key FROM python.objects o, python.items i " \
    "WHERE i.address = o.address AND i.value_address = %d"


def _cell(statement, index):
    kind = LIBRARY.probing_value_kind(statement, index)
    if kind == lib.NULL_KIND:
        return None
    if kind == lib.INTEGER:
        return LIBRARY.probing_value_integer(statement, index)
    if kind == lib.REAL:
        return LIBRARY.probing_value_real(statement, index)
    length = ctypes.c_size_t()
    text = LIBRARY.probing_value_text(statement, index, ctypes.byref(length))
    return decode(ctypes.string_at(text, length.value)) if length.value else ""


def attach(target, exe=None):
    """Opens a target: a pid, "/regex/", a core file or a snapshot. Nothing in it is changed, and
    no code of it runs. @exe names the executable of a core file."""
    return Program(target, exe)


_current = None


def now_current(program):
    """Makes a Program what current() returns."""
    global _current
    _current = program
    return program


def current():
    """The target of the script that runs."""
    if _current is None:
        raise Error("no target was named: 'probing script FILE TARGET', or probing.attach(TARGET)")
    return _current

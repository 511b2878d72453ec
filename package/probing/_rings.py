# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of this process in shared files (docs/ring-format.md), written by the agent's library.

Only the library is loaded: its thread is not needed. A call costs under a microsecond, takes no
lock and never waits.
"""

import ctypes
import operator
import os
import struct

import probing_startup

NULL, INTEGER, REAL, TEXT, INTERNED = range(5)
TYPES = {int: "integer", float: "real", str: "text"}
CODES = {"integer": "q", "real": "d", "text": "q"}
KINDS = {"integer": INTEGER, "real": REAL}
NAMES = 4096  # texts whose number is remembered
ABSENT = (NULL, 0, 0)
# Where a bytes object has its bytes: a C pointer without the cost of making one by ctypes.
START = bytes.__basicsize__ - 1
library = None
failed = False


class Off(Exception):
    """PROBING=0: nothing is recorded."""


def load():
    """The agent's library: the loaded one, or else the package's."""
    global library
    if probing_startup.variable("PROBING", probing_startup.variable("PROBE")) == "0":
        raise Off()
    if library is None:
        try:
            # It never blocks, so that releasing the GIL would only cost time.
            found = ctypes.PyDLL(find_loaded() or probing_startup.find_agent())
        except OSError as error:
            raise probing_startup.StartError("the agent cannot be loaded: %s" % error) from None
        found.probing_ring_create.restype = ctypes.c_ssize_t
        found.probing_ring_create.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_uint64]
        found.probing_ring_append.argtypes = [ctypes.c_ssize_t, ctypes.c_int64, ctypes.c_char_p]
        found.probing_ring_intern.restype = ctypes.c_int64
        found.probing_ring_intern.argtypes = [ctypes.c_ssize_t, ctypes.c_char_p, ctypes.c_size_t]
        found.probing_config_get.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
        found.probing_config_set.argtypes = [ctypes.c_char_p]
        found.probing_config_number.restype = ctypes.c_double
        found.probing_config_number.argtypes = [ctypes.c_char_p]
        found.probing_memory_sample.argtypes = [ctypes.c_int64, ctypes.c_int64]
        found.probing_recorder.restype = ctypes.py_object
        found.probing_recorder.argtypes = [ctypes.py_object]
        found.probing_recorder_step.restype = None
        found.probing_recorder_step.argtypes = [ctypes.c_int64]
        found.probing_ring_set_role.argtypes = [ctypes.c_char_p]
        found.probing_ring_path.restype = ctypes.c_char_p
        found.probing_ring_path.argtypes = [ctypes.c_ssize_t]
        library = found
    return library


def loaded():
    """The same, or None with one line on stderr if there is none: the program runs on."""
    global failed
    if failed:
        return None
    try:
        return load()
    except (Off, OSError, probing_startup.StartError) as error:
        failed = True
        if not isinstance(error, Off):
            probing_startup.say("%s: nothing is recorded" % error)
    return None


def find_loaded():
    with open("/proc/self/maps", "rb") as file:
        for line in file:
            path = os.fsdecode(line.rstrip(b"\n").split(None, 5)[-1])
            if os.path.basename(path) == probing_startup.AGENT and os.path.exists(path):
                return path
    return None


def encode(text):
    return text.encode("utf-8", "backslashreplace")


class Ring:
    """One table: columns is "NAME TYPE [UNIT], …", as probing_ring_create() takes them."""

    def __init__(self, table, columns, size=0):
        self.library = load()
        self.handle = self.library.probing_ring_create(encode(table), encode(columns), size)
        if self.handle < 0:
            raise OSError(-self.handle, "the table %s cannot be made: %s"
                          % (table, os.strerror(-self.handle)))
        self.path = os.fsdecode(self.library.probing_ring_path(self.handle))
        self.columns = [part.split()[:2] for part in columns.split(",")]
        cells = struct.Struct("".join("II" + CODES[kind] for _, kind in self.columns))
        self.pack, self.append = cells.pack, self.library.probing_ring_append
        self.places = {}

    def name(self, text):
        """The number of a frequent text, or None if there is no room for more."""
        place = self.places.get(text)
        if place is None and len(self.places) < NAMES:
            data = encode(text)
            place = self.library.probing_ring_intern(self.handle, data, len(data))
            place = self.places[text] = place if place > 0 else None
        return place

    def write(self, values):
        """Appends a row of objects, one for each column. False if it was counted as lost."""
        cells, held = [], []
        for (name, kind), value in zip(self.columns, values):
            if value is None:
                cells += ABSENT
            elif kind == "text":
                if not isinstance(value, str):
                    raise TypeError("%s is text, and %r is none" % (name, value))
                data = encode(value)
                held.append(data)
                cells += TEXT, len(data), id(data) + START
            else:
                convert = operator.index if kind == "integer" else float
                cells += KINDS[kind], 0, convert(value)
        try:
            row = self.pack(*cells)
        except struct.error:
            raise OverflowError("a number needs more than 64 bits, or a text 4 GiB") from None
        return self.append(self.handle, 0, row) == 0


class Table:
    """A table of the user's own: `probing.table(name, schema)` makes it."""

    def __init__(self, name, schema):
        self.name = name if name.startswith("user.") else "user." + name
        if not isinstance(schema, str):
            schema = ", ".join("%s %s" % (column, TYPES.get(kind, kind))
                               for column, kind in schema.items())
        try:
            self.ring = Ring(self.name, schema)
        except Off:
            self.ring = None
        self.columns = [part.split()[0] for part in schema.split(",")]

    @property
    def path(self):
        """The file that has the rows; None under PROBING=0."""
        return self.ring and self.ring.path

    def append(self, *values, **named):
        """Append a row; columns without a value are NULL.

        True if it was written. False if it was too long, which the ring counts, or PROBING is 0.
        """
        if len(values) > len(self.columns):
            raise TypeError("%s has %d columns" % (self.name, len(self.columns)))
        row = dict(zip(self.columns, values))
        for name, value in named.items():
            if name not in self.columns or name in row:
                raise TypeError("%s has %s" % (self.name, "two values for " + name
                                               if name in row else "no column " + name))
            row[name] = value
        return self.ring is not None and self.ring.write(map(row.get, self.columns))


def table(name, schema):
    """The table `user.NAME` of this process, made at the first call.

    `schema` is a dictionary of column names and int, float or str, or a text as
    "step integer, loss real, took real [ms]".
    """
    return Table(name, schema)


def of_dataclass(cls, name):
    """The class, as a dataclass whose objects have append(): it writes them as rows of user.NAME."""
    import dataclasses
    import typing

    if not dataclasses.is_dataclass(cls):
        cls = dataclasses.dataclass(cls)
    hints = typing.get_type_hints(cls)
    columns = [field.name for field in dataclasses.fields(cls)]
    kinds = {column: column_type(cls, column, hints[column]) for column in columns}
    made = []

    def append(self):
        """Append this object as a row. True if it was written, as of Table.append()."""
        if not made:
            made.append(Table(name, kinds))
        return made[0].append(*[getattr(self, column) for column in columns])

    if hasattr(cls, "append"):
        raise TypeError("%s has an append() of its own" % cls.__name__)
    cls.append = append
    return cls


def column_type(cls, name, kind):
    """int, float or str, also of Optional."""
    import typing

    if getattr(kind, "__origin__", None) is typing.Union or type(kind).__name__ == "UnionType":
        parts = [part for part in kind.__args__ if part is not type(None)]
        kind = parts[0] if len(parts) == 1 else kind
    if kind is bool:
        return int
    if kind not in TYPES:
        raise TypeError("%s.%s is no int, float, bool or str, nor one of them or None" % (cls.__name__, name))
    return kind

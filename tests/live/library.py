# SPDX-License-Identifier: GPL-3.0-or-later
"""libprobing through ctypes, as a program of the user's would have it."""

import ctypes
import json
from pathlib import Path

import support

PATH = Path(support.BINARY).with_name("libprobing.so")
ROW = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
WARNING = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
(FAILED, USAGE, UNSUPPORTED, PERMISSION, TIMEOUT, NO_PROCESS, CANCELLED) = range(1, 8)

ON_TEXT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
ON_OBJECT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p,
                             ctypes.c_uint64)
ON_POLL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
READ = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p,
                        ctypes.c_size_t)
FACT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ON_TEXT, ctypes.c_void_p)


class Registers(ctypes.Structure):
    _fields_ = [("pc", ctypes.c_uint64), ("known", ctypes.c_uint64), ("value", ctypes.c_uint64 * 64)]


ON_REGISTERS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64,
                                ctypes.POINTER(Registers))


class Debugger(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("context", ctypes.c_void_p), ("pid", ctypes.c_int64),
                ("machine", ctypes.c_uint32), ("held", ctypes.c_uint32), ("read", READ),
                ("fact", FACT), ("registers", ON_REGISTERS)]


ON_OUTPUT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p,
                             ctypes.c_size_t)
STREAMS = {1: "stdout", 2: "stderr", 3: "value", 4: "traceback"}
ON_MAIN, NO_AGENT = 1, 2


class EvalOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("flags", ctypes.c_uint32), ("timeout", ctypes.c_double),
                ("name", ctypes.c_char_p)]


class PauseOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("within", ctypes.c_double), ("max", ctypes.c_double)]


INTO, OVER, OUT, TIME = range(4)


class Thread(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("tid", ctypes.c_int64), ("why", ctypes.c_char_p),
                ("in_call", ctypes.c_int), ("ways_out", ctypes.POINTER(ctypes.c_uint64)),
                ("way_count", ctypes.c_size_t)]


ON_THREAD = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Thread))
ON_BREAKPOINT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t,
                                 ctypes.c_uint64, ctypes.c_char_p)

_POINTER, _TEXT, _NUMBER = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint
_SIGNATURES = {
    "probing_error_code": (ctypes.c_int, _POINTER),
    "probing_error_message": (_TEXT, _POINTER),
    "probing_error_hint": (_TEXT, _POINTER),
    "probing_error_destroy": (None, _POINTER),
    "probing_version": (_TEXT,),
    "probing_create": (_POINTER, _POINTER),
    "probing_destroy": (None, _POINTER),
    "probing_open": (_POINTER, _POINTER, _TEXT, _TEXT),
    "probing_open_debugger": (_POINTER, _POINTER, _TEXT, ctypes.POINTER(Debugger)),
    "probing_print": (_POINTER, _POINTER, _TEXT, _TEXT, _NUMBER, _NUMBER, ON_TEXT, _POINTER),
    "probing_format": (_TEXT, _NUMBER),
    "probing_look_up": (_POINTER, _POINTER, ctypes.c_int64, _NUMBER, _TEXT, ON_OBJECT,
                        _POINTER),
    "probing_describe": (_POINTER, _POINTER, ctypes.c_uint64, _NUMBER, ON_OBJECT, _POINTER),
    "probing_dump": (_POINTER, _POINTER, ctypes.c_int64, _NUMBER, ON_TEXT, _POINTER),
    "probing_snapshot": (_POINTER, _POINTER, _TEXT, ctypes.c_int),
    "probing_on_poll": (None, _POINTER, ON_POLL, _POINTER),
    "probing_hijackable": (_POINTER, _POINTER, ON_THREAD, _POINTER),
    "probing_left_breakpoints": (_POINTER, _POINTER, ON_BREAKPOINT, _POINTER),
    "probing_set": (_POINTER, _POINTER, _TEXT, _TEXT),
    "probing_on_warning": (None, _POINTER, WARNING, _POINTER),
    "probing_query": (_POINTER, _POINTER, _TEXT, ROW, _POINTER),
    "probing_prepare": (_POINTER, _POINTER, _TEXT, _POINTER, _POINTER),
    "probing_next": (_POINTER, _POINTER, _POINTER),
    "probing_reset": (None, _POINTER),
    "probing_finish": (None, _POINTER),
    "probing_columns": (_NUMBER, _POINTER),
    "probing_column_name": (_TEXT, _POINTER, _NUMBER),
    "probing_column_description": (_TEXT, _POINTER, _NUMBER),
    "probing_column_unit": (_TEXT, _POINTER, _NUMBER),
    "probing_value_kind": (ctypes.c_int, _POINTER, _NUMBER),
    "probing_value_integer": (ctypes.c_int64, _POINTER, _NUMBER),
    "probing_value_real": (ctypes.c_double, _POINTER, _NUMBER),
    "probing_value_text": (_POINTER, _POINTER, _NUMBER, _POINTER),
    "probing_eval": (_POINTER, _POINTER, _TEXT, ctypes.POINTER(EvalOptions), ON_OUTPUT, _POINTER),
    "probing_pause": (_POINTER, _POINTER, ctypes.POINTER(PauseOptions)),
    "probing_resume": (_POINTER, _POINTER, ctypes.POINTER(ctypes.c_double)),
    "probing_step": (_POINTER, _POINTER, ctypes.c_int64, ctypes.c_int, ctypes.c_double),
    "probing_cancel": (None, _POINTER),
}


def load():
    library = ctypes.CDLL(str(PATH))
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


LIBRARY = load()


class Error(Exception):
    """The result of a call."""

    def __init__(self, pointer):
        super().__init__(LIBRARY.probing_error_message(pointer).decode("utf-8", "replace"))
        self.code = LIBRARY.probing_error_code(pointer)
        hint = LIBRARY.probing_error_hint(pointer)
        self.hint = hint and hint.decode()
        LIBRARY.probing_error_destroy(pointer)


def check(pointer):
    if pointer:
        raise Error(pointer)


class Session:
    """A session; use as a context manager."""

    def __init__(self, *targets):
        self.pointer = ctypes.c_void_p()
        self.warnings = []
        check(LIBRARY.probing_create(ctypes.byref(self.pointer)))
        self._warn = WARNING(lambda _, text: self.warnings.append(text.decode()))
        LIBRARY.probing_on_warning(self.pointer, self._warn, None)
        for target in targets:
            check(LIBRARY.probing_open(self.pointer, str(target).encode(), None))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        LIBRARY.probing_destroy(self.pointer)

    def set(self, key, value):
        check(LIBRARY.probing_set(self.pointer, key.encode(), value.encode()))

    def cancel(self):
        LIBRARY.probing_cancel(self.pointer)

    def open_debugger(self, debugger):
        self.debugger = debugger  # must live as long
        debugger.size = debugger.size or ctypes.sizeof(Debugger)
        check(LIBRARY.probing_open_debugger(self.pointer, b"held", ctypes.byref(debugger)))

    def print(self, sql, form, width=0, enough=None):
        """The output of probing_print(), until `enough` bytes came."""
        pieces = []

        def take(_, text, length):
            pieces.append(ctypes.string_at(text, length))
            return int(enough is not None and sum(map(len, pieces)) >= enough)

        try:
            check(LIBRARY.probing_print(self.pointer, sql.encode(), form.encode(), 0, width,
                                        ON_TEXT(take), None))
        finally:
            self.printed = b"".join(pieces).decode()
        return self.printed

    def eval(self, code, flags=0, timeout=0, name=None, on_output=None):
        """The output of probing_eval(): {stream: text}; output before an error is in `given`."""
        self.given = {}

        def take(_, stream, text, length):
            piece = ctypes.string_at(text, length).decode("utf-8", "replace")
            self.given[STREAMS[stream]] = self.given.get(STREAMS[stream], "") + piece
            return int(bool(on_output and on_output(piece)))

        options = EvalOptions(ctypes.sizeof(EvalOptions), flags, timeout, name and name.encode())
        check(LIBRARY.probing_eval(self.pointer, code.encode(), ctypes.byref(options),
                                   ON_OUTPUT(take), None))
        return self.given

    def pause(self, within=0, longest=0):
        options = PauseOptions(ctypes.sizeof(PauseOptions), within, longest)
        check(LIBRARY.probing_pause(self.pointer, ctypes.byref(options)))

    def resume(self):
        """For how long it was paused."""
        seconds = ctypes.c_double()
        check(LIBRARY.probing_resume(self.pointer, ctypes.byref(seconds)))
        return seconds.value

    def step(self, stride=INTO, tid=0, seconds=0):
        check(LIBRARY.probing_step(self.pointer, tid, stride, seconds))

    def hijackable(self, most=None):
        """The verdict of probing_hijackable() on each thread; of @most threads."""
        threads = []

        def take(_, pointer):
            thread = pointer[0]
            threads.append({"tid": thread.tid, "why": thread.why and thread.why.decode(),
                            "in_call": bool(thread.in_call),
                            "ways_out": thread.ways_out[:thread.way_count]})
            return int(len(threads) == most)

        check(LIBRARY.probing_hijackable(self.pointer, ON_THREAD(take), None))
        return threads

    def left_breakpoints(self):
        """[(address, length, original bytes)]"""
        found = []
        check(LIBRARY.probing_left_breakpoints(
            self.pointer, ON_BREAKPOINT(lambda _, *place: found.append(place[:3])), None))
        return found

    def dump(self, tid=0, what=0):
        """The output of probing_dump(), parsed."""
        pieces = []

        def take(_, text, length):
            pieces.append(ctypes.string_at(text, length))
            return 0

        check(LIBRARY.probing_dump(self.pointer, tid, what, ON_TEXT(take), None))
        return json.loads(b"".join(pieces).decode())

    def query(self, sql, on_row=None):
        """All rows of all statements, as tuples."""
        rows = []

        def take(_, row):
            rows.append(values(row))
            return on_row(rows[-1]) if on_row else 0

        check(LIBRARY.probing_query(self.pointer, sql if isinstance(sql, bytes) else sql.encode(),
                                    ROW(take), None))
        return rows


def value(row, column):
    kind = LIBRARY.probing_value_kind(row, column)
    if kind == 0:
        return None
    if kind == 1:
        return LIBRARY.probing_value_integer(row, column)
    if kind == 2:
        return LIBRARY.probing_value_real(row, column)
    length = ctypes.c_size_t()
    data = ctypes.string_at(LIBRARY.probing_value_text(row, column, ctypes.byref(length)),
                            length.value)
    return data.decode("utf-8", "surrogateescape") if kind == 3 else data


def values(row):
    return tuple(value(row, column) for column in range(LIBRARY.probing_columns(row)))

# SPDX-License-Identifier: GPL-3.0-or-later
"""A target: a process, a core file or a snapshot that is read."""

import ctypes
import json
import os
import sys
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from . import _library as lib
from . import _outside
from . import _custom, _load, extend, live, path
from ._errors import Error, Gone
from ._library import LIBRARY, check, decode, encode
from ._rows import Rows
from .frame import STACKS, Frame, Thread, at_once, parts, quote
from .value import Value, unread


LEVELS = 3  # of sessions, for extensions that ask what extensions say


class Program:
    """What attach() returns. Use it from one thread; `with` or close() ends it."""

    _level, _reader, _path = 0, None, None
    _moves = True  # it may go on from one statement to the next

    def __init__(self, target: Union[int, str], exe: Optional[str] = None):
        self.target, self._exe = str(target), exe
        self._object = lib.Object(size=ctypes.sizeof(lib.Object))
        self._object_at = ctypes.addressof(self._object)
        self._poll, self._kinds = self._poller(), {}
        self._start()

    def _start(self):
        self._pointer, self._hooks = ctypes.c_void_p(), None
        check(LIBRARY.probing_create(ctypes.byref(self._pointer)))
        try:
            LIBRARY.probing_on_poll(self._pointer, self._poll.function, None)
            self._connect()
        except BaseException:
            self.close()
            raise

    def _poller(self):
        return lib.Poll()

    def _connect(self):
        """Opens what is read."""
        target, self._folder = self.target, None
        if _outside.is_elsewhere(target):
            target, self._folder = _outside.snapshot_of(target)
            self._path = target
        self._call(LIBRARY.probing_open, encode(target), self._exe and encode(self._exe))

    def _call(self, function, *arguments, outcome=None):
        """Calls a function of the session that may take long, or call us back."""
        self._settle(self._poll.call(function, self._pointer, *arguments), outcome)

    def _settle(self, error, outcome=None):
        """Raises what went wrong, a Ctrl-C first."""
        if error and self._poll.interrupted:
            LIBRARY.probing_error_destroy(error)
            error = None
        self._poll.settle()
        check(error, getattr(outcome, "value", outcome) or lib.FOUND)

    def close(self) -> None:
        """Ends the session; values that came from it cannot be read any more."""
        LIBRARY.probing_destroy(self._pointer)
        self._pointer = ctypes.c_void_p()
        if self._reader is not None:
            self._reader.close()

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

    def query(self, sql: str) -> Rows:
        """Rows of one SQL statement."""
        self._open()
        self._extend()
        return Rows(json.loads(self._print(sql, b"json").decode("ascii")))

    def _rows(self, sql):
        """Rows without words of extensions."""
        self._open()
        if self._hooks:
            self._hooks.quiet = True
        try:
            return json.loads(self._print(sql, b"json").decode("ascii"))
        finally:
            if self._hooks:
                self._hooks.quiet = False

    def _extend(self):
        """Has extensions speak in what the library prints."""
        if self._hooks is None and self._level < LEVELS and \
                (extend.PRINTERS or extend.WAITS or extend.TABLES):
            self._hooks = _custom.attach(self._open(), self._another, self._say)

    def _another(self):
        """One more session of the same target, for extensions that are asked by this one."""
        if self._reader is None:
            self._reader = self._twin()
            self._reader._level = self._level + 1
        return self._reader

    def _twin(self):
        return Program(self._path or self.target, self._exe)

    def _say(self, text):
        _load.say(text)

    def _print(self, sql, form):
        pieces = []

        def on_text(_, text, length):
            pieces.append(ctypes.string_at(text, length))
            return 0

        self._call(LIBRARY.probing_print, encode(sql), form, 0, 0, lib.ON_TEXT(on_text), None)
        return b"".join(pieces)

    def threads(self, native: Union[bool, str] = False) -> List[Thread]:
        """All Python threads, the main thread first, with their frames, of one moment; `native`:
        and the C and C++ frames between these, "all": also those of the interpreter itself."""
        threads, variables, table = {}, {}, "python.stacks"
        if native:
            table = "native.frames" if native == "all" else "native.backtrace"
        stacks = STACKS % table
        for row in self._rows(at_once(stacks) if self._moves else stacks):
            if row.get("names"):
                variables.setdefault(row["tid"], {})[row["depth"]] = parts(row)
            else:
                threads.setdefault(row["tid"], []).append(row)
        return [Thread(self, rows, variables.get(tid, {}) if self._moves else None)
                for tid, rows in threads.items() if tid]

    @property
    def live(self) -> bool:
        """False for a core file or snapshot, for a target of another machine, of which a copy is read, and in a debugger."""
        return self._moves and self._path is None and (self.target.isdigit() or not os.path.isfile(self.target))

    def thread(self, wanted: Union[None, int, str] = None) -> Thread:
        """The thread of that tid or name; None: the main one, in a debugger the selected one."""
        for thread in self.threads():
            if thread.main if wanted is None else wanted in (thread.tid, thread.name):
                return thread
        raise Error("there is no thread %r" % (wanted,))

    def _returned_to(self, thread):
        """The address of what was returned to its innermost frame, which a debugger of its process knows."""

    def value(self, address: int) -> Value:
        """The object at an address, by its id()."""
        self._open()
        return Value(self, address)

    def native(self, value: Value) -> Any:
        """See Value.native()."""
        raise Error("v.native() is a value of gdb or LLDB, and this is neither")

    def find(self, type: str, where: Optional[Callable[[Value], Any]] = None) -> Iterator[Value]:
        """The objects of the heap of a class ("Session" or "app.Session") for which where() is
        true. Those that where() finds gone are left out."""
        self._open()
        names = quote(type), quote("%." + type)
        text = self._print("SELECT address, type_address FROM python.objects WHERE type IN (SELECT "
                           "type FROM python.types WHERE type = %s OR type LIKE %s)" % names, b"csv")
        for line in text.splitlines()[1:]:
            address, kind = line.split(b",")
            try:
                found = unread(self, int(address), int(kind))
                if where is None or where(found):
                    yield found
            except Gone:
                continue

    def referrers(self, value: Value) -> List[Tuple[Value, str]]:
        """[(Value, how)] of the objects that hold one in an attribute (".name") or as an item
        ("[number]", "[key]"), among those that the garbage collector knows."""
        return [(Value(self, address), how)
                for address, how in self._holders([value.address]).get(value.address, ())]

    def holders(self, values: Iterable[Value]) -> Dict[int, List[Tuple[Value, str]]]:
        """{address: [(Value, how)]}: the referrers of many objects, found in one go."""
        found = self._holders([value.address for value in values])
        return {address: [(Value(self, each), how) for each, how in holders]
                for address, holders in found.items()}

    def _holders(self, addresses):
        """{address: [(address of what holds it, how)]}"""
        found, wanted = {}, ", ".join(map(str, addresses))
        for row in self.query(REFERRERS % (wanted, wanted)) if wanted else ():
            how = "." + row["name"] if row["number"] is None else \
                "[%s]" % (row["number"] if row["key"] is None else row["key"])
            holders = found.setdefault(row["held"], {})
            holders.setdefault((row["address"], how))
        return {address: list(holders) for address, holders in found.items()}

    def path_to(self, value: Value, depth: int = 12) -> "Optional[path.Path]":
        """How the program reaches an object: a Path from a module or a variable, the shortest that
        is found; None if there is none of at most `depth` steps among what can be seen."""
        return path.find(self, value, depth)

    def pause(self, within: Optional[float] = None, max: Optional[float] = None) -> "live.Pause":
        """A Pause: `with p.pause() as frozen: frozen.eval("len(cache)")`. Only a running process; it
        must begin within `within` seconds (2), and ends after `max` (600)."""
        return live.Pause(self, within, max)

    def perf(self, seconds: float = 10, native: bool = False,
             rate: Optional[int] = None) -> "live.Recording":
        """Samples a running process for some seconds: a Recording. `native`: C and C++ frames too."""
        return live.Recording(self.target, seconds, native, rate)

    def trace(self, place: Optional[str] = None, expressions: str = "",
              condition: Optional[str] = None, calls: Optional[str] = None,
              rate: Optional[int] = None) -> "live.Logpoint":
        """Records values in python.trace_variables each time a line runs, `p.trace("train.py:22",
        "loss, step")`, or the calls of a function in python.trace_event, `p.trace(calls="Model.step")`.
        Nothing is stopped. A Logpoint: use it in a `with`, or clear() it."""
        words = ["--calls", calls] if calls else [place]
        words += (["if", condition] if condition else []) + ([expressions] if not calls else [])
        return live.Logpoint(self.target, words + (["--rate", rate] if rate else []))

    def traces(self) -> Dict[int, str]:
        """{number: text} of the logpoints in the process."""
        return live.traces(self.target)

    def clear_traces(self, *numbers: int) -> None:
        """Removes all logpoints, or those of these numbers."""
        live.clear_traces(self.target, *numbers)

    def __repr__(self):
        return "<probing of %s>" % self.target


REFERRERS = "SELECT a.value_address AS held, o.address, a.name, NULL AS number, NULL AS key " \
    "FROM python.objects o, python.attributes a " \
    "WHERE a.address = o.address AND a.value_address IN (%s) " \
    "UNION ALL SELECT i.value_address, o.address, NULL, i.number, i.key " \
    "FROM python.objects o, python.items i " \
    "WHERE i.address = o.address AND i.value_address IN (%s)"


def attach(target: Union[int, str], exe: Optional[str] = None) -> Program:
    """Opens a target: a pid, "/regex/", a core file, a snapshot, "host:port" or "ssh://host/PID".
    Nothing in it is changed, and no code of it runs. `exe` names the executable of a core file. Of a
    target elsewhere, a snapshot with all objects is taken now, and read."""
    return Program(target, exe)


_current = None


def now_current(program):
    """Makes a Program what current() returns."""
    global _current
    _current = program
    return program


def debugger(what):
    """The side of the debugger that we are in (core/script.py of the plugin)."""
    plugin = sys.modules.get("probing_debugger")
    if plugin is None or plugin.face is None:
        raise Error("%s needs gdb or LLDB with the commands of probing" % what)
    import importlib
    return Side(importlib.import_module("probing_debugger.core.script"), plugin.face)


class Side:
    """Functions of that module, with the debugger as their first argument."""

    def __init__(self, module, face):
        self._module, self._face = module, face

    def __getattr__(self, name):
        function = getattr(self._module, name)
        return lambda *arguments: function(self._face, *arguments)


def current() -> Program:
    """The target of the script that runs; in gdb and LLDB, what they hold."""
    if _current is not None:
        return _current
    if sys.modules.get("probing_debugger"):
        return debugger("current()").current()
    raise Error("no target was named: 'probing script FILE TARGET', or probing.attach(TARGET)")


def break_py(place: str, condition: Optional[Callable[[Frame], Any]] = None,
             action: Optional[Callable[[Frame], Any]] = None) -> Any:
    """Stops the debugger's process at a line or function of Python ("train.py:120",
    "Trainer.step"), as `probing break-py` does. `condition` is called with the Frame, here and not
    in the process: it goes on if that is false. With an `action`, it goes on if that returns nothing
    true. Returns the breakpoint: .number, .delete()."""
    return debugger("break_py()").break_py(place, condition, action)

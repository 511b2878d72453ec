# SPDX-License-Identifier: GPL-3.0-or-later
"""SQL over what the debugger holds. A session lives for one command, so it never is out of date."""

import contextlib
import ctypes
import json
import sys

from . import library
from .debugger import need_process, traced_by_us
from .errors import Interrupted
from .library import LIBRARY, check
from .source import Source


def encode(text):
    return text.encode("utf-8", "surrogateescape")


def means(debugger, direct=True):
    """(core, source, how): what is read is the core file, or what the Source says."""
    core = debugger.core_path()
    if core:
        return core, None, "the core file %s, directly" % core
    pid = debugger.pid()
    if core is None:
        need_process(pid)
    direct = direct and core is None and traced_by_us(pid)
    how = "memory directly, registers through %s" if direct else "through %s"
    return None, Source(debugger, pid, direct), how % debugger.name


class HijackableThread:
    """Whether a thread may be made to call functions."""

    def __init__(self, thread):
        self.tid, self.in_call = thread.tid, bool(thread.in_call)
        self.why = library.decode(thread.why) if thread.why else None
        self.ways_out = thread.ways_out[:thread.way_count]


ENOUGH = 4096  # bytes of names and paths


class Session:
    """Use as a context manager. @direct: memory of a process of this machine is read directly, and
    so shows breakpoints of the debugger itself."""

    def __init__(self, debugger, needs_process=True, direct=True):
        self.debugger = debugger
        self.how = ""  # its memory is read
        self._needs_process, self._direct = needs_process, direct
        self.warnings = []
        self._pointer = ctypes.c_void_p()
        self._source = None
        self._interrupted = False
        self._poll = library.ON_POLL(self._on_poll)
        self._warn = library.WARNING(self._on_warning)

    def __enter__(self):
        check(LIBRARY.probing_create(ctypes.byref(self._pointer)))
        try:
            LIBRARY.probing_on_warning(self._pointer, self._warn, None)
            LIBRARY.probing_on_poll(self._pointer, self._poll, None)
            self._limit(max(self.debugger.settings.max_string, ENOUGH))
            if self._needs_process:
                self._open()
                from . import extensions  # here: it imports us
                self._extensions = extensions.speak(self.debugger, self._pointer)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        LIBRARY.probing_destroy(self._pointer)
        self._pointer = ctypes.c_void_p()

    def _on_warning(self, _, text):
        self.warnings.append(library.decode(text))

    def _on_poll(self, _):
        # Ctrl-C is raised wherever Python runs next: mostly here.
        try:
            return 1 if self._interrupted or (self._source and self._source.failure) else 0
        except KeyboardInterrupt:
            self._interrupted = True
            return 1

    def _open(self):
        core, self._source, self.how = means(self.debugger, self._direct)
        if core:
            return check(LIBRARY.probing_open(self._pointer, encode(core), None))
        if not self._source.struct.held:
            # Only its debugger may stop a running process.
            self.set("probing.query.mode", "nonblocking")
        self._call(LIBRARY.probing_open_debugger, self.debugger.name.encode(),
                   ctypes.byref(self._source.struct))

    @contextlib.contextmanager
    def _unraisable(self):
        """Ctrl-C may also be raised at the door of a function that C calls, before its first line:
        Python then hands it to this hook (from 3.8 on), and goes on."""
        before = getattr(sys, "unraisablehook", None)

        def hook(unraisable):
            if issubclass(unraisable.exc_type, KeyboardInterrupt):
                self._interrupted = True
            else:
                before(unraisable)

        sys.unraisablehook = hook
        try:
            yield
        finally:
            if before:
                sys.unraisablehook = before

    def _call(self, function, *arguments):
        """Calls it for the session. An error in our own functions takes precedence."""
        with self._unraisable():
            error = function(self._pointer, *arguments)
        failure = self._source and self._source.failure
        if error and self.broken():
            LIBRARY.probing_error_destroy(error)
            error = None
        if self._interrupted or isinstance(failure, KeyboardInterrupt):
            raise Interrupted("interrupted")
        if failure:
            raise failure
        check(error)

    def _limit(self, size):
        self.set("probing.text.max", size)

    @contextlib.contextmanager
    def limited(self):
        """For what users are shown as it comes: what we work with is not cut at their max-string."""
        self._limit(self.debugger.settings.max_string)
        try:
            yield
        finally:
            self._limit(max(self.debugger.settings.max_string, ENOUGH))

    def set(self, key, value):
        check(LIBRARY.probing_set(self._pointer, key.encode(), str(value).encode()))

    def look_up(self, tid, depth, expression):
        """(type, value, address) of what the expression means in a frame."""
        return self._object(LIBRARY.probing_look_up, tid, depth, encode(expression))

    def describe(self, address, limit):
        """repr() of the object at that address."""
        with self.limited():
            return self._object(LIBRARY.probing_describe, address, limit)[1]

    def _object(self, function, *arguments):
        found = []

        def on_object(_, type_name, value, address):
            found.extend((library.decode(type_name), library.decode(value), address))

        self._call(function, *arguments, library.ON_OBJECT(on_object), None)
        return found

    def hijackable(self, every=False):
        """The threads of the process; not @every: until it is known which one may call functions and
        that not all may."""
        threads = []

        def on_thread(_, thread):
            threads.append(HijackableThread(thread[0]))
            return not every and any(each.why for each in threads) and \
                any(each.in_call and not each.why for each in threads)

        self._call(LIBRARY.probing_hijackable, library.ON_THREAD(on_thread), None)
        return threads

    def left_breakpoints(self):
        """[(address, length, number that belongs there)] of those in the dynamic loader."""
        found = []

        def on_breakpoint(_, address, length, original, __):
            found.append((address, length, original))

        self._call(LIBRARY.probing_left_breakpoints, library.ON_BREAKPOINT(on_breakpoint), None)
        return found

    def broken(self):
        """Whether nothing more can be asked, since one of our own functions failed."""
        return self._interrupted or bool(self._source and self._source.failure)

    def snapshot(self, path, redact):
        self._call(LIBRARY.probing_snapshot, encode(path), int(redact))

    def version(self):
        return library.decode(LIBRARY.probing_version())

    def query(self, sql):
        """All rows of a statement, as dictionaries: one call, however many there are."""
        return json.loads(library.decode(b"".join(self._text(sql, "json", 0, 0))))

    def print(self, sql, output_format, wide=False):
        """Shows the results of the statements, as `probing query` does."""
        debugger, pieces = self.debugger, []
        look = (library.TERMINAL if debugger.is_terminal() else 0) | \
            (library.COLOUR if debugger.colored() else 0)
        try:
            with self.limited():
                self._text(sql, output_format, look, 0 if wide else debugger.width(), pieces)
        finally:
            # Output of a statement before its failure is shown, too.
            if pieces:
                debugger.write(library.decode(b"".join(pieces)))

    def dump(self, tid, what):
        """The stack of a thread, 0: of all, as JSON."""
        return library.decode(b"".join(self._pieces(LIBRARY.probing_dump, tid, what)))

    def _text(self, sql, output_format, look, width, pieces=None):
        return self._pieces(LIBRARY.probing_print, encode(sql), output_format.encode(), look, width,
                            pieces=pieces)

    def _pieces(self, function, *arguments, pieces=None):
        pieces = [] if pieces is None else pieces

        def on_text(_, text, length):
            pieces.append(ctypes.string_at(text, length))
            return 0

        self._call(function, *arguments, library.ON_TEXT(on_text), None)
        return pieces

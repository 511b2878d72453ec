# SPDX-License-Identifier: GPL-3.0-or-later
"""What changes or watches a running process, when asked to: pauses, code, recordings."""

import ctypes
import os
import sys
import tempfile
from typing import Any, Optional

from . import _library as lib
from . import _outside
from ._errors import Error
from ._library import LIBRARY, check, decode, encode
from .value import literal

STDOUT, STDERR, VALUE, TRACEBACK = 1, 2, 3, 4


class Pause:
    """`with p.pause() as frozen:` no thread of the process runs Python code, until the end of the
    block or of this process, or `max` seconds are over."""

    def __init__(self, program, within=None, max=None):
        self._program = program
        self._options = lib.PauseOptions(ctypes.sizeof(lib.PauseOptions), within or 0, max or 0)
        self.seconds = None  # how long it was paused, afterwards

    def __enter__(self):
        self._program._open()
        self._program._call(LIBRARY.probing_pause, ctypes.byref(self._options))
        return self

    def __exit__(self, kind, *_):
        seconds = ctypes.c_double()
        error = LIBRARY.probing_resume(self._program._open(), ctypes.byref(seconds))
        self.seconds = seconds.value
        if error and kind:  # the exception goes first
            LIBRARY.probing_error_destroy(error)
        else:
            check(error)

    def eval(self, code: str, timeout: Optional[float] = None) -> Any:
        """Runs code in the process, in the namespace of __main__. What it prints is printed; the
        value of its last expression is returned, as a constant or as text. An exception in the
        code is an Error, with the traceback."""
        pieces = {VALUE: [], TRACEBACK: []}

        def on_output(_, stream, text, length):
            part = decode(ctypes.string_at(text, length))
            if stream in pieces:
                pieces[stream].append(part)
            else:
                (sys.stdout if stream == STDOUT else sys.stderr).write(part)
            return 0

        options = lib.EvalOptions(ctypes.sizeof(lib.EvalOptions), 0, timeout or 0, None)
        try:
            self._program._call(LIBRARY.probing_eval, encode(code), ctypes.byref(options),
                                lib.ON_OUTPUT(on_output), None)
        except Error as error:
            if not pieces[TRACEBACK]:
                raise
            raise Error("the code raised an exception in the process:\n%s"
                        % "".join(pieces[TRACEBACK]).rstrip(), error.code)
        text = "".join(pieces[VALUE]).rstrip("\n")
        return literal(text) if text else None


class Recording:
    """Samples of a process: what `probing perf -o FILE.profile` writes."""

    def __init__(self, target, seconds, native, rate=None):
        self._folder = tempfile.TemporaryDirectory(prefix="probing-")
        self.path = os.path.join(self._folder.name, "recording.profile")
        _outside.run("-t", target, "performance", "-d", "%gs" % seconds, "-o", self.path,
                     *(["--cc"] if native else []), *(["-r", rate] if rate else []))

    def query(self, sql: str) -> "Rows":  # noqa: F821
        """Rows of a statement over the tables profile.*"""
        from .target import Program
        with Program(self.path) as program:
            return program.query(sql)

    def functions(self) -> "Rows":  # noqa: F821
        """Rows of profile.functions: where the time went."""
        return self.query("SELECT * FROM profile.functions")

    def save(self, path: str) -> str:
        """Writes a file for a viewer, in the format that its name ends with (.html, .svg, .profile,
        .pb.gz, .speedscope.json, …). The path."""
        _outside.run(self.path, "performance", "-o", path)
        return path

    def flamegraph(self, path: str) -> str:
        """Writes a flame graph: one HTML file, or as the name ends."""
        return self.save(path)

    def close(self) -> None:
        """Deletes the recording, which otherwise ends with this object."""
        self._folder.cleanup()

    def __repr__(self):
        return "<recording %s>" % self.path


class Logpoint:
    """Records values at a line, or calls of a function, until clear() or the end of a `with`."""

    def __init__(self, target, words):
        self._target = target
        self.number = int(_outside.run("-t", target, "trace", "--keep", *words).split()[-1])

    def clear(self) -> None:
        """Removes it; what it has recorded stays."""
        clear_traces(self._target, self.number)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.clear()

    def __repr__(self):
        return "<logpoint %d of %s>" % (self.number, self._target)


def traces(target):
    """{number: text} of the logpoints that there are."""
    lines = _outside.run("-t", target, "trace", "list").splitlines()
    return {int(number): text.strip() for number, _, text in
            (line.partition(" ") for line in lines) if number.isdigit()}


def clear_traces(target, *numbers):
    """Removes all, or those of these numbers."""
    for number in numbers or ("",):
        _outside.run("-t", target, "trace", "clear", *([number] if number else []))

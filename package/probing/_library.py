# SPDX-License-Identifier: GPL-3.0-or-later
"""libprobing through ctypes: the functions of probing.h that the package calls."""

import ctypes
import os
import sys

import probing_startup

from ._errors import Error, Gone, NeedsCode, NotThere

POINTER, TEXT, ADDRESS = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64
SELF, ATTRIBUTE, KEY, INDEX, LENGTH, TYPE, REPR, STR, SIZE = range(9)
OTHER, NONE, BOOL, INT, LARGE, FLOAT, STRING, WORDS = range(8)
FOUND, MISSING, CODE, GONE = range(4)


class Object(ctypes.Structure):
    """struct probing_object"""

    _fields_ = [("size", ctypes.c_size_t), ("address", ADDRESS), ("type", ADDRESS),
                ("kind", ctypes.c_int32), ("outcome", ctypes.c_int32),
                ("integer", ctypes.c_int64), ("real", ctypes.c_double), ("text", POINTER),
                ("length", ctypes.c_size_t)]


class PauseOptions(ctypes.Structure):
    """struct probing_pause_options"""

    _fields_ = [("size", ctypes.c_size_t), ("within", ctypes.c_double), ("max", ctypes.c_double)]


class EvalOptions(ctypes.Structure):
    """struct probing_eval_options"""

    _fields_ = [("size", ctypes.c_size_t), ("flags", ctypes.c_uint32),
                ("timeout", ctypes.c_double), ("name", TEXT)]


ON_OUTPUT = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, ctypes.c_int, POINTER, ctypes.c_size_t)
ON_TEXT = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, POINTER, ctypes.c_size_t)
ON_POLL = ctypes.CFUNCTYPE(ctypes.c_int, POINTER)
ON_PART = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, TEXT, TEXT, ADDRESS, ADDRESS)
SIGNATURES = {
    "probing_error_code": (ctypes.c_int, POINTER),
    "probing_error_message": (TEXT, POINTER),
    "probing_error_hint": (TEXT, POINTER),
    "probing_error_destroy": (None, POINTER),
    "probing_version": (TEXT,),
    "probing_create": (POINTER, POINTER),
    "probing_destroy": (None, POINTER),
    "probing_open": (POINTER, POINTER, TEXT, TEXT),
    "probing_set": (POINTER, POINTER, TEXT, TEXT),
    "probing_on_poll": (None, POINTER, ON_POLL, POINTER),
    "probing_print": (POINTER, POINTER, TEXT, TEXT, ctypes.c_uint, ctypes.c_uint, ON_TEXT, POINTER),
    "probing_set_extension": (None, POINTER, POINTER),
    "probing_pause": (POINTER, POINTER, POINTER),
    "probing_resume": (POINTER, POINTER, POINTER),
    "probing_eval": (POINTER, POINTER, TEXT, POINTER, ON_OUTPUT, POINTER),
    "probing_object": (POINTER, POINTER, ADDRESS, ADDRESS, ctypes.c_int, TEXT, ctypes.c_int64,
                       POINTER),
    "probing_object_each": (POINTER, POINTER, ADDRESS, ADDRESS, ctypes.c_int, ON_PART, POINTER,
                            POINTER),
}


def _places():
    """Where the library may be: named, in the wheel, beside a build, or installed."""
    here = os.path.dirname(os.path.realpath(__file__))
    chosen = probing_startup.variable("PROBING_LIBRARY")
    if chosen:
        return [chosen]
    return [os.path.join(here, "libprobing.so"),
            os.path.join(here, "..", "..", "build", "libprobing.so"),
            os.path.join(here, "..", "..", "..", "..", "lib", "libprobing.so.1")]


def _load():
    found = [path for path in _places() if os.path.exists(path)]
    if not found:
        raise ImportError("libprobing.so is in none of %s: build or install it, or name it in "
                          "$PROBING_LIBRARY" % ", ".join(map(os.path.normpath, _places())))
    try:
        library = ctypes.CDLL(os.path.realpath(found[0]))
        for name, signature in SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = signature[0], signature[1:]
    except (OSError, AttributeError) as error:
        raise ImportError("%s cannot be used (%s): install the package and the library of the "
                          "same version" % (found[0], error))
    return library


LIBRARY = _load()


def encode(text):
    return text.encode("utf-8", "surrogateescape")


def decode(data):
    """Text of a target: what is no UTF-8 is kept, as surrogates."""
    return data.decode("utf-8", "surrogateescape")


def check(error, outcome=FOUND):
    """Raises what a function returned, if anything."""
    if not error:
        return
    text = decode(LIBRARY.probing_error_message(error))
    hint = LIBRARY.probing_error_hint(error)
    code = LIBRARY.probing_error_code(error)
    LIBRARY.probing_error_destroy(error)
    if hint:
        text += ("\n%s" if b"\n" in hint else " (%s)") % decode(hint)
    kind = {MISSING: NotThere, CODE: NeedsCode, GONE: Gone}.get(outcome, Error)
    raise kind(text, code)


class Poll:
    """Ends the statement that runs at Ctrl-C, which Python raises in whatever of its functions runs
    next: mostly this one. Nothing may be raised through C."""

    def __init__(self):
        self.interrupted = False
        self.function = ON_POLL(self._ask)

    def _ask(self, _):
        try:
            return int(self.interrupted)
        except KeyboardInterrupt:
            self.interrupted = True
            return 1

    def _unraisable(self, before):
        def hook(unraisable):
            if issubclass(unraisable.exc_type, KeyboardInterrupt):
                self.interrupted = True
            else:
                before(unraisable)
        return hook

    def call(self, function, *arguments):
        """The error that the function returned. At the door of a function that C calls, Python hands
        a Ctrl-C to the hook (from 3.8 on)."""
        before = getattr(sys, "unraisablehook", None)
        sys.unraisablehook = self._unraisable(before)
        try:
            return function(*arguments)
        finally:
            if before:
                sys.unraisablehook = before

    def settle(self):
        """Raises the Ctrl-C that came meanwhile."""
        if self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt

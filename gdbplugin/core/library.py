# SPDX-License-Identifier: GPL-3.0-or-later
"""libprobing through ctypes: the functions of probing.h, and nothing else of ours."""

import os

from .errors import Interrupted, Problem

try:
    import ctypes
except ImportError:
    raise Problem("this debugger's Python has no ctypes, which probing needs: use a build of the "
                  "debugger with it, or 'probing' in a shell")

CANCELLED = 7
TERMINAL, COLOUR = 1, 2
LOCALS, NATIVE, NATIVE_ALL = 1, 2, 8

POINTER, TEXT, NUMBER = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint
WARNING = ctypes.CFUNCTYPE(None, POINTER, TEXT)
ON_TEXT = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, POINTER, ctypes.c_size_t)
ON_POLL = ctypes.CFUNCTYPE(ctypes.c_int, POINTER)
ON_OBJECT = ctypes.CFUNCTYPE(None, POINTER, TEXT, TEXT, ctypes.c_uint64)
PUT = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, POINTER, ctypes.c_size_t)
READ = ctypes.CFUNCTYPE(ctypes.c_size_t, POINTER, ctypes.c_uint64, POINTER, ctypes.c_size_t)
FACT = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, TEXT, PUT, POINTER)


class Registers(ctypes.Structure):
    """struct probing_registers"""

    _fields_ = [("pc", ctypes.c_uint64), ("known", ctypes.c_uint64),
                ("value", ctypes.c_uint64 * 64)]


class Thread(ctypes.Structure):
    """struct probing_thread"""

    _fields_ = [("size", ctypes.c_size_t), ("tid", ctypes.c_int64), ("why", TEXT),
                ("in_call", ctypes.c_int), ("ways_out", ctypes.POINTER(ctypes.c_uint64)),
                ("way_count", ctypes.c_size_t)]


ON_THREAD = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, ctypes.POINTER(Thread))
ON_BREAKPOINT = ctypes.CFUNCTYPE(None, POINTER, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_uint64,
                                 TEXT)
ON_REGISTERS = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, ctypes.c_int64, ctypes.POINTER(Registers))


class DebuggerStruct(ctypes.Structure):
    """struct probing_debugger"""

    _fields_ = [("size", ctypes.c_size_t), ("context", POINTER), ("pid", ctypes.c_int64),
                ("machine", ctypes.c_uint32), ("held", ctypes.c_uint32), ("read", READ),
                ("fact", FACT), ("registers", ON_REGISTERS)]


SIGNATURES = {
    "probing_error_code": (ctypes.c_int, POINTER),
    "probing_error_message": (TEXT, POINTER),
    "probing_error_hint": (TEXT, POINTER),
    "probing_error_destroy": (None, POINTER),
    "probing_version": (TEXT,),
    "probing_create": (POINTER, POINTER),
    "probing_destroy": (None, POINTER),
    "probing_open": (POINTER, POINTER, TEXT, TEXT),
    "probing_open_debugger": (POINTER, POINTER, TEXT, ctypes.POINTER(DebuggerStruct)),
    "probing_set": (POINTER, POINTER, TEXT, TEXT),
    "probing_on_warning": (None, POINTER, WARNING, POINTER),
    "probing_set_extension": (None, POINTER, POINTER),
    "probing_on_poll": (None, POINTER, ON_POLL, POINTER),
    "probing_print": (POINTER, POINTER, TEXT, TEXT, NUMBER, NUMBER, ON_TEXT, POINTER),
    "probing_format": (TEXT, NUMBER),
    "probing_look_up": (POINTER, POINTER, ctypes.c_int64, NUMBER, TEXT, ON_OBJECT,
                        POINTER),
    "probing_describe": (POINTER, POINTER, ctypes.c_uint64, NUMBER, ON_OBJECT, POINTER),
    "probing_dump": (POINTER, POINTER, ctypes.c_int64, NUMBER, ON_TEXT, POINTER),
    "probing_hijackable": (POINTER, POINTER, ON_THREAD, POINTER),
    "probing_left_breakpoints": (POINTER, POINTER, ON_BREAKPOINT, POINTER),
    "probing_snapshot": (POINTER, POINTER, TEXT, ctypes.c_int),
}


def places():
    """Where the library may be: beside a build, in the Python package, or below the same prefix."""
    here = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    chosen = os.environ.get("PROBING_LIBRARY")
    if chosen:
        return [chosen]
    return [os.path.join(here, "..", "build", "libprobing.so"),
            os.path.join(here, "..", "libprobing.so"),
            os.path.join(here, "..", "..", "..", "lib", "libprobing.so.1")]


def load():
    """The library, with the signatures of its functions."""
    found = [os.path.realpath(path) for path in places() if os.path.exists(path)]
    if not found:
        raise Problem("libprobing.so is in none of %s: build or install it, or name it in "
                      "$PROBING_LIBRARY before the debugger starts"
                      % ", ".join(os.path.normpath(path) for path in places()))
    try:
        library = ctypes.CDLL(found[0])
        for name, signature in SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = signature[0], signature[1:]
    except (OSError, AttributeError) as error:
        raise Problem("%s cannot be used (%s): install plugin and library of the same version"
                      % (found[0], error))
    return library


LIBRARY = load()


def decode(data):
    """Text of a target: what is no UTF-8 is kept, as surrogates."""
    return data.decode("utf-8", "surrogateescape")


def check(error):
    """Raises what a function returned, if anything."""
    if not error:
        return
    code = LIBRARY.probing_error_code(error)
    text = decode(LIBRARY.probing_error_message(error))
    hint = decode(LIBRARY.probing_error_hint(error) or b"")
    LIBRARY.probing_error_destroy(error)
    if code == CANCELLED:
        raise Interrupted("interrupted")
    if "\n" in hint:
        raise Problem(text, ["  " + line for line in hint.split("\n")])
    raise Problem("%s (%s)" % (text, hint) if hint else text)

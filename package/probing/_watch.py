# SPDX-License-Identifier: GPL-3.0-or-later
"""Watched expressions: rows of python.variables, written by each probing.step()."""

import probing_startup

from . import _locals, _rings, _variables, _watched

TABLE = ("python.variables", "name text, function text, number real, value text, type text, "
         "step integer")

watched = {}  # text -> (code, function or None)
ring = None
changes = None  # of the settings, when they were read


def watch(*texts):
    """Record the values of expressions at each probing.step() in python.variables.

    Each is an expression that is evaluated in the function that calls step(), or in the nearest
    one outside of it that has its names: "loss"; with "@FUNCTION" in that function.
    """
    for text in texts:
        watched[text] = _watched.parse_watched(text, "<%s>" % text)


def read_settings(library):
    """What probing.watch says, when it has changed."""
    global changes
    now = library.probing_config_changes()
    if now == changes:
        return
    changes = now
    for text in filter(None, _watched.split_watched(get(library, "probing.watch"))):
        try:
            watch(text)
        except SyntaxError as error:
            probing_startup.say("cannot watch '%s': %s" % (text, error.msg))


def get(library, key):
    import ctypes
    buffer = ctypes.create_string_buffer(1024)
    length = library.probing_config_get(key.encode(), buffer, len(buffer))
    if length < 0:
        raise KeyError(key)
    return buffer.raw[:length].decode("utf-8", "replace")


def record(frame, step):
    """A row for each watched expression that is found."""
    global ring
    library = _rings.loaded()
    if library is None:
        return
    read_settings(library)
    for text, (code, function) in list(watched.items()):
        found = _watched.find_watched(code, function, frame, _locals.read_locals, _variables.eval_in_frame)
        if found is None:
            continue
        try:
            ring = ring or _rings.Ring(*TABLE)
        except OSError as error:
            probing_startup.say("%s: nothing is watched" % error.strerror)
            watched.clear()
            return
        number, value, kind = _watched.describe_watched(*found[1:])
        ring.write((text, found[0], number, value, kind, step))

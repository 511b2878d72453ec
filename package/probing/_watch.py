# SPDX-License-Identifier: GPL-3.0-or-later
"""Watched expressions: rows of python.variables, written by each probing.step()."""

import probing_startup

from . import _rings

TABLE = ("python.variables", "name text, function text, number real, value text, type text, "
         "step integer")
MAX_VALUE = 200  # characters
MAX_FRAMES = 100

watched = {}  # text -> (code, function or None)
ring = None
changes = None  # of the settings, when they were read


def parse(text):
    """"loss", or "loss@train": in the innermost running function of that name."""
    expression, at, function = text.rpartition("@")
    if not at or not function.strip().isidentifier():
        expression, function = text, ""
    return compile(expression.strip(), "<%s>" % text, "eval"), function.strip() or None


def split(text):
    """At commas outside of brackets."""
    part, depth = "", 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            yield part.strip()
            part = ""
        else:
            part += letter
    yield part.strip()


def watch(*texts):
    """Record the values of expressions at each probing.step() in python.variables.

    Each is an expression that is evaluated in the function that calls step(), or in the nearest
    one outside of it that has its names: "loss"; with "@FUNCTION" in that function.
    """
    for text in texts:
        watched[text] = parse(text)


def read_settings(library):
    """What probing.watch says, when it has changed."""
    global changes
    now = library.probing_config_changes()
    if now == changes:
        return
    changes = now
    for text in filter(None, split(get(library, "probing.watch"))):
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


def find(code, function, frame):
    """Evaluates it: (name of the function, value, exception); None if nobody has its names."""
    for _ in range(MAX_FRAMES):
        if frame is None:
            return None
        name = frame.f_code.co_name
        if function is None or function == name:
            try:
                return name, eval(code, frame.f_globals, frame.f_locals), None
            except NameError as error:
                if function is not None:
                    return name, None, error
            except Exception as error:
                return name, None, error
        frame = frame.f_back
    return None


def shorten(text):
    return text if len(text) <= MAX_VALUE else text[:MAX_VALUE - 1] + "\u2026"


def describe(value, error):
    """The number, text and type of a value."""
    if error is not None:
        return None, shorten(str(error)), type(error).__name__
    number = None
    if hasattr(type(value), "__float__") or hasattr(type(value), "__index__"):
        try:
            number = float(value)
        except Exception:
            pass
    try:
        text = repr(value if number is None or isinstance(value, (int, float)) else number)
    except Exception as failed:
        text = "<repr() raised %s>" % type(failed).__name__
    return number, shorten(text), type(value).__name__


def record(frame, step):
    """A row for each watched expression that is found."""
    global ring
    library = _rings.loaded()
    if library is None:
        return
    read_settings(library)
    for text, (code, function) in list(watched.items()):
        found = find(code, function, frame)
        if found is None:
            continue
        try:
            ring = ring or _rings.Ring(*TABLE)
        except OSError as error:
            probing_startup.say("%s: nothing is watched" % error.strerror)
            watched.clear()
            return
        number, value, kind = describe(*found[1:])
        ring.write((text, found[0], number, value, kind, step))

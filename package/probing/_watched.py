# SPDX-License-Identifier: GPL-3.0-or-later
# Watched expressions: how they are read, where their names are looked up, and how a value is written.
# The agent has this file too, in front of agent/torch/watch.py. So it imports nothing, it runs on Python
# 3.4, and its names are unlike all others of the agent. read_locals() is that of _locals.py,
# and eval_in_frame() that of _variables.py.
MOST_WATCHED = 200  # characters of a value
MOST_CALLERS = 100


def split_watched(text):
    """At commas outside of brackets and quotes."""
    part, depth, quote = "", 0, ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        else:
            depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0 and not quote:
            yield part.strip()
            part = ""
        else:
            part += letter
    yield part.strip()


def parse_watched(text, file):
    """"loss", or "loss@train": in the innermost running function of that name. (code, function or None)"""
    expression, at, function = text.rpartition("@")
    if not at or not function.strip().isidentifier():
        expression, function = text, ""
    return compile(expression.strip(), file, "eval"), function.strip() or None


def find_watched(code, function, frame, read_locals, eval_in_frame):
    """(name of the function, value, exception); None if no frame has its names."""
    for _ in range(MOST_CALLERS):
        if frame is None:
            return None
        name = frame.f_code.co_name
        # Names of torch's own functions are meant only if they are asked for.
        ours = frame.f_code.co_filename == "<probing agent>" or function is None and str(
            frame.f_globals.get("__name__", "")).startswith("torch.")
        if not ours and (function is None or function == name):
            value, error = read_locals(frame, lambda own: evaluate_watched(eval_in_frame, code, frame, own))
            if function is not None or not isinstance(error, NameError):
                return name, value, error
        frame = frame.f_back
    return None


def evaluate_watched(eval_in_frame, code, frame, own):
    """(value, exception)"""
    try:
        return eval_in_frame(code, frame, own), None
    except Exception as error:
        return None, error.with_traceback(None)  # which has the variables


def shorten_watched(text):
    return text if len(text) <= MOST_WATCHED else text[:MOST_WATCHED - 1] + "\u2026"


def describe_watched(value, error):
    """The number, text and type of a value."""
    if error is not None:
        return None, shorten_watched(str(error)), type(error).__name__
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
    return number, shorten_watched(text), type(value).__name__

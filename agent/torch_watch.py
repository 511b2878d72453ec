# SPDX-License-Identifier: GPL-3.0-or-later
# Joins torch.py when expressions are watched: rows of python.variables at the end of each step of torch,
# as package/probing/_watch.py writes them at probing.step(). The agent adds:
#   torch_watched()     what probing.watch says, bytes
#   torch_variable(name, function, value, type, number, step)     bytes, a float or None, and an integer
MOST_VALUE = 200  # characters
MOST_CALLERS = 100
watch_now = [b"", []]  # what was parsed, and the expressions: (text, code, function or None)


def parse_watched(text):
    found = []
    for each in split(text.decode("utf-8", "replace")):
        expression, at, function = each.rpartition("@")
        if not at or not function.strip().isidentifier():
            expression, function = each, ""
        try:
            found.append((each, compile(expression.strip(), AGENT, "eval"), function.strip() or None))
        except SyntaxError:
            torch_variable(as_bytes(each), b"", b"this is no expression", b"SyntaxError", None, 0)
    return found


def find_value(code, function, frame):
    """(name of the function, value, exception), None: nobody has its names."""
    for _ in range(MOST_CALLERS):
        if frame is None:
            return None
        name = frame.f_code.co_name
        ours = frame.f_code.co_filename == AGENT
        # Names of torch's own functions are meant only if they are asked for.
        ours = ours or function is None and str(frame.f_globals.get("__name__", "")).startswith("torch.")
        if not ours and (function is None or function == name):
            try:
                return name, eval(code, frame.f_globals, frame.f_locals), None
            except NameError as error:
                if function is not None:
                    return name, None, error
            except Exception as error:
                return name, None, error
        frame = frame.f_back
    return None


def short_value(text):
    return clean(text if len(text) <= MOST_VALUE else text[:MOST_VALUE - 1] + "\u2026")


def value_parts(value, error):
    """(number, text, type)"""
    if error is not None:
        return None, short_value(str(error)), type(error).__name__
    number, kind = None, type(value)
    if hasattr(kind, "__float__") or hasattr(kind, "__index__"):
        try:
            number = float(value)
        except Exception:
            pass
    try:
        text = repr(value if number is None or isinstance(value, (int, float)) else number)
    except Exception as failed:
        text = "<repr() raised %s>" % type(failed).__name__
    return number, short_value(text), kind.__name__


def watch_values(step):
    text = torch_watched()
    if text != watch_now[0]:
        watch_now[:] = [text, parse_watched(text)]
    for name, code, function in watch_now[1]:
        found = find_value(code, function, sys._getframe(1))
        if found:
            number, value, kind = value_parts(*found[1:])
            torch_variable(as_bytes(name), as_bytes(found[0]), as_bytes(value), as_bytes(kind), number, step)
    return True

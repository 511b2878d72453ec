# SPDX-License-Identifier: GPL-3.0-or-later
# Joins torch.py when expressions are watched, behind package/probing/_watched.py: rows of python.variables
# at the end of each step of torch, as package/probing/_watch.py writes them at probing.step(). The agent
# adds:
#   torch_watched()     what probing.watch says, bytes
#   torch_variable(name, function, value, type, number, step)     bytes, a float or None, and an integer
load(13, "eval_in_frame")
watch_now = [b"", []]  # what was parsed, and the expressions: (text, code, function or None)


def read_watched(text):
    found = []
    for each in filter(None, split_watched(text.decode("utf-8", "replace"))):
        try:
            found.append((each,) + parse_watched(each, AGENT))
        except SyntaxError:
            torch_variable(as_bytes(each), b"", b"this is no expression", b"SyntaxError", None, 0)
    return found


def watch_values(step):
    text = torch_watched()
    if text != watch_now[0]:
        watch_now[:] = [text, read_watched(text)]
    for name, code, function in watch_now[1]:
        found = find_watched(code, function, sys._getframe(1), read_locals, eval_in_frame)
        if found:
            number, value, kind = describe_watched(*found[1:])
            torch_variable(as_bytes(name), as_bytes(found[0]), as_bytes(clean(value)), as_bytes(kind),
                           number, step)
    return True

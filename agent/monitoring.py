# SPDX-License-Identifier: GPL-3.0-or-later
# Joins breaks.py from 3.12 on: sys.monitoring calls only at lines of code that has a breakpoint, and
# once for each function that is first started from then on.
TOOLS = (4, 3, 5)  # of sys.monitoring: those that no kind of tool has for itself, first
tool = []


def watch(code):
    """Again, if it is: lines that were none are looked at once more."""
    line = sys.monitoring.events.LINE
    for number in list(tool):
        set_events(number, code, 0)
        set_events(number, code, line)
        if number not in tool:
            set_events(number, code, 0)


def set_events(number, code, events):
    """What raised here would be raised in the program, where another thread may take all back."""
    try:
        sys.monitoring.set_local_events(number, code, events)
    except ValueError:
        pass


def on_line(code, line):
    points = [each for each in list(breaks.values()) if each.line == line and each.has(code)]
    found = reached(points, sys._getframe(1)) if points else GONE
    return sys.monitoring.DISABLE if found is GONE else found


def on_start(code, _):
    started(code)
    return sys.monitoring.DISABLE


line_reached, code_started = guard(on_line), guard(on_start)


def unwatch(codes):
    for code in codes:
        for number in list(tool):
            set_events(number, code, 0)


def apply():
    """Each code is watched from the moment that it is known."""


def deaf():
    return 0


def begin():
    """Why nothing can be watched, None if it can."""
    if tool:
        return None
    monitoring = sys.monitoring
    for number in TOOLS:
        if monitoring.get_tool(number) is None:
            monitoring.use_tool_id(number, "probing")
            tool.append(number)
            monitoring.register_callback(number, monitoring.events.LINE, line_reached)
            monitoring.register_callback(number, monitoring.events.PY_START, code_started)
            monitoring.set_events(number, monitoring.events.PY_START)
            return None
    return "sys.monitoring has no place left: %s have them" % ", ".join(
        str(monitoring.get_tool(number)) for number in TOOLS)


def forget_breaks(*more):
    """All of them, and of what @more was just forgotten; by the first thread that does."""
    monitoring = sys.monitoring
    try:
        number = tool.pop()
    except IndexError:
        return
    points = list(breaks.values()) + [each for each in more if each]
    breaks.clear()
    # First what is called: without a GIL, the change of events waits for who is about to call it.
    monitoring.register_callback(number, monitoring.events.LINE, None)
    monitoring.register_callback(number, monitoring.events.PY_START, None)
    monitoring.set_events(number, 0)
    for point in points:
        for code in list(point.codes):
            monitoring.set_local_events(number, code, 0)
    monitoring.free_tool_id(number)

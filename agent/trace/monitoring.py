# SPDX-License-Identifier: GPL-3.0-or-later
# Joins breaks.py from 3.12 on: sys.monitoring calls only at lines of code that has a breakpoint, and
# once for each function that is first started from then on.
TOOLS = (4, 3, 5)  # ids of sys.monitoring: first those not reserved for a kind of tool
tool = []
calls_tool = []  # another: what on_start() turns off for code would be off for its calls, too
raises_tool = []  # of pausing.py


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
    points = [each for each in list(breaks.values()) if each.is_line(code, line) and each.has(code)]
    found = reached(points, sys._getframe(1)) if points else GONE
    return sys.monitoring.DISABLE if found is GONE else found


def on_start(code, _):
    started(code)
    return sys.monitoring.DISABLE


line_reached, code_started = guard(on_line), guard(on_start)


def unwatch(codes):
    for code in codes:
        for number in tool + calls_tool:
            set_events(number, code, 0)


def apply():
    """Each code is watched from the moment that it is known."""


def deaf():
    return 0


# {id of code: Slow}: of code that nothing else records calls of. agent/trace/quick.c measures these calls, and
# calls on_slow() with those that took long. The agent adds:
#   quick_watch(code, slot, nanoseconds)   False if there is no room; None, -1, 0: none is watched any more
#   quick_guard(begins, (function, function of slow ones))   what the interpreter may call in their place
#   quick_end(code, frame)   nanoseconds of a slow call that an exception ended, else 0
#   quick_counts(slot, clear)   bytes of numbers: calls by what they took, the longest, how many are not in there
quick = {}


def quicken():
    """Whenever calls of another function are recorded, or of one no more."""
    points = [each for each in list(breaks.values()) if each.calls]
    stop_quick()
    for point in points:
        for code in point.codes if point.slow and point.slot >= 0 else ():
            if sum(each.has(code) for each in points) == 1 and quick_watch(code, point.slot, point.least):
                quick[id(code)] = point


def stop_quick():
    quick_watch(None, -1, 0)
    quick.clear()


def on_call(code, _):
    entered(sys._getframe(1))


def on_return(code, value):
    left(sys._getframe(1), value)


def on_slow(took, value):
    frame = sys._getframe(1)
    point = quick.get(id(frame.f_code))
    if point:
        keep_late(point, frame, took, value, None)


def on_unwind(code, exception):
    frame, name = sys._getframe(1), type(exception).__name__
    point = quick.get(id(code))
    if not point:
        return left(frame, None, name)
    took = quick_end(code, id(frame))
    if took:
        keep_late(point, frame, took, None, name)


call_begins, call_ends = quick_guard(1, (on_call, on_call)), quick_guard(0, (on_return, on_slow))
call_fails = guard(on_unwind)


def take_tool(numbers, callbacks, everywhere):
    """Takes a free tool id for {event: function}, into @numbers. None, or why there is no free one."""
    monitoring = sys.monitoring
    for number in TOOLS:
        if numbers:
            return None
        if monitoring.get_tool(number) is None:
            monitoring.use_tool_id(number, "probing")
            numbers.append(number)
            for event, function in callbacks.items():
                monitoring.register_callback(number, event, function)
            # Code that an earlier tool with this id disabled stays disabled until events are restarted.
            monitoring.restart_events()
            monitoring.set_events(number, everywhere)
            return None
    return "sys.monitoring has no place left: %s have them" % ", ".join(
        str(monitoring.get_tool(number)) for number in TOOLS)


def begin():
    """Why nothing can be watched, None if it can."""
    events = sys.monitoring.events
    return take_tool(tool, {events.LINE: line_reached, events.PY_START: code_started}, events.PY_START)


def begin_calls():
    events = sys.monitoring.events
    return begin() or take_tool(calls_tool, {events.PY_START: call_begins, events.PY_RETURN: call_ends,
                                             events.PY_UNWIND: call_fails}, events.PY_UNWIND)


def watch_calls(code):
    events = sys.monitoring.events
    for number in list(calls_tool):
        set_events(number, code, events.PY_START | events.PY_RETURN)
        if number not in calls_tool:
            set_events(number, code, 0)


def begin_raises():
    event = sys.monitoring.events.RAISE
    return begin() or take_tool(raises_tool, {event: guard(on_raise_anywhere)}, event)


def on_raise_anywhere(code, exception):
    """An exception raised here would replace the program's own."""
    try:
        return raised(code, exception, sys._getframe(1), exception.__traceback__)
    except Exception:
        return None


def end_raises():
    read.clear()
    for number in taken(raises_tool):
        give_back(number)


def end_calls():
    for number in taken(calls_tool):
        give_back(number)


def forget_breaks(*more):
    """All of them, and of what @more was just forgotten; by the first thread that does."""
    numbers = taken(tool) + taken(calls_tool) + taken(raises_tool)
    if not numbers:
        return
    points = list(breaks.values()) + [each for each in more if each]
    breaks.clear()
    read.clear()
    stop_quick()
    for number in numbers:
        give_back(number, points)


def taken(numbers):
    try:
        return [numbers.pop()]
    except IndexError:
        return []


def give_back(number, points=()):
    monitoring, events = sys.monitoring, sys.monitoring.events
    # Remove the callbacks first: without a GIL, a change of events waits for threads that are about
    # to call them.
    for event in (events.LINE, events.PY_START, events.PY_RETURN, events.PY_UNWIND, events.RAISE):
        monitoring.register_callback(number, event, None)
    monitoring.set_events(number, 0)
    for point in points:
        for code in list(point.codes):
            monitoring.set_local_events(number, code, 0)
    monitoring.free_tool_id(number)

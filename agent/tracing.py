# SPDX-License-Identifier: GPL-3.0-or-later
# Joins breaks.py before 3.12: a function of agent/tracing.c is called when any function starts or
# returns, and at lines where code that has a breakpoint runs. It asks here what it does not know yet.
# The agent adds:
#   trace_begin(on_trace, on_code, on_gone, frame, start, start, room)  why threads cannot be traced, "":
#                 they are; on_gone() is called when the debugger has gone, frame is that of the caller,
#                 each start() begins a thread; room: calls of ours need some
#   trace_lines(bits, codes...)   what was said of code is asked again; bits has the lines that may have a
#                 breakpoint, and codes are known to have one
#   trace_deaf()  how many threads have a tracer or profiler of the program's own
#   trace_end()
OTHER, PLAIN, HAS = range(1, 4)  # code of another file, of one that has a breakpoint, that has one
LINES = 128  # bytes of their set: the rest that a line leaves has one bit


def on_trace(frame, line):
    points = [each for each in list(breaks.values()) if each.line == line and each.has(frame.f_code)]
    found = reached(points, frame) if points else None
    return None if found is GONE else found


def on_code(code):
    points = started(code)
    if not points:
        return OTHER
    return HAS if any(each.has(code) for each in points) else PLAIN


def begin():
    return trace_begin(on_trace, on_code, debugger_gone, sys._getframe(), _thread.start_new_thread,
                       _thread.start_new, sys.version_info < (3, 10)) or None


def watch(code):
    """Code is asked for when it starts, or goes on."""


def unwatch(codes):
    apply()


def apply():
    bits, codes = bytearray(LINES), []
    for each in list(breaks.values()):
        bits[each.line // 8 % LINES] |= 1 << each.line % 8
        codes += each.codes
    trace_lines(bytes(bits), *codes)


def deaf():
    return trace_deaf()


def forget_breaks(*more):
    breaks.clear()
    trace_end()

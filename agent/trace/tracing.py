# SPDX-License-Identifier: GPL-3.0-or-later
# Joins breaks.py before 3.12: a function of agent/trace/tracing.c is called when any function starts or
# returns, and at lines where code that has a breakpoint runs. It asks here what it does not know yet.
# The agent adds:
#   trace_begin(on_trace, on_code, on_gone, on_call, on_return, on_raise, on_catch, frame, start, start, room)  why
#                 threads cannot be traced, "": they are; on_gone() is called when the debugger has gone,
#                 on_call(frame), on_return(frame[, value]) and on_raise(frame, type) for code with CALLS,
#                 on_catch(frame, (type, exception, traceback)) for exceptions,
#                 frame is that of the caller, each start() begins a thread; room: 1 if calls of ours
#                 need some of the recursion limit, -1: they do, and there can be none
#   trace_lines(bits, catches, code, kind...)   what was said of code is asked again; bits has the lines that may
#                 have a breakpoint, codes are known to be of these kinds; catches: on_catch() is called
#   trace_depth() how deep the calls of this thread are, up to 3.9
#   trace_deaf()  how many threads have a tracer or profiler of the program's own
#   trace_end()
# What a code object is: in a file without breakpoints; in a file with one; has one itself; has its calls
# recorded. The last two may be combined.
OTHER, PLAIN, HAS, CALLS = 1, 2, 4, 8
BLOCKS = "SETUP_LOOP", "SETUP_EXCEPT", "SETUP_FINALLY", "SETUP_WITH", "SETUP_ASYNC_WITH"
LEAVES = "JUMP_ABSOLUTE", "CONTINUE_LOOP", "BREAK_LOOP"
LINES = 128  # bytes of their set: the rest that a line leaves has one bit


def on_trace(frame, line):
    points = [each for each in list(breaks.values()) if
              each.is_line(frame.f_code, line) and each.has(frame.f_code)]
    found = reached(points, frame) if points else None
    return None if found is GONE else found


def on_code(code):
    points = started(code)
    if not points:
        return OTHER
    return kind_of(points, code) or PLAIN


def kind_of(points, code):
    have = [each for each in points if each.has(code)]
    return any(not each.calls for each in have) * HAS | any(each.calls for each in have) * CALLS


def yields(frame):
    """Whether it only stops for now, as generators and coroutines do."""
    code, at, names = frame.f_code, frame.f_lasti, module("opcode").opmap
    if at < 0 or not code.co_flags & GENERATES:
        return False
    text, delegates = code.co_code, names.get("YIELD_FROM")
    return text[at] == names["YIELD_VALUE"] or (
        delegates is not None and delegates in (text[at], text[at + 2] if at + 2 < len(text) else None))


raising = {}  # {frame: name}: the newest exception in a frame, as long as it may leave it


def on_call(frame):
    entered(frame)


def on_raise(frame, kind):
    raising[frame] = getattr(kind, "__name__", "?")


def on_catch(frame, happened):
    """An exception raised here would replace the program's own. The end of an iteration has no traceback."""
    _, exception, trace = happened
    try:
        return raised(frame.f_code, exception, frame, trace) if trace is not None else None
    except Exception:
        return None


def on_return(frame, *value):
    """Without a value it is left by an exception."""
    error = raising.pop(frame, "an exception")
    if value and yields(frame):
        return
    left(frame, value[0] if value else None, None if value else error)


def depth_below(calls):
    return depth_below(calls - 1) if calls else trace_depth()


def begin():
    room = 0
    if sys.version_info < (3, 10):  # what is taken for the depth has to grow with each call
        room = 1 if [depth_below(calls) - depth_below(0) for calls in (1, 7)] == [1, 7] else -1
    return trace_begin(on_trace, on_code, owners_gone, on_call, on_return, on_raise, on_catch, sys._getframe(),
                       _thread.start_new_thread, _thread.start_new, room) or None


begin_calls = begin


def watch_calls(code):
    """Asked for, too."""


def quicken():
    """Each call takes the same way."""


def end_calls():
    raising.clear()
    apply()


def watch(code):
    """Code is asked for when it starts, or goes on."""


def unwatch(codes):
    apply()


def apply():
    bits, codes, points = bytearray(LINES), [], list(breaks.values())
    for each in points:
        for line in each.lines() if not each.calls else ():
            bits[line // 8 % LINES] |= 1 << line % 8
        codes += each.codes
    trace_lines(bytes(bits), any(each.raises for each in points), *[part for code in codes for part in (code, kind_of(points, code))])


def begin_raises():
    """Nothing but apply()."""
    return begin()


def end_raises():
    read.clear()
    apply()


def blocks_at(code, at):
    """Where exceptions at that offset go, the innermost last: before 3.11, only what begins and ends the blocks
    tells that."""
    instructions, following, kept = instructions_of(code)
    if not kept:
        kept.append(blocks_of(instructions, following))
    return [target for target in kept[0].get(at, ()) if target is not None]


def blocks_of(instructions, following):
    """{offset: the blocks that it is in}."""
    known, left = {}, [(0, ())]
    while left:
        offset, blocks = left.pop()
        if offset in known or offset not in instructions:
            continue
        known[offset], each = blocks, instructions[offset]
        if jumps(each):
            left.append((each.argval, blocks))
        if each.opname in BLOCKS:
            blocks += (each.argval if each.opname != "SETUP_LOOP" else None,)
        elif each.opname == "POP_BLOCK":
            blocks = blocks[:-1]
        if offset in following and not each.opname.startswith(ENDS + LEAVES):
            left.append((following[offset], blocks))
    return known


def deaf():
    return trace_deaf()


def forget_breaks(*more):
    breaks.clear()
    raising.clear()
    read.clear()
    trace_end()

# SPDX-License-Identifier: GPL-3.0-or-later
# Joins logpoints.py when a client first traces calls: entries and exits of functions, as spans in the ring
# python.trace_event. monitoring.py and tracing.py call entered() and left(). The agent adds:
#   put_span(kind, name, span, parent, nanoseconds, attributes)   kind: MAKE_RING only, SPAN_BEGIN, SPAN_END;
#                 nanoseconds -1: none; name and attributes are bytes. False if there can be no ring
#   span_parent()   the span of probing.span() that the calling task is in, 0: none
#   span_number()  a new one
import json
import time

MAKE_RING, SPAN_BEGIN, SPAN_END = 0, 1, 2
MAX_ATTRIBUTES = 2200  # bytes: a row takes little more
ALL_VALUES = 1500  # characters of all arguments of a call
VALUE = 200  # of one
PLACES = 5  # that are named

GENERATES = 0x20 | 0x80 | 0x200  # flags of code: generators, coroutines, asynchronous generators
stacks = {}  # {thread: [Call]}: calls in progress, the innermost last
briefs = {}  # {room: Brief}
LARGE = 1 << 64
PLAIN_TYPES = (float, bool, type(None))
busy = set()  # threads that are in entered() or left()


class Brief(Short):
    """Arguments: many, and often of much data."""

    def __init__(self, room):
        Short.__init__(self)
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = self.maxdeque = 6
        self.maxarray = 6
        self.maxstring = self.maxother = self.maxlong = max(20, room)
        self.maxlevel = 3

    def repr1(self, x, level):
        kind = type(x)
        # Printing a tensor reads its data, which a GPU may have.
        if hasattr(kind, "shape") and hasattr(kind, "dtype"):
            try:
                return "<%s %s %s>" % (kind.__name__, tuple(x.shape), x.dtype)
            except Exception:
                return "<%s>" % kind.__name__
        return Short.repr1(self, x, level)


def brief(value, room):
    kind = type(value)
    if kind in PLAIN_TYPES or kind is int and -LARGE < value < LARGE:
        return repr(value)
    made = briefs.get(room)
    if made is None:
        made = briefs[room] = Brief(room)
    try:
        text = clean(made.repr(value))
    except Exception as error:
        text = "<repr() raised %s>" % type(error).__name__
    return text if len(text) <= room else text[:room - 3] + "..."


class Call:
    """A call in progress."""

    def __init__(self, point, frame, arguments, now):
        self.arguments, self.began_at, self.error = arguments, now, None
        self.code = frame.f_code
        self.thread, self.number = get_ident(), span_number()
        self.around = span_parent()
        stack = stacks.get(self.thread)
        last = stack[-1] if stack else None
        # A span of the program that began within the last call is nearer than that call.
        self.parent = last.number if last and last.around == self.around else self.around
        if not frame.f_code.co_flags & GENERATES:
            stacks.setdefault(self.thread, []).append(self)
        self.began = 0.0

    def end(self):
        stack = stacks.get(self.thread, ())
        if self in stack:
            stack.remove(self)
        if not stack:
            stacks.pop(self.thread, None)


def key_of(frame):
    """A generator without references may end without an event from 3.13 on: it is not kept."""
    return frame if BY_TRACING or not frame.f_code.co_flags & GENERATES else id(frame)


class Calls(Logpoint):
    """Of all functions that have a name."""

    calls = True

    def __init__(self, name, found, condition, rate, owner):
        Logpoint.__init__(self, "", 0, condition, [], rate, owner)
        self.name, self.short, self.open = name, name.rpartition(".")[2], {}
        self.files = {code.co_filename for code in found}

    def is_of(self, code):
        return code.co_filename in self.files

    def add(self, code):
        """From 3.11 on code has its full name; before, a function that is made later counts if one
        part of a name was asked for."""
        for each in nested(code):
            full = getattr(each, "co_qualname", each.co_name).replace("<locals>.", "")
            if each.co_name == self.short and (full == self.name or full.endswith("." + self.name)):
                self.put(each)

    def put(self, code):
        if self.has(code):
            return
        if len(self.codes) < MAX_CODES:
            self.codes.append(code)
            watch_calls(code)
        else:
            self.lost += 1

    def enter(self, frame):
        before = time.perf_counter()
        key = key_of(frame)
        if BY_TRACING and key in self.open:
            return  # a generator goes on
        self.open.pop(key, None)  # of a generator that ended without an event, where this one is now
        try:
            if self.condition and not eval_in(frame, self.condition):
                return
        except Exception as error:
            self.problem = describe(error)
            return
        now = time.time()
        self.hits += 1
        if not self.may(now):
            self.skipped += 1
            return
        call = Call(self, frame, arguments_of(frame), now)
        self.open[key] = call
        self.write(SPAN_BEGIN, frame.f_code, call, -1, call.arguments)
        call.began = time.perf_counter()
        self.spent += call.began - before

    def leave(self, frame, value, error):
        call = self.open.pop(key_of(frame))
        end = time.perf_counter()
        took = end - call.began
        call.end()
        result = {"error": error} if error else {"result": brief(value, VALUE), "type": type(value).__name__}
        self.write(SPAN_END, frame.f_code, call, int(took * 1e9), result)
        self.rows += 1
        if self.follower:
            self.follower.add((call, frame.f_code, took * 1e3, result))
        self.spent += time.perf_counter() - end

    def write(self, kind, code, call, took, attributes):
        data = as_bytes(json.dumps(attributes))
        if len(data) > MAX_ATTRIBUTES:
            data = as_bytes(json.dumps({"left_out": "%d bytes of values" % len(data)}))
        self.keeps = put_span(kind, as_bytes(name_of(code)), call.number, call.parent, took,
                              data) and self.keeps

    def line_of(self, as_json, call, code, took, result):
        if as_json:
            told = {"timestamp": call.began_at, "function_name": name_of(code), "filename": code.co_filename,
                    "lineno": code.co_firstlineno, "thread": call.thread, "span_id": call.number,
                    "parent_id": call.parent or None, "arguments": call.arguments, "duration": took}
            return json.dumps(dict(told, **result))
        return "%s  %s(%s) %s  %.3f ms" % (
            clock(call.began_at), clean(name_of(code)),
            ", ".join("%s=%s" % (clean(name), value) for name, value in call.arguments.items()),
            "raised " + clean(result["error"]) if "error" in result else "-> " + result["result"], took)

    def shown(self):
        return "calls of " + self.name


def name_of(code):
    return getattr(code, "co_qualname", code.co_name).replace("<locals>.", "")


def arguments_of(frame):
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 4) + bool(code.co_flags & 8)
    wanted = code.co_varnames[:count]
    most = max(20, min(VALUE, ALL_VALUES // max(1, len(wanted))))
    return read_locals(frame, lambda own: {name: brief(own[name], most) for name in wanted if name in own})


def entered(frame):
    """A function is called, which may be one of them. The caller may be our own repr()."""
    thread = get_ident()
    if thread in busy:
        return
    busy.add(thread)
    try:
        for point in list(breaks.values()):
            if point.calls and point.has(frame.f_code):
                point.enter(frame)
    finally:
        busy.discard(thread)


def left(frame, value=None, error=None):
    thread = get_ident()
    if thread in busy:
        return
    busy.add(thread)
    try:
        for point in list(breaks.values()):
            call = point.open.get(key_of(frame)) if point.calls else None
            if call and call.code is frame.f_code:
                point.leave(frame, value, error)
    finally:
        busy.discard(thread)


def find_functions(text):
    """([code], name) of the functions with a name, of which the last part is enough; their module's
    name may precede it."""
    module, _, name = text.rpartition(":")
    tries = [(module, name)]
    if not module:
        parts = name.split(".")
        tries += [(".".join(parts[:i]), ".".join(parts[i:])) for i in range(len(parts) - 1, 0, -1)]
    for module, name in tries:
        found = functions_of(module, name)
        if found:
            return found, name
    return [], text


def functions_of(module, name):
    file = None
    if module:
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is None:
            return []
    short, found = name.rpartition(".")[2], {}
    for full, code in named():
        if code.co_name == short and (full == name or full.endswith("." + name)) and (
                file is None or code.co_filename == file):
            found[id(code)] = code
    return list(found.values())


def start_calls(job, text, condition, rate, seconds, mode):
    found, name = find_functions(text)
    if not found:
        return refuse(job, "no function of Python that is called '%s' is loaded" % clean(text))
    point = Calls(name, found, condition, int(rate), job)
    problem = put_break(point, begin_calls)
    if problem:
        return refuse(job, problem)
    # Here, not at the first call: it takes milliseconds.
    point.keeps = put_span(MAKE_RING, b"", 0, 0, 0, b"")
    for code in found:
        point.put(code)
    apply()
    say_places(job, point)
    return follow(job, point, float(seconds), mode)


def say_places(job, point):
    send(job, 2, "%s; a call gets some tens of microseconds slower%s\n" % (
        ", ".join(sorted({"%s (%s:%d)" % (clean(name_of(code)), clean(code.co_filename.rpartition("/")[2]),
                                          code.co_firstlineno) for code in point.codes})[:PLACES]) +
        (" and %d more" % (len(point.codes) - PLACES) if len(point.codes) > PLACES else ""),
        ", its lines several times, and all calls of the program by some 0.1 us" if BY_TRACING else
        ", and each exception that leaves a function by 1 us"))
    say_deaf(job, deaf())

# SPDX-License-Identifier: GPL-3.0-or-later
# Joins logpoints.py when a client first traces calls: entries and exits of functions, as spans in the ring
# python.trace_event. monitoring.py and tracing.py call entered() and left(). The agent adds:
#   put_span(kind, name, span, parent, nanoseconds, attributes)   kind: MAKE_RING only, SPAN_BEGIN, SPAN_END;
#                 nanoseconds -1: none; name and attributes are bytes. False if there can be no ring
#   span_parent()   the span of probing.span() that the calling task is in, 0: none
#   span_number()  a new one
import json
import time

try:
    from time import perf_counter_ns
except ImportError:  # before 3.7
    def perf_counter_ns():
        return int(time.perf_counter() * 1e9)

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

    calls, slow = True, False

    def __init__(self, name, found, condition, rate, owner):
        Logpoint.__init__(self, "", 0, condition, [], rate, owner)
        self.name, self.short, self.open = name, name.rpartition(".")[2], {}
        self.files = {code.co_filename for code in found}

    def is_of(self, code):
        return is_pattern(self.name) or code.co_filename in self.files

    def knows(self, frame):
        call = self.open.get(key_of(frame))
        return call is not None and call.code is frame.f_code

    def add(self, code):
        """From 3.11 on code has its full name; before, a function that is made later counts if one
        part of a name was asked for."""
        for each in nested(code):
            if is_called(each, name_of(each), self.name):
                self.put(each)

    def put(self, code):
        if self.has(code):
            return
        if len(self.codes) < MAX_CODES:
            self.codes.append(code)
            quicken()
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


class Late:
    """A call that took long, when it is over."""

    def __init__(self, frame, took):
        self.began_at, self.arguments = time.time() - took / 1e9, arguments_of(frame)
        self.thread, self.number, self.parent = get_ident(), span_number(), span_parent()


class Slow(Calls):
    """Keeps those calls alone that took long; of the others only how long they took. What a fast call
    costs is that: nothing is read of it."""

    slow = True

    def __init__(self, name, found, condition, rate, owner, least, mode):
        Calls.__init__(self, name, found, condition, rate, owner)
        # Columns and rows of the client's terminal, where the histogram is drawn again and again.
        self.room, self.drawn = [int(each) for each in mode.partition("t")[2].split(",") if each], 0
        self.least, self.begun = least, {}  # nanoseconds; {id of a frame: when it began}
        self.counts, self.longest = [0] * (65 * FINE), 0  # by place_of() what they took
        taken = {each.slot for each in list(breaks.values()) if each.slow}
        free = [number for number in range(0 if BY_TRACING else SLOTS) if number not in taken]
        self.slot = free[0] if free else -1  # of quick.c
        if free:
            quick_counts(self.slot, 1)
        self.said_at, self.said = time.monotonic(), 0

    def knows(self, frame):
        return id(frame) in self.begun

    def enter(self, frame):
        if not (BY_TRACING and frame.f_code.co_flags & GENERATES and id(frame) in self.begun):
            self.begun[id(frame)] = perf_counter_ns()

    def leave(self, frame, value, error):
        began = self.begun.pop(id(frame), 0)
        if began:
            self.over(frame, perf_counter_ns() - began, value, error)

    def over(self, frame, took, value, error):
        self.counts[place_of(took)] += 1
        self.longest = max(self.longest, took)
        if took >= self.least:
            self.keep(frame, took, value, error)

    def keep(self, frame, took, value, error):
        """Its arguments are those that it has at its end."""
        before = time.perf_counter()
        try:
            if self.condition and not eval_in(frame, self.condition):
                return
        except Exception as failure:
            self.problem = describe(failure)
            return
        self.hits += 1
        if not self.may(time.time()):
            self.skipped += 1
            return
        call = Late(frame, took)
        result = {"error": error} if error else {"result": brief(value, VALUE), "type": type(value).__name__}
        self.write(SPAN_END, frame.f_code, call, took, dict(result, arguments=call.arguments))
        self.rows += 1
        if self.follower:
            self.follower.add((call, frame.f_code, took / 1e6, result))
        self.spent += time.perf_counter() - before

    def look(self, job):
        """Says now and then how long calls took so far."""
        if len(self.begun) > UNENDED:  # generators that never end
            self.begun.clear()
        since = time.monotonic() - self.said_at
        if since < (DRAWN_EVERY if self.room else SAID_EVERY) and (self.drawn or not self.room):
            return
        counts, longest, lost = self.counted()
        self.said_at = time.monotonic()
        if sum(counts) <= self.said and (self.drawn or not self.room) or not any(counts):
            return
        self.said = sum(counts)
        told = [self.percentiles(counts, longest, lost)]
        if self.room:
            columns, rows = self.room
            self.wipe(job)
            told = [line[:columns - 1] for line in told + histogram(counts)[-max(1, rows - 3):]]
            self.drawn = len(told)
        send(job, 2, "".join(line + "\n" for line in told))

    def wipe(self, job):
        if self.drawn:
            send(job, 2, "\x1b[%dA\x1b[J" % self.drawn)
        self.drawn = 0

    def counted(self):
        """(calls by place, the longest, how many could not be measured)"""
        if self.slot < 0:
            return list(self.counts), self.longest, 0
        numbers = memoryview(quick_counts(self.slot, 0)).cast("q").tolist()
        lost, longest = numbers.pop(), numbers.pop()
        return [a + b for a, b in zip(self.counts, numbers)], max(longest, self.longest), lost

    def percentiles(self, counts, longest, lost):
        return "%d calls%s: %s, longest %s; %d of %s or more" % (
            sum(counts), " and %d that could not be measured" % lost if lost else "",
            ", ".join("p%g %s" % (part * 100, lasting(min(share_at(counts, part), longest)))
                      for part in PARTS_OF_ALL), lasting(longest), self.hits, lasting(self.least))

    def ended(self):
        counts, longest, lost = self.counted()
        if not any(counts):
            return "no call was over\n"
        return "".join(line + "\n" for line in [self.percentiles(counts, longest, lost)] + histogram(counts))

    def shown(self):
        return "calls of %s that take %s or more" % (self.name, lasting(self.least))


FINE = 16  # places of a doubling: a percentile is at most 1/16 too high
UNENDED, SLOTS = 1 << 17, 8
SAID_EVERY, DRAWN_EVERY = 10.0, 1.0  # seconds
PARTS_OF_ALL = (0.5, 0.9, 0.99, 0.999)
BAR = 40  # characters


def place_of(took):
    """As agent/trace/quick.c counts, too."""
    bits = (took | FINE).bit_length()
    return bits * FINE + ((took | FINE) >> bits - 5) % FINE


def share_at(counts, part):
    """What that part of all took at most."""
    left = part * sum(counts)
    for place, count in enumerate(counts):
        left -= count
        if left < 1e-9:
            return end_of(place)


def end_of(place):
    """Nanoseconds: what the longest call of a place took."""
    bits, fine = divmod(place, FINE)
    return ((FINE + fine + 1) << bits - 5) - 1


def lasting(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size * 0.9995:
            return "%.3g %s" % (ns / size, unit)
    return "%d ns" % ns


def histogram(counts):
    """Lines, one for a doubling of the time."""
    octaves = [sum(counts[at:at + FINE]) for at in range(0, len(counts), FINE)]
    some = [number for number, count in enumerate(octaves) if count]
    return ["  below %9s %9d  %s" % (lasting(end_of(each * FINE + FINE - 1)), octaves[each],
                                     "#" * -(-octaves[each] * BAR // max(octaves)))
            for each in range(some[0], some[-1] + 1)]


def is_pattern(name):
    return "*" in name or "?" in name


def is_called(code, full, name):
    """Whether that is its name, or the end of it, or a pattern of either."""
    if is_pattern(name):
        import fnmatch

        return fnmatch.fnmatchcase(full, name) or fnmatch.fnmatchcase(full, "*." + name)
    return code.co_name == name.rpartition(".")[2] and (full == name or full.endswith("." + name))


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
            if point.calls and point.knows(frame):
                point.leave(frame, value, error)
    finally:
        busy.discard(thread)


def keep_late(point, frame, took, value, error):
    thread = get_ident()
    if thread in busy:
        return
    busy.add(thread)
    try:
        point.keep(frame, took, value, error)
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
    found = {}
    for full, code in named():
        if is_called(code, full, name) and (file is None or code.co_filename == file):
            found[id(code)] = code
    return list(found.values())


def start_calls(job, text, condition, rate, seconds, mode, slower=""):
    """@slower: seconds; only calls that take so long are kept."""
    found, name = find_functions(text)
    if not found:
        return refuse(job, "no function of Python that is called '%s' is loaded" % clean(text))
    if slower:
        point = Slow(name, found, condition, int(rate), job, int(float(slower) * 1e9), mode)
    else:
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
    cost = "a call gets some tens of microseconds slower"
    if point.slow:
        cost = "a fast call gets %s slower" % ("some microseconds" if BY_TRACING else "less than a microsecond")
    send(job, 2, "%s; %s%s\n" % (
        ", ".join(sorted({"%s (%s:%d)" % (clean(name_of(code)), clean(code.co_filename.rpartition("/")[2]),
                                          code.co_firstlineno) for code in point.codes})[:PLACES]) +
        (" and %d more" % (len(point.codes) - PLACES) if len(point.codes) > PLACES else ""), cost,
        ", its lines several times, and all calls of the program by some 0.1 us" if BY_TRACING else
        ", and each exception that leaves a function by 1 us"))
    say_deaf(job, deaf())

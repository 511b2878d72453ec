# SPDX-License-Identifier: GPL-3.0-or-later
# Joins breaks.py when a client first traces: breakpoints that record values and stop nothing. Rows go to
# the ring python.trace_variables, and to the client that follows. The agent adds:
#   put_row(function, file, line, name, value, type)   bytes and a number; False if there can be no ring
import reprlib

FOLLOWED = 10000  # rows that wait for a client
LOOK = 0.25  # seconds, at whether the client is there
PARTS = 64  # expressions of a logpoint
BY_TRACING = sys.version_info < (3, 12)
OPEN, CLOSE = "([{", ")]}"


class Short(reprlib.Repr):
    """repr() of what may be large: a part of it, and no more work than for that."""

    def __init__(self):
        reprlib.Repr.__init__(self)
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = 20
        self.maxdeque = self.maxarray = 20
        self.maxstring = self.maxother = self.maxlong = 500
        self.maxlevel = 4


def clean(text):
    """What a terminal would act on is written as an escape."""
    return text if text.isprintable() else "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def shown(value):
    """(text, type) of a value; an exception of its repr() is said in its place."""
    kind = type(value)
    try:
        return clean(Short().repr(value)), kind.__name__
    except Exception as error:
        return "<repr() raised %s>" % type(error).__name__, kind.__name__


def split(text):
    """At its commas, but for those within brackets or quotes."""
    parts, depth, quote, start, at = [], 0, "", 0, 0
    while at < len(text):
        c = text[at]
        if quote:
            if c == "\\":
                at += 1
            elif text.startswith(quote, at):
                at += len(quote) - 1
                quote = ""
        elif c in "'\"":
            quote = c * 3 if text.startswith(c * 3, at) else c
            at += len(quote) - 1
        elif c in OPEN:
            depth += 1
        elif c in CLOSE:
            depth -= 1
        elif c == "," and not depth:
            parts.append(text[start:at].strip())
            start = at + 1
        at += 1
    parts.append(text[start:].strip())
    return [each for each in parts if each]


class Follower:
    """A client that waits for rows, which line(as_json, *row) makes text of."""

    def __init__(self, job, as_json, line):
        self.job, self.as_json, self.line = job, as_json, line
        self.rows, self.lost = module("collections").deque(), 0
        # Released once for each time that it is waited for: a second one, before the waiter has noticed
        # the first, would end the process in a debug build of 3.13 and 3.14.
        self.wake, self.releases = _thread.allocate_lock(), [None]
        self.wake.acquire()

    def add(self, row):
        if len(self.rows) >= FOLLOWED:
            self.lost += 1
            return
        self.rows.append(row)
        try:
            self.releases.pop()
        except IndexError:
            return
        self.wake.release()

    def wait(self, seconds):
        """Until there are rows, or so long."""
        if self.wake.acquire(True, seconds):
            self.releases.append(None)

    def print(self):
        """False if the client is gone."""
        lines = []
        while self.rows and len(lines) < 1000:
            lines.append(self.line(self.as_json, *self.rows.popleft()))
        if self.lost:
            lost, self.lost = self.lost, 0
            send(self.job, 2, "%d rows came faster than they were printed\n" % lost)
        return not lines or send(self.job, 1, "\n".join(lines) + "\n")


def clock(when):
    time = module("time")
    return "%s.%06d" % (time.strftime("%H:%M:%S", time.localtime(when)), when % 1 * 1e6)


class Logpoint(Break):
    logs = True

    def __init__(self, file, line, condition, parts, rate, owner):
        Break.__init__(self, file, line, condition)
        self.parts = [(each, compile(each, AGENT, "eval")) for each in parts]
        self.rate, self.second, self.left = rate, 0, rate
        self.rows, self.skipped, self.follower, self.owner = 0, 0, None, owner
        self.keeps, self.spent = True, 0.0

    def may(self, now):
        """Whether the rate allows one more."""
        if int(now) != self.second:
            self.second, self.left = int(now), self.rate
        self.left -= 1
        return self.left >= 0

    def log(self, frame):
        """At its line; what it raises is never the program's."""
        time = module("time")
        try:
            if self.condition and not eval_in(frame, self.condition):
                return
        except Exception as error:
            self.problem = describe(error)
            return
        began, now = time.perf_counter(), time.time()
        self.hits += 1
        if not self.may(now):
            self.skipped += 1
            return
        values = read_locals(frame, lambda own: self.values_in(frame, own))
        self.record(now, frame, values)
        self.spent += time.perf_counter() - began

    def values_in(self, frame, own):
        values = []
        for text, code in self.parts:
            try:
                values.append((text,) + shown(eval_in_frame(code, frame, own)))
            except Exception as error:
                values.append((text, clean(describe(error)), "error"))
        return values

    def record(self, now, frame, values):
        function, file = getattr(frame.f_code, "co_qualname", frame.f_code.co_name), frame.f_code.co_filename
        for name, value, kind in values:
            self.keeps = put_row(as_bytes(function), as_bytes(file), self.line, as_bytes(name),
                                 as_bytes(value), as_bytes(kind)) and self.keeps
        self.rows += 1
        if self.follower:
            self.follower.add((now, function, file, self.line, values))

    def line_of(self, as_json, when, function, file, number, values):
        """What a client prints of a row."""
        if as_json:
            return module("json").dumps({"timestamp": when, "function_name": function, "filename": file,
                               "lineno": number, "values": {name: value for name, value, _ in values},
                               "types": {name: kind for name, _, kind in values}})
        return "%s  %s %s:%d  %s" % (
            clock(when), clean(function), clean(file.rpartition("/")[2]), number,
            "  ".join("%s=%s" % (name, value) for name, value, _ in values))

    def look(self, job):
        """What is to be done now and then."""

    def wipe(self, job):
        """Erases what look() drew."""

    def ended(self):
        """What is said at its end."""
        return ""

    def shown(self):
        return "%s:%d" % (self.file, self.line)

    def told(self):
        text = "%d  %s" % (self.number, self.shown())
        if self.text:
            text += " if %s" % self.text
        text += "  %shit %d times" % (
            ", ".join(name for name, _ in self.parts) + "  " if self.parts else "", self.hits)
        if self.skipped:
            text += ", %d over the rate" % self.skipped
        if self.problem:
            text += ", the condition raised %s" % self.problem
        return clean(text)

    problem = ""


def as_bytes(text):
    return text.encode("utf-8", "backslashreplace")


def trace(job, source):
    """A request, in lines: what, then its words."""
    words = source.decode("utf-8", "surrogateescape").split("\n")
    if words[0] == "list":
        send(job, 1, "".join(each.told() + "\n" for each in logpoints()) or "no logpoints\n")
        return DONE
    if words[0] == "clear":
        return clear(job, words[1])
    if words[0] == "break":
        return load(14, "pausing_request")(job, words[1:])
    try:
        if words[0] == "calls":
            return load(8, "start_calls")(job, *words[1:])
        return start(job, *words[1:])
    except SyntaxError as error:
        return refuse(job, "'%s' is no expression: %s" % (clean((error.text or "").strip()), error.msg))


def logpoints():
    return [each for each in list(breaks.values()) if each.logs]


def refuse(job, text):
    send(job, 2, "%s\n" % text)
    return RAISED


def clear(job, number):
    found = [each for each in logpoints() if not number or str(each.number) == number]
    if number and not found:
        return refuse(job, "there is no logpoint %s" % clean(number))
    for each in found:
        forget(each.number)
    send(job, 1, "%d removed\n" % len(found))
    return DONE


def start(job, file, line, condition, text, rate, seconds, mode):
    parts = split(text)
    if len(parts) > PARTS:
        return refuse(job, "there are over %d expressions" % PARTS)
    made = []

    def make(*place):
        made.append(Logpoint(*place, parts=parts, rate=int(rate), owner=job))
        return made[0]

    answer = add(file, int(line), condition, make)
    if "near" in answer:
        return refuse(job, "line %s of %s has no code that runs: lines %s have" % (
            line, ", ".join(map(clean, answer["files"])), ", ".join(map(str, answer["near"]))))
    if "problem" in answer:
        return refuse(job, answer["problem"])
    say_cost(job, answer)
    return follow(job, made[0], float(seconds), mode)


def say_cost(job, answer):
    places = sorted({name for _, name in answer["places"]})
    if places:
        send(job, 2, "in %s" % ", ".join(map(clean, places)))
    else:
        send(job, 2, "no code of that file is loaded yet: it is watched for")
    send(job, 2, "; the line gets some microseconds slower each time%s\n" % (
        ", its function several times slower, and all calls of the program by some 0.1 us"
        if BY_TRACING else ", and nothing else"))
    say_deaf(job, answer["deaf"])


def say_deaf(job, count):
    if count:
        send(job, 2, "%d threads have a tracer of their own and are not seen\n" % count)


def follow(job, point, seconds, mode):
    """Until the client leaves, or the time is over."""
    time = module("time")
    keeps, prints = "k" in mode, "f" in mode
    if keeps and not prints and not seconds:
        send(job, 1, "logpoint %d\n" % point.number)
        return DONE
    follower = Follower(job, "j" in mode, point.line_of)
    point.follower = follower if prints else None
    end = time.monotonic() + seconds if seconds else None
    try:
        while (end is None or time.monotonic() < end) and breaks.get(point.number) is point:
            follower.wait(LOOK if end is None else max(0.0, min(LOOK, end - time.monotonic())))
            if follower.rows:
                point.wipe(job)
            if not follower.print():
                break
            point.look(job)
        point.wipe(job)
        follower.print()
    except KeyboardInterrupt:
        point.wipe(job)
        follower.print()
    finally:
        point.follower = None
        if not keeps:
            forget(point.number)
    say_end(job, point)
    return DONE


def say_end(job, point):
    told = point.ended()
    if told:
        send(job, 2, told)
    send(job, 2, "recorded %d times%s%s%s%s\n" % (
        point.rows, " (%.1f us each)" % (point.spent / point.rows * 1e6) if point.rows else "",
        ", %d times over the rate were left out" % point.skipped if point.skipped else "",
        ", the condition raised %s" % clean(point.problem) if point.problem else "",
        "" if point.keeps else ", without a file: no folder for rings can be made"))

# SPDX-License-Identifier: GPL-3.0-or-later
# Joins bootstrap.py when a debugger first asks for a breakpoint: those at lines, which monitoring.py has
# the interpreter call us at from 3.12 on, and tracing.py before. The agent adds:
#   guard(function)  what the interpreter may call in its place: text that it gives stops the thread
#   step(thread, stride, line)  why not, b"": the thread stops at its next line
#   stands(thread)   whether it is stopped at a line; raises(thread, exception): … and raises it, when it goes on
#   pauser()         GONE, HOLDS, STEPS: what a stop at a breakpoint of a pause (pausing.py) would be good for
#   listener(how)    NOBODY, LISTENS, NOT_NOW: what a stop would be good for; how: 0 at a glance, 1 for
#                    sure, 2 to be called once when the debugger is there
# Both files have:
#   begin()          why nothing can be watched, None if it can
#   watch(code), unwatch(codes)   those that have a breakpoint
#   begin_calls(), watch_calls(code), end_calls()   the same of those whose calls are recorded (calls.py)
#   begin_raises(), end_raises()   the same of exceptions: raised() of pausing.py is called
#   apply()          once all is known that is to be watched
#   deaf()           how many threads cannot stop
#   forget_breaks(*more)   all breakpoints, and those of @more that were just forgotten
NOBODY, LISTENS, NOT_NOW = range(3)
GONE_PAUSE, HOLDS, STEPS = range(3)
GLANCE, SURE, BEGINS = range(3)
MAX_CODES = 1000  # of a breakpoint
MAX_PLACES = 40  # functions of one name that a breakpoint may stop in
NAMES = 10000  # of a dict that is looked through
NEAR = 4  # lines that are proposed
FROZEN = 1000  # objects, which 3.12 itself freezes when it starts
OF_FUNCTION = 1  # a flag of the code of functions, which class bodies and modules lack
# Instructions that nothing behind them follows.
ENDS = ("JUMP_FORWARD", "JUMP_BACKWARD", "RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE")
RUNNERS = "runpy.py", "<frozen runpy>"  # files of what runs a module for `python -m`
BYTES_FOLLOWED = 40000  # bytes of code: the program waits meanwhile
NOWHERE = -1  # the line of a function that is not loaded yet
Code, Function = type(gone.__code__), type(gone)
GONE = object()
FREE_THREADED = "free-threading" in sys.version
breaks = {}  # {number: Break}
read = {}  # {id: (code, …)} that exceptions came through; see instructions_of() of pausing.py
counted = [0]
load(13, "eval_in_frame")


def eval_in(frame, code):
    return read_locals(frame, lambda own: eval_in_frame(code, frame, own))


class Break:
    logs = False  # it stops, for a debugger; see logpoints.py
    pauses = False  # not for a debugger, but for who paused the process; see pausing.py
    raises = False  # of exceptions instead; see pausing.py
    calls = False  # of functions instead of a line; see calls.py
    slow = False  # of those, only what takes long
    moves = False  # from a line without code to the next one with some
    wanted = None  # (module, function) that is not loaded yet
    number = 0  # that the debugger wants it to have
    short = None  # its name: what else is on the line does not count

    def __init__(self, file, line, condition):
        posixpath = module("posixpath")
        self.file, self.line, self.text = posixpath.normpath(file), line, condition
        self.normal = posixpath.normpath
        self.base = posixpath.basename(file)
        self.condition = compile(condition, AGENT, "eval") if condition else None
        self.codes, self.lost, self.hits = [], 0, 0
        self.enabled, self.once, self.ident, self.ignore, self.met, self.hit = True, False, 0, 0, 0, None
        self.hit_text = ""
        self.others = frozenset()  # (file, line) of further functions of its name

    def is_of(self, code):
        """Whether it is code of its files."""
        return self.is_of_first(code) or any(file == code.co_filename for file, _ in self.others)

    def is_of_first(self, code):
        """The file may be given by the end of its path."""
        if not code.co_filename.endswith(self.base):
            return False
        name = self.normal(code.co_filename)
        return name == self.file or name.endswith("/" + self.file) or (
            not name.startswith("/") and self.file.endswith("/" + name))

    def lines(self):
        return {self.line} | {line for _, line in self.others}

    def is_line(self, code, line):
        """Of its code, whether it stops at that line."""
        if not self.others:
            return line == self.line
        return (code.co_filename, line) in self.others or line == self.line and self.is_of_first(code)

    def has(self, code):
        return any(each is code for each in self.codes)

    def add(self, code):
        """This and what is defined in it, as far as it has the line."""
        for each in nested(code):
            if any(self.is_line(each, line) for line in lines_of(each)):
                self.put(each)

    def put(self, code):
        if self.has(code) or self.short not in (None, code.co_name):
            return
        if len(self.codes) < MAX_CODES:
            self.codes.append(code)
            watch(code)
        else:
            self.lost += 1

    def wait_for(self, module, name):
        """Until a function of that name is loaded."""
        self.wanted, self.file, self.base, self.line = (module, name), name, name, NOWHERE
        self.short = name.rpartition(".")[2]

    def comes_with(self, code):
        """Whether the function that it waits for is in this code, which has just begun to run."""
        module, name = self.wanted or (None, None)
        if not self.wanted or module and getattr(sys.modules.get(module), "__file__", None) != code.co_filename:
            return False
        for full, each in named_in(code):
            if full == name or full.endswith("." + name):
                self.wanted, self.file, self.line = None, self.normal(each.co_filename), first_line(each)
                self.base = each.co_filename.rpartition("/")[2]
                return True
        return False

    def settle(self, code):
        """A file begins to be loaded: where there is no code, it moves to the next line that has."""
        if self.moves and not self.codes and code.co_name == "<module>":
            lines = {line for each in nested(code) for line in lines_of(each)}
            self.line = next_line(lines, self.line)

    def only(self, hit="", once=False, ident=0, ignore=0):
        """Further limits: Python over `hits`, how often it was met; one time; one thread; so many times
        later."""
        self.hit = compile(hit, AGENT, "eval") if hit else None
        self.hit_text, self.once, self.ident, self.ignore = hit, once, ident, ignore

    def comes(self, frame):
        """Whether a thread that is there stops: what its conditions raised, or ""; None: it goes on."""
        if not self.enabled or self.ident and get_ident() != self.ident:
            return None
        problem = ""
        try:
            if self.condition and not eval_in(frame, self.condition):
                return None
        except Exception as error:
            problem = describe(error)
        self.met += 1
        try:
            if self.hit and not eval(self.hit, {"hits": self.met}):
                return None
        except Exception as error:
            problem = problem or describe(error)
        if self.ignore:
            self.ignore -= 1
            return None
        return problem

    def stops(self, frame):
        """The text for the debugger; None: the thread goes on."""
        problem = self.comes(frame)
        return None if problem is None else ("%d %s" % (self.number, problem)).encode(
            "utf-8", "backslashreplace")

    def change(self, what, value):
        """What was asked for: enable, disable, ignore, condition."""
        if what == "ignore":
            self.ignore = int(value)
        elif what == "condition":
            self.condition = compile(value, AGENT, "eval") if value else None
            self.text = value
        else:
            self.enabled = what == "enable"

    def told(self):
        return {"number": self.number, "file": self.file, "line": max(self.line, 0),
                "condition": self.text, "hits": self.hits, "lost": self.lost, "enabled": self.enabled,
                "once": self.once, "ignore": self.ignore, "one_thread": self.ident != 0,
                "others": sorted(self.others),
                "places": [(each.co_filename, getattr(each, "co_qualname", each.co_name))
                           for each in self.codes],
                "deaf": deaf()}


def describe(error):
    try:
        return "%s: %s" % (type(error).__name__, error)
    except Exception:
        return type(error).__name__


def nested(code):
    yield code
    for each in code.co_consts:
        if type(each) is Code:
            yield from nested(each)


def named_in(code, prefix=""):
    """(name, code) of this and what is defined in it."""
    name = getattr(code, "co_qualname", prefix + code.co_name).replace("<locals>.", "")
    yield name, code
    for each in code.co_consts:
        if type(each) is Code:
            yield from named_in(each, "" if code.co_name == "<module>" else name + ".")


def next_line(lines, line):
    """It, or the first one behind it."""
    return min((each for each in lines if each >= line), default=line)


def lines_of(code):
    """Where it may stop: behind what each call begins with."""
    if sys.version_info < (3, 11):
        return {line for _, line in module("dis").findlinestarts(code)}
    text, at, opcodes = code.co_code, 0, module("opcode").opmap
    while at < len(text) and text[at] != opcodes["RESUME"]:
        at += 2
    at += 2
    while at < len(text) and text[at] == opcodes["CACHE"]:  # from 3.15 on it has one
        at += 2
    return {line for _, end, line in code.co_lines() if line and end > at}


def paused_at(points, frame):
    """What is said of the stop at these breakpoints of a pause; None: the thread goes on."""
    if pauser() == GONE_PAUSE:
        owners_gone()
        return None
    if evaluating():
        return None
    found = [text for text in [point.stops(frame) for point in points] if text]
    return found[0] if found else None


def reached(points, frame):
    """A line that has these, in that frame: the text to stop with, None, or GONE: there is no
    debugger. All points that stop there count; the first says what went wrong."""
    for point in points:
        if point.logs:
            point.log(frame)
    pausing = [point for point in points if point.pauses]
    found = paused_at(pausing, frame) if pausing else None
    if found:
        return found
    points = debuggers(points)
    if not points:
        return None if breaks else GONE
    heard = listener(GLANCE)
    if heard == NOT_NOW and evaluating():
        return None
    stops = [(point, point.stops(frame)) for point in points if heard != NOBODY]
    stops = [(point, text) for point, text in stops if text]
    if stops:
        heard = listener(SURE)
    if stops and heard != NOBODY:
        for point, _ in stops:
            point.hits += 1
            if point.once:
                forget(point.number)
        # "1+3 PROBLEM": the debugger may have disabled some of them.
        numbers = b"+".join(text.split()[0] for _, text in stops)
        return numbers + b" " + stops[0][1].partition(b" ")[2]
    if heard == NOBODY:
        debugger_gone()
        return None if breaks else GONE
    return None


def debugger_gone():
    """Removes the breakpoints that stop for a debugger, since there is none."""
    remove(debuggers(breaks.values()))


def debuggers(points):
    return [point for point in list(points) if not (point.logs or point.pauses)]


def remove(points):
    if points and len(points) == len(breaks):
        forget_breaks()
    for point in points:
        forget(point.number)


def owners_gone():
    """Removes the breakpoints for which nobody is there."""
    if listener(GLANCE) == NOBODY:
        debugger_gone()
    if pauser() == GONE_PAUSE:
        remove([point for point in list(breaks.values()) if point.pauses])


def started(code):
    """Code that was not seen before: the breakpoints of its file, which may be in it from now on."""
    owners_gone()
    points, moved = [], False
    for point in list(breaks.values()):
        line = point.line
        if point.comes_with(code) or point.is_of(code):
            points.append(point)
            point.settle(code)
            point.add(code)
        moved |= point.line != line
    if moved:
        apply()
    return points


def forget(number):
    """Removes a breakpoint; with the last one, all hooks."""
    point = breaks.pop(number, None)
    rest = list(breaks.values())
    if not rest:
        forget_breaks(point)
    elif point:
        unwatch([code for code in point.codes if not any(each.has(code) for each in rest)])
        if not any(each.calls for each in rest):
            end_calls()
        if point.raises and not any(each.raises for each in rest):
            end_raises()
        quicken()


def loaded():
    """The code of all functions there are, of what was suspended, and of what runs."""
    objects = module("gc").get_objects()
    yield from suspended(objects)
    if FREE_THREADED:
        # Other threads run on, and free the frames that we would look at. What runs is listed: 3.14
        # has all code, and 3.13 functions but those from before its second thread, which last.
        yield from defined([each for each in objects if type(each) is dict and len(each) < NAMES] +
                           list(sys.modules.values()))
    else:
        yield from running()


def suspended(objects):
    types = module("types")
    have = {Function: "__code__", types.GeneratorType: "gi_code", types.CoroutineType: "cr_code",
            types.AsyncGeneratorType: "ag_code"}
    for each in objects:
        name = have.get(type(each))
        if name:
            yield getattr(each, name)
        elif type(each) is Code:
            yield each


def defined(left):
    """In modules, classes and dicts, and what they wrap. Nothing of theirs is called."""
    Module = type(sys)
    of_module, of_class = (each.__dict__["__dict__"].__get__ for each in (Module, type))
    seen = set()
    while left:
        each = left.pop()
        kind = type(each)
        if id(each) in seen:
            continue
        seen.add(id(each))
        if kind is Function:
            yield each.__code__
            left += [value for cell in each.__closure__ or () for value in content(cell)]
        elif kind in (staticmethod, classmethod):
            left.append(each.__func__)
        elif kind is property:
            left += [each.fget, each.fset, each.fdel]
        elif kind is dict:
            left += [value for value in list(each.values()) if type(value) is Function]
        elif issubclass(kind, Module):
            left += list((of_module(each) or {}).values())
        elif issubclass(kind, type):
            left += list(of_class(each).values())


def content(cell):
    try:
        return [cell.cell_contents]
    except ValueError:
        return []


def running():
    """The code objects that run now. For the GIL holder."""
    for frame in current_frames().values():
        while frame:
            yield frame.f_code
            frame = frame.f_back


def first_line(code):
    """Where its own code begins: behind what each call begins with."""
    if sys.version_info < (3, 11):
        return next((line for _, line in module("dis").findlinestarts(code)), code.co_firstlineno)
    return min(lines_of(code) - {code.co_firstlineno}, default=code.co_firstlineno)


def places_of(module, name):
    """[(file, line)] of the functions of that name, else of those whose names end in it."""
    short, file = name.rpartition(".")[2], None
    if module:
        file = getattr(sys.modules.get(module), "__file__", None)
        if file is None:
            return []
    whole, ends = set(), set()
    for full, code in named():
        if code.co_name == short and code.co_filename != AGENT and (file is None or code.co_filename == file):
            if full == name:
                whole.add((code.co_filename, first_line(code)))
            elif full.endswith("." + name):
                ends.add((code.co_filename, first_line(code)))
    return sorted(whole or ends)


def named():
    """(name, code) of all functions; of those inside of others, as "outer.inner"."""
    seen, names = set(), {}
    if sys.version_info < (3, 11):
        names = {id(each.__code__): each.__qualname__ for each in module("gc").get_objects() if type(each) is Function}
    for code in loaded():
        outer = names.get(id(code), "").rpartition(".")[:2]
        for name, each in named_in(code, "".join(outer).replace("<locals>.", "")) if type(code) is Code else ():
            if id(each) not in seen:
                seen.add(id(each))
                yield name, each


def add_function(module, name, condition, make=Break, waits=False):
    """@waits: for a function that is not loaded yet."""
    places = places_of(module, name)
    if not places and waits:
        point = make("", 0, condition)
        point.wait_for(module, name)
        return set_point(point, [])
    if not 1 <= len(places) <= MAX_PLACES:
        return {"several": places}
    return add(places[0][0], places[0][1], condition, make, name.rpartition(".")[2], places[1:])


def add(file, line, condition, make=Break, short=None, others=()):
    point = make(file, line, condition)
    point.short, point.others = point.short or short, frozenset(others)
    ours = {id(code): code for code in loaded() if type(code) is Code and point.is_of(code)}
    ahead = offsets_ahead()
    found = [pair for code in list(ours.values()) for pair in alive(code, ahead.get(id(code)))]
    lines = {each for _, of in found for each in of}
    # What was frozen is not listed, and shows when it is called.
    if lines and line not in lines and getattr(module("gc"), "get_freeze_count", int)() < FROZEN:
        if point.moves:
            point.line = next_line(lines, line)
        if point.line == line:
            near = sorted(sorted(lines, key=lambda other: abs(other - line))[:NEAR])
            return {"near": near, "files": sorted({code.co_filename for code in ours.values()})}
    return set_point(point, [code for code, of in found if any(point.is_line(code, each) for each in of)])


def set_point(point, codes):
    """Has it stop in these, and in what is loaded later."""
    problem = put_break(point, begin)
    if problem:
        return {"problem": problem}
    if debuggers([point]):
        listener(BEGINS)
    for code in codes:
        point.put(code)
    apply()
    return point.told() if not point.logs else Break.told(point)


def alive(code, offsets=None):
    """(code, lines) of this and what is defined in it, without what has run and will not again: of code that
    runs once, only what is at these @offsets is left."""
    dis, lines, coming = module("dis"), lines_of(code), set()
    if offsets is not None:
        starts = list(dis.findlinestarts(code))
        rest = [each for each in dis.get_instructions(code) if each.offset in offsets]
        coming = {id(each.argval) for each in rest}
        # A jump into a line begins it anew, wherever it leads to, and so does an exception.
        to = [each.argval for each in rest if jumps(each)]
        to += [target for _, _, target in handlers(code) if target in offsets] if sys.version_info >= (3, 11) else []
        lines &= {line for at, line in starts if at in offsets} | {
            max((start for start in starts if start[0] <= at), default=(0, 0))[1] for at in to}
    yield code, lines
    for each in code.co_consts:
        if type(each) is Code:
            gone = offsets is not None and not each.co_flags & OF_FUNCTION and id(each) not in coming
            yield from alive(each, set() if gone else None)


def offsets_ahead():
    """{id(code): offsets that it can still come to} of the program's file, which is run once. Other code of
    modules may be kept, and run again."""
    if FREE_THREADED:
        return {}
    main, found = sys.modules.get("__main__"), {}
    main = main.__dict__ if type(main) is type(sys) else None
    for frame in current_frames().values():
        while frame:
            code, caller = frame.f_code, frame.f_back
            runs_once = caller is None or caller.f_code.co_filename.endswith(RUNNERS)
            if code.co_name == "<module>" and frame.f_globals is main and runs_once and len(code.co_code) < BYTES_FOLLOWED:
                found[id(code)] = ahead_of(code, frame.f_lasti)
            frame = caller
    return found


def jumps(instruction):
    opcode = module("opcode")
    return instruction.opcode in opcode.hasjrel or instruction.opcode in opcode.hasjabs


def ahead_of(code, last):
    """What can still run behind the instruction at offset @last."""
    instructions = {each.offset: each for each in module("dis").get_instructions(code)}
    order = sorted(instructions)
    following = dict(zip(order, order[1:]))
    last = max((at for at in order if at <= last), default=0)  # which may be in a cache behind it
    if sys.version_info < (3, 11):  # blocks that were begun before may be left to behind them
        first = low = last
        while first is not None:
            targets = [each.argval for at, each in instructions.items() if at >= low and jumps(each)]
            first = min((at for at in targets if at < low), default=None)
            low = low if first is None else first
        return {at for at in order if at >= low}
    guarded, found, left = handlers(code), set(), [last]
    while left:
        at = left.pop()
        if at in found or at not in instructions:
            continue
        found.add(at)
        each = instructions[at]
        left += [target for start, end, target in guarded if start <= at < end]
        if jumps(each):
            left.append(each.argval)
        if at in following and not each.opname.startswith(ENDS):
            left.append(following[at])
    return found


def handlers(code):
    """(start, end, target) of what its exception table protects, in bytes."""
    found, table = [], iter(code.co_exceptiontable)

    def number():
        byte = next(table)
        value = byte & 63
        while byte & 64:
            byte = next(table)
            value = value << 6 | byte & 63
        return value

    try:
        while True:
            start = number() * 2
            length, target, _ = number() * 2, number() * 2, number()
            found.append((start, start + length, target))
    except StopIteration:
        return found


def put_break(point, begins):
    """Among the others; what to say if it cannot be, None."""
    # Before it begins: from then on, breakpoints without a debugger are looked for.
    if not point.number or point.number in breaks:
        point.number = counted[0] + 1
    counted[0] = max(counted[0], point.number)
    breaks[point.number] = point
    problem = begins()
    if problem:
        forget(point.number)
    return problem


def make_step(ident, tid, stride, line):
    """@line: in its function not before that one; "": behind the one where it is; 0: any."""
    if FREE_THREADED:
        return {"problem": "in a free-threaded build other threads change what is called"}
    ident = ident or ident_of(tid)
    frame = current_frames().get(ident)
    if frame is None:
        return {"problem": "that thread runs no Python code, so it has no next line"}
    listener(BEGINS)
    problem = step(ident, stride, frame.f_lineno + 1 if line == "" else int(line))
    return {"problem": problem.decode()} if problem else {}


def make_raise(ident, tid, text):
    """Makes a paused thread raise an exception at its line as soon as it continues."""
    if FREE_THREADED:
        return {"problem": "in a free-threaded build other threads change what is called"}
    ident = ident or ident_of(tid)
    frame = current_frames().get(ident)
    if frame is None or not stands(ident):
        return {"problem": "the thread is not stopped at a line, where it could raise something: a step or a "
                           "breakpoint takes it to one"}
    try:
        value = eval_in(frame, compile(text, AGENT, "eval"))
        if isinstance(value, type) and issubclass(value, BaseException):
            value = value()
    except Exception as error:
        return {"problem": describe(error)}
    if not isinstance(value, BaseException):
        return {"problem": "%s is no exception" % type(value).__name__}
    raises(ident, value)
    return {}


def limited(words):
    once, ident, ignore, number = words or ("", "0", "0", "0")

    def make(file, line, condition):
        point = Break(file, line, condition)
        point.only("", once == "1", int(ident), int(ignore))
        point.number = int(number)
        return point

    return make


def answer(job, text):
    """To lines: add, FILE, LINE, CONDITION; function, MODULE, NAME, CONDITION, both with ONCE, IDENT, IGNORE,
    NUMBER; catch, CLASS, UNCAUGHT, CONDITION, NUMBER; set, NUMBER, WHAT, VALUE; delete, NUMBER; list; step, IDENT, TID, STRIDE, LINE; raise, IDENT, TID, EXPRESSION; trace and what logpoints.py takes, which answers in text."""
    words = text.decode("utf-8", "surrogateescape").split("\n")
    if words[0] == "trace":
        return load(7, "trace")(job, text.partition(b"\n")[2])
    if words[0] == "add":
        told = add(words[1], int(words[2]), words[3], limited(words[4:]))
    elif words[0] == "function":
        told = add_function(words[1], words[2], words[3], limited(words[4:]), True)
    elif words[0] == "catch":
        load(7, "trace")
        told = load(14, "catch_for_debugger")(words[1], words[2] == "1", words[3], int(words[4]))
    elif words[0] == "set":
        point = breaks.get(int(words[1]))
        told = point and debuggers([point]) and (point.change(words[2], words[3]) or point.told()) or None
    elif words[0] == "step":
        told = make_step(int(words[1]), int(words[2]), int(words[3]), words[4])
    elif words[0] == "raise":
        told = make_raise(int(words[1]), int(words[2]), words[3])
    elif words[0] == "delete":
        point = breaks.get(int(words[1]))
        told = point.told() if point and debuggers([point]) else None
        if told:
            forget(int(words[1]))
    else:
        told = [each.told() for each in debuggers(breaks.values())]
    send(job, 3, repr(told))
    return DONE


load(4 if sys.version_info >= (3, 12) else 5, "begin")

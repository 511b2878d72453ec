# SPDX-License-Identifier: GPL-3.0-or-later
# Joins logpoints.py when a client first asks for breakpoints of its pause: a thread that comes to one ends
# the step that is on (PRB_WIRE_STRIDE_BREAK, or any to a line), and the process is paused again. They are
# gone when the pause is, at the latest when one is reached.
MAX_PAUSES = 1000
SHOWN_PLACES = 4
# Instructions that raise it again; before 3.12 PREP_RERAISE_STAR is one itself, later what CALL_INTRINSIC_2 does.
GOES_ON = "RERAISE", "END_FINALLY", "END_ASYNC_FOR", "CLEANUP_THROW", "PREP_RERAISE_STAR"
PREPARES_STAR = 1
TESTS = "CHECK_EXC_MATCH", "CHECK_EG_MATCH", "JUMP_IF_NOT_EXC_MATCH"
ENDS_THREADS = "_bootstrap", "_bootstrap_inner"  # functions of threading, which report what a thread leaves by
# Files of the import system, which handles most of what it raises, under locks that code of ours needs.
IMPORTS = "<frozen importlib."
UNSEEN = {"__getitem__": IndexError, "__getattr__": AttributeError, "__getattribute__": AttributeError}
CONTROL = StopIteration, StopAsyncIteration, GeneratorExit  # how iterations end: C code handles them unseen
MAX_READ = 200  # functions
# What code of ours needs while the program is paused: import_needed() has it before.
MODULES = ("dis", "opcode", "gc", "types", "posixpath", "traceback", "tokenize", "keyword", "collections", "time",
           "__future__", "json", "codeop")
# What traceback imports when it first shows an exception, in some version of Python.
LAZY = "linecache", "tokenize", "ast", "unicodedata", "_suggestions", "os"
RAISER, RAISING = "<probing>", ("nowhere + (1)", "sys.nowhere", "(1) / 0", "1 +")
PARTS_PAUSED = (1, "where_is"), (2, "candidates")
UNKNOWN = object()
CATCH_LINE = 0  # of one for exceptions, which has no line


class Pausing(Break):
    pauses = True
    name = ""

    def stops(self, frame):
        problem = self.comes(frame)
        if problem is None:
            return None
        self.hits += 1
        if self.once:
            forget(self.number)
        return ("P%d %s" % (self.number, problem)).encode("utf-8", "backslashreplace")

    def place(self):
        if self.others:
            places = sorted(self.others | {(self.file, self.line)})
            return "%d places: %s" % (len(places), ", ".join("%s:%d" % each for each in places[:SHOWN_PLACES])) + (
                ", …" if len(places) > SHOWN_PLACES else "")
        return "%s:%d" % (self.file, self.line) if self.line > 0 else self.file

    def words(self):
        """A line of text for people, without tabs."""
        text = self.place() + (" if %s" % self.text if self.text else "")
        if self.hit_text:
            text += ", when %s" % self.hit_text
        if self.once:
            text += ", once"
        if self.ident:
            text += ", in one thread"
        names = sorted({getattr(each, "co_qualname", each.co_name) for each in self.codes})
        return clean(text + (" in %s" % ", ".join(names[:3]) if names else self.pending()))

    def pending(self):
        return ", of which no code was found so far"

    def row(self):
        """What the client reads: number, line, enabled, hits, ignore, places, words."""
        return "%d\t%d\t%d\t%d\t%d\t%d\t%s\n" % (
            self.number, max(self.line, 0), self.enabled, self.hits, self.ignore, len(self.codes), self.words())


class Catch(Pausing):
    """Where exceptions of a class are raised, or leave a thread unless they are handled."""
    raises = True

    def __init__(self, name, uncaught, condition, pauses=True):
        Pausing.__init__(self, "", CATCH_LINE, condition)
        self.name, self.uncaught, self.pauses = name, uncaught, pauses

    def stops(self, frame):
        return Pausing.stops(self, frame) if self.pauses else self.stops_for_debugger(frame)

    def stops_for_debugger(self, frame):
        found = Break.stops(self, frame)
        if found and listener(SURE) != LISTENS:
            debugger_gone()
            return None
        self.hits += found is not None
        return found

    def told(self):
        return dict(Pausing.told(self), file=self.place())

    def is_of(self, code):
        return False

    def catches(self, frame, exception):
        if self.uncaught and of_class(exception, *CONTROL):
            return False
        named = not self.name or any(is_named(each, self.name) for each in type(exception).__mro__)
        return named and not (self.uncaught and is_handled(frame, exception))

    def place(self):
        return (self.name or "any exception") + (" that is not handled" if self.uncaught else "")

    def pending(self):
        return "" if not self.name or exists(self.name) else ", of which no class was found so far"


def is_named(kind, name):
    read = type.__getattribute__
    return name in (read(kind, "__name__"), "%s.%s" % (read(kind, "__module__"), read(kind, "__qualname__")))


def exists(name):
    """Whether an exception class of that name is loaded."""
    seen, left = set(), [BaseException]
    while left:
        kind = left.pop()
        if id(kind) not in seen:
            if is_named(kind, name):
                return True
            seen.add(id(kind))
            left += type.__subclasses__(kind)
    return False


def of_class(exception, *kinds):
    """Whether it is of one of them, as an `except` has it: without asking their metaclass."""
    return any(each is kind for each in type(exception).__mro__ for kind in kinds)


def named_kind(frame, each, kinds):
    """What an instruction loads that may name a class: adds it; what is not global is UNKNOWN."""
    if each.opname.startswith(("CALL", "BINARY_", "LOAD_FAST")):
        kinds.append(UNKNOWN)
    elif each.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
        known = frame.f_globals
        kinds.append(known[each.argval] if each.argval in known else builtins_of(known).get(each.argval, UNKNOWN))
    elif each.opname in ("LOAD_ATTR", "LOAD_METHOD") and kinds:
        kinds[-1] = type(kinds[-1]) in (type(sys), type) and vars(kinds[-1]).get(each.argval) or UNKNOWN
    elif each.opname.startswith("LOAD_") and isinstance(each.argval, str):
        kinds.append(UNKNOWN)


def matches(kinds, exception):
    """Whether the exception is of one of the classes, or one of these is UNKNOWN."""
    for kind in kinds:
        for each in kind if type(kind) is tuple else (kind,):
            if each is UNKNOWN or of_class(exception, each):
                return True
    return False


def instructions_of(code):
    """{offset: instruction}, {offset: the next one}, and a list for blocks_at(), kept as long as exceptions are
    looked for. Another thread may clear what is kept meanwhile."""
    found = read.get(id(code))
    if found is None:
        every = {each.offset: each for each in module("dis").get_instructions(code)}
        order = sorted(every)
        found = code, every, dict(zip(order, order[1:])), []
        if len(read) >= MAX_READ:
            read.clear()
        read[id(code)] = found
    return found[1:]


def target_at(code, at):
    """Where an exception at that offset goes; None: out of the function."""
    if sys.version_info < (3, 11):
        return (blocks_at(code, at) or [None])[-1]
    return next((target for start, end, target in handlers(code) if start <= at < end), None)


def goes_on(instruction):
    name, number = instruction.opname, instruction.arg
    return name in GOES_ON or name == "CALL_INTRINSIC_2" and number == PREPARES_STAR or \
        name == "RAISE_VARARGS" and not number


def is_part(instruction, exception):
    """Whether an `except*` may take some of a group of exceptions, and leave the others."""
    return instruction.opname == "CHECK_EG_MATCH" and of_class(exception, BaseExceptionGroup)


def leads_on(frame, at, exception):
    """From a handler: the offset from which the exception goes on, None if it is handled."""
    every, following, _ = instructions_of(frame.f_code)
    kinds, seen = [], set()
    cleans = sys.version_info >= (3, 11) and every[at].opname != "PUSH_EXC_INFO"
    while at in every and at not in seen:
        each = every[at]
        seen.add(at)
        at = following.get(at)
        if goes_on(each):
            return each.offset
        named_kind(frame, each, kinds)
        if each.opname in TESTS or each.argval == "exception match":
            if matches(kinds, exception) or is_part(each, exception):
                return None
            kinds = []
            no = each if jumps(each) else every.get(at)
            at = no.argval if no and jumps(no) and not no.opname.endswith("_TRUE") else at
        elif each.opname == "POP_EXCEPT" and not cleans or each.opname.startswith(("RETURN_", "RAISE_VARARGS")):
            return None
        elif each.opname.startswith("JUMP") or each.opname.endswith("_IF_NONE"):
            at = each.argval if jumps(each) else at
    return None


def is_expected(frame, exception):
    """Whether C code that has called the function expects it: an iteration by numbers, hasattr() or getattr()."""
    name, caller = frame.f_code.co_name, frame.f_back
    if name not in UNSEEN or not caller or not of_class(exception, UNSEEN[name]):
        return False
    each = instructions_of(caller.f_code)[0].get(caller.f_lasti)
    if not each:
        return False
    if name == "__getitem__":
        return not each.opname.startswith("BINARY_")
    return each.opname.startswith("CALL") and {2: "hasattr", 3: "getattr"}.get(each.arg) in caller.f_code.co_names


def is_handled(frame, exception):
    """Whether a frame has an `except` for it, by its code: what runs later is not known."""
    while frame:
        at, seen = frame.f_lasti, set()
        leaves = frame.f_code.co_filename == AGENT or frame.f_code.co_name in ENDS_THREADS and \
            frame.f_globals is vars(sys.modules.get("threading", sys))
        while at is not None and at not in seen and not leaves:
            seen.add(at)
            target = target_at(frame.f_code, at)
            if target is None:
                break
            at = leads_on(frame, target, exception)
            if at is None:
                return True
        if is_expected(frame, exception):
            return True
        frame = frame.f_back
    return False


def raised(code, exception, frame, trace):
    if pauser() == GONE_PAUSE:
        owners_gone()
    catches = [each for each in list(breaks.values()) if each.raises]
    if not catches:
        end_raises()
        return None
    if evaluating() or code.co_filename == AGENT or code.co_filename.startswith(IMPORTS):
        return None
    # A traceback that begins further in has been here already.
    inner = trace and trace.tb_next
    if inner and not inner.tb_frame.f_code.co_filename.startswith(IMPORTS):
        return None
    for each in catches:
        if each.enabled and each.catches(frame, exception):
            found = each.stops(frame)
            if found:
                text = ("" if each.pauses else "=") + clean(describe(exception))
                return found + text.encode("utf-8", "backslashreplace")
    return None


def add_catch(name, uncaught, condition, pauses=True, number=0):
    point = Catch(name, uncaught, condition, pauses)
    point.number = number
    problem = put_break(point, begin_raises)
    apply()
    return {"problem": problem} if problem else point.told()


def catch_for_debugger(name, uncaught, condition, number):
    listener(BEGINS)
    return add_catch(name, uncaught, condition, False, number)


def import_needed():
    """Before the pause: a paused thread may hold a lock of the import system, and ours would wait for it."""
    for name in MODULES:
        module(name)
    for name in LAZY:
        try:
            module(name)
        except Exception:  # one of the program's own name: traceback does without it
            pass
    for number, name in PARTS_PAUSED:
        load(number, name)
    for text in RAISING:  # traceback imports what it shows them with
        sources = Sources()
        sources.add(RAISER, text)
        try:
            eval(compile(text, RAISER, "eval"), {"sys": sys})
        except Exception:
            module("traceback").format_exception(*sys.exc_info())
        sources.clear()


def pausing():
    return [each for each in list(breaks.values()) if each.pauses]


def tell_problem(job, text):
    send(job, 1, "problem\t%s\n" % clean(text))
    return DONE


def tell_added(job, told, name):
    if "near" in told:
        return tell_problem(job, "line %s of %s has no code that can be reached any more; lines nearby that "
                                 "have: %s" % (name, ", ".join(told["files"]), ", ".join(map(str, told["near"]))))
    if told.get("several"):
        return tell_problem(job, "there are %d functions %s; name more of it, or the line of one: %s, …" % (
            len(told["several"]), name, ", ".join("%s:%d" % each for each in told["several"][:SHOWN_PLACES])))
    if "several" in told:
        return tell_problem(job, "no function %s was found: FILE:LINE waits for code that is loaded later" % name)
    if "problem" in told:
        return tell_problem(job, told["problem"])
    send(job, 1, breaks[max(breaks)].row())
    return DONE


def pausing_request(job, words):
    """add FILE LINE CONDITION HIT ONCE IDENT [WAITS]; function MODULE NAME and the same; catch NAME UNCAUGHT
    CONDITION; set NUMBER enable|disable|ignore|condition VALUE; delete NUMBER|""; list; raise
    IDENT EXPRESSION; prepare."""
    if pauser() == GONE_PAUSE and words[0] in ("add", "function", "catch"):
        return tell_problem(job, "the process is not paused")
    if len(pausing()) >= MAX_PAUSES and words[0] in ("add", "function", "catch"):
        return tell_problem(job, "there are %d breakpoints already" % MAX_PAUSES)
    try:
        if words[0] == "add":
            return tell_added(job, add(words[1], int(words[2]), words[3], make_with(words[4:])), words[2])
        if words[0] == "function":
            told = add_function(words[1], words[2], words[3], make_with(words[4:]), words[7:] == ["1"])
            return tell_added(job, told, words[2])
        if words[0] == "catch":
            return tell_added(job, add_catch(words[1], words[2] == "1", words[3]), words[1])
        if words[0] == "set":
            return change(job, *words[1:4])
    except SyntaxError as error:
        return tell_problem(job, "'%s' is no expression: %s" % ((error.text or "").strip(), error.msg))
    if words[0] == "prepare":
        import_needed()
        return DONE
    if words[0] == "delete":
        return delete(job, words[1])
    if words[0] == "raise":
        told = make_raise(int(words[1]), 0, words[2])
        if told:
            return tell_problem(job, told["problem"])
    send(job, 1, "".join(each.row() for each in pausing()))
    return DONE


def make_with(words):
    """WAITS: for a function to be loaded, or at the next line that has code."""
    hit, once, ident = words[:3]

    def make(file, line, condition):
        point = Pausing(file, line, condition)
        point.only(hit, once == "1", int(ident))
        point.moves = words[3:] == ["1"]
        return point

    return make


def change(job, number, what, value):
    point = breaks.get(int(number))
    if point is None or not point.pauses:
        return tell_problem(job, "there is no breakpoint %s" % number)
    point.change(what, value)
    send(job, 1, point.row())
    return DONE


def delete(job, number):
    found = [each for each in pausing() if not number or str(each.number) == number]
    if number and not found:
        return tell_problem(job, "there is no breakpoint %s" % number)
    for each in found:
        forget(each.number)
    send(job, 1, "".join(each.row() for each in found))
    return DONE

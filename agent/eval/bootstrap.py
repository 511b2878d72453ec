# SPDX-License-Identifier: GPL-3.0-or-later
# Runs in the target, for Python 3.4 and later. The agent puts functions in front:
#   emit(job, kind, bytes)  sends bytes to the job's client: 1 stdout, 2 stderr, 3 value, 4 traceback,
#                           5 candidates. False where there is no client, as in a child after fork().
#   part(number)            the text of 1 prompt.py, 2 complete.py, 3 breaks.py, 4 monitoring.py,
#                           5 tracing.py, 6 loop.py, 7 logpoints.py, 8 calls.py, 9 torch.py,
#                           10 comm.py, 11 watch.py, 12 sites.py, 13 frame.py, 14 pausing.py,
#                           15 ops.py, 16 nan.py, 17 logs.py, 18 history.py, which join this
#   thread_context(thread, context)   the contextvars.Context that it is in, None: unknown; ours is @context
#   main_thread(which)      what Python (0) or the kernel (1) calls the main thread, 0: unknown
#   read_locals(frame, read)                                of package/probing/_locals.py
import _thread
import posix
import sys

get_ident = _thread.get_ident
lock = _thread.allocate_lock()
loading = _thread.RLock()
loaded_parts = set()
threads = {}  # threads that evaluate: {ident: (job, Session or None)}
sessions = {}  # at a prompt: {job: Session}
numbered = [0]
needed = {}  # {name: module} of Python's library
ONLY_AST = 0x400
INTERACTIVE, LAST, IN_FRAME, ON_LOOP, TRACE, TORCH, SITES = 2, 4, 8 | 1 << 16, 16, 32, 64, 128
DONE, RAISED, INTERRUPTED, INCOMPLETE, EXIT = range(5)
PART = 1 << 14
MAX_SOURCES = 4 << 20
AGENT = "<probing agent>"
NO_INPUT = "stdin is the program's own, and is not read by code that probing runs in it"
Expression = type(compile("0", AGENT, "eval", ONLY_AST))


def send(job, kind, text):
    """In parts, so that a large text is not held twice."""
    text = str.__str__(text)
    for at in range(0, len(text), PART):
        if not emit(job, kind, text[at:at + PART].encode("utf-8", "backslashreplace")):
            return False
    return True


def evaluating():
    return get_ident() in threads


def module(name):
    """A module of the standard library, cached. During a pause nothing may be imported, since a paused thread
    may hold an import lock: import_needed() of pausing.py fills this cache before."""
    if name not in needed:
        needed[name] = __import__(name)
    return needed[name]


class Bytes:
    """The buffer below a stream, for code that writes bytes."""

    def __init__(self, below, kind):
        self.below, self.kind = below, kind

    def write(self, data):
        if evaluating():
            copy = bytes(data)
            if emit(threads[get_ident()][0], self.kind, copy):
                return len(copy)
        return self.below.write(data)

    def __getattr__(self, name):
        return getattr(self.below, name)


class Stand:
    """In for an object of sys while code is evaluated: to all other threads it is that object."""

    def __init__(self, below):
        object.__setattr__(self, "below", below)

    @property
    def __class__(self):
        return type(self.below)

    def __repr__(self):
        return repr(self.below)

    def __getattr__(self, name):
        return getattr(self.below, name)

    def __setattr__(self, name, value):
        setattr(self.below, name, value)

    def __delattr__(self, name):
        delattr(self.below, name)


class Stream(Stand):
    def isatty(self):
        return not evaluating() and self.below is not None and self.below.isatty()

    def close(self):
        """exit() closes stdin, which is the program's."""
        if not evaluating():
            self.below.close()

    def __iter__(self):
        return iter(self.below)

    def __enter__(self):
        return self.below.__enter__()

    def __exit__(self, *what):
        return self.below.__exit__(*what)


class Output(Stream):
    kind = 1

    @property
    def buffer(self):
        return Bytes(self.below.buffer, self.kind)

    def write(self, text):
        if evaluating() and isinstance(text, str):
            if send(threads[get_ident()][0], self.kind, text):
                return len(text)
        return len(text) if self.below is None else self.below.write(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        if not evaluating() and self.below is not None:
            self.below.flush()


class Errors(Output):
    kind = 2


def refused(name):
    def method(self, *arguments):
        if evaluating():
            raise EOFError(NO_INPUT)
        return getattr(self.below, name)(*arguments)

    return method


class Input(Stream):
    @property
    def buffer(self):
        if evaluating():
            raise EOFError(NO_INPUT)
        return self.below.buffer

    def fileno(self):
        """With a descriptor, input() would read the terminal."""
        if evaluating():
            raise OSError(NO_INPUT)
        return self.below.fileno()

    def __iter__(self):
        return self if evaluating() else iter(self.below)


for name in ("read", "readline", "readlines", "__next__", "detach"):
    setattr(Input, name, refused(name))


class Hook(Stand):
    """sys.displayhook: of a prompt, values are sent to it and its last one is kept by its session."""

    @property
    def last(self):
        session = threads.get(get_ident(), (None, None))[1]
        if session is None or not session.has_last:
            raise NameError("name '_' is not defined")
        return session.last

    def local(self, name):
        session = threads.get(get_ident(), (None, None))[1]
        if session is None:
            raise NameError("name '%s' is not defined" % name)
        return session.local(name)

    def __call__(self, value):
        job, session = threads.get(get_ident(), (None, None))
        if session is None:
            self.below(value)
        elif value is not None:
            send(job, 3, repr(value) + "\n")
            session.last, session.has_last = value, True


STANDS = {"stdin": Input, "stdout": Output, "stderr": Errors, "displayhook": Hook}


def enter(job, session):
    with lock:
        threads[get_ident()] = job, session
        for name in STANDS:
            below = getattr(sys, name, STANDS)
            if below is not STANDS and not issubclass(type(below), Stand):
                setattr(sys, name, STANDS[name](below))


def leave():
    """What enter() did is undone; may be called twice."""
    with lock:
        threads.pop(get_ident(), None)
        if threads:
            return
        for name in STANDS:
            stand = getattr(sys, name, None)
            if issubclass(type(stand), Stand):
                setattr(sys, name, stand.below)


def settle():
    for _ in range(100):  # where loops begin again, exceptions from outside are looked for
        pass


class Threading:
    """In front of sys.meta_path until threading is imported. That module takes the thread that imports it
    for the main thread, for good (from 3.13 on it only takes its native_id), which would be a thread of
    ours if evaluated code is the first to import it."""

    def install(self):
        if "threading" not in sys.modules:
            sys.meta_path.insert(0, self)

    def remove(self):
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]

    def find_spec(self, name, path=None, target=None):
        if name != "threading":
            return None
        self.ident = getattr(_thread, "_get_main_thread_ident", lambda: main_thread(0))()
        if self.ident in (0, get_ident()):
            self.remove()
            return None
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find and find(name, path, target)
            if spec:
                self.loader, spec.loader = spec.loader, self
                return spec
        return None

    def create_module(self, spec):
        create = getattr(self.loader, "create_module", None)
        return create(spec) if create else None

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        if hasattr(self.loader, "exec_module"):
            self.loader.exec_module(module)
        else:  # of a zip file, before 3.10
            exec(self.loader.get_code(module.__name__), module.__dict__)
        self.remove()
        give_to_main_thread(module, self.ident)


def give_to_main_thread(threading, ident):
    """No other code has seen the module yet. Makes its object of the main thread, which it made for
    ours, anew."""
    old, native = threading._main_thread, main_thread(1) or None
    if sys.version_info >= (3, 13):
        old._native_id = native
        return
    threading._active.clear()
    threading._dangling.discard(old)
    getattr(threading, "_shutdown_locks", set()).discard(old._tstate_lock)
    ours = {"get_ident": lambda: ident, "get_native_id": lambda: native,
            "_set_sentinel": _thread.allocate_lock}  # that lock is released by our thread's end
    theirs = {name: getattr(threading, name) for name in ours if hasattr(threading, name)}
    vars(threading).update({name: ours[name] for name in theirs})
    threading._main_thread = threading._MainThread()
    vars(threading).update(theirs)


class Sources:
    """The texts of evaluated code, for tracebacks to show lines of."""

    def __init__(self):
        self.entries = []  # (name, entry of linecache, the one before)
        self.size = 0

    def add(self, name, text):
        if not isinstance(text, str):
            text = text.decode("utf-8", "replace")
        text += "" if text.endswith("\n") else "\n"  # else 3.12 marks the wrong columns
        while self.entries and self.size + len(text) > MAX_SOURCES:
            self.hide(self.entries.pop(0))
        self.size += len(text)
        self.entries.append([name, (len(text), None, text.splitlines(True), name), None])
        self.show()

    def show(self):
        cache = getattr(sys.modules.get("linecache"), "cache", None)
        for each in self.entries if type(cache) is dict else ():
            if cache.get(each[0]) is not each[1]:
                each[2] = cache.get(each[0])
                cache[each[0]] = each[1]

    def hide(self, each):
        self.size -= each[1][0]
        cache = getattr(sys.modules.get("linecache"), "cache", None)
        if type(cache) is dict and cache.get(each[0]) is each[1]:
            if each[2] is None:
                del cache[each[0]]
            else:
                cache[each[0]] = each[2]

    def clear(self):
        while self.entries:
            self.hide(self.entries.pop())


def number(name):
    """A name of its own for each code that has no file: <probing-1>, <probing-2>, …"""
    if not (name.startswith("<") and name.endswith(">")):
        return name
    with lock:
        numbered[0] += 1
        return "%s-%d>" % (name[:-1], numbered[0])


def future_flags(flags):
    """Those of `from __future__ import …` among the flags of code."""
    known, future = 0, module("__future__")
    for name in future.all_feature_names:
        known |= getattr(future, name).compiler_flag
    return flags & known


def current_frames():
    """sys._current_frames() of this interpreter alone: from 3.12 on others may run meanwhile."""
    found = thread_frames() if sys.version_info >= (3, 12) else None
    if found is None:
        return sys._current_frames()
    try:
        return dict(zip(found[::2], found[1::2]))
    finally:
        found.clear()  # The frame of this call is among them: with the list it would keep all alive.


def namespace():
    main = sys.modules.get("__main__")
    if main is None:
        main = sys.modules["__main__"] = type(sys)("__main__")
    return main.__dict__


def builtins_of(names):
    builtins = names.get("__builtins__")
    return builtins if type(builtins) is dict else getattr(builtins, "__dict__", {})


def is_text(statement):
    value = getattr(statement, "value", None)
    return type(statement).__name__ == "Expr" and isinstance(
        getattr(value, "value", None) if type(value).__name__ == "Constant" else
        getattr(value, "s", None) if type(value).__name__ == "Str" else None, str)


def evaluate(job, source, name, sources, names, on_loop):
    name = number(name)
    sources.add(name, source)
    last, flags = None, 0
    if on_loop and ("asyncio" not in sys.modules or sys.version_info < (3, 8)):
        raise RuntimeError("asyncio is not used in this process" if sys.version_info >= (3, 8) else
                           "code that awaits needs Python 3.8 or later")
    if on_loop:
        return load(6, "evaluate_on_loop")(job, source, name, names)
    tree = compile(source, name, "exec", ONLY_AST, True)
    if len(tree.body) > 1 and is_text(tree.body[0]):
        del tree.body[0]  # it would become the __doc__ of the program
    if tree.body and type(tree.body[-1]).__name__ == "Expr":
        last = Expression(tree.body.pop().value)
    code = compile(tree, name, "exec", 0, True)
    if b"__future__" in source:
        flags = future_flags(code.co_flags)
    exec(code, names)
    if last is not None:
        value = eval(compile(last, name, "eval", flags, True), names)
        if value is not None:
            send(job, 3, repr(value))


def load(number, name):
    """What is needed by few is compiled when it first is. A second client waits for the first: if it
    ran the text again, what the first one has begun would be forgotten."""
    with loading:
        if number not in loaded_parts:
            exec(compile(part(number), AGENT, "exec"), globals())
            loaded_parts.add(number)
    return globals()[name]


def report(job, kind, value, trace, sources, in_frame):
    traceback = module("traceback")
    while trace and trace.tb_frame.f_code.co_filename == AGENT:
        trace = trace.tb_next
    value.__traceback__ = trace
    sources.show()
    try:
        # The remaining frames of ours are in stand-in streams, which raise as the real ones would.
        text = "".join(part for part in traceback.format_exception(kind, value, trace)
                       if not part.startswith('  File "%s"' % AGENT))
    except Exception:
        text = "%s: its text cannot be made\n" % kind.__name__
    if kind is NameError and not in_frame:
        text += load(1, "where_is")(value)
    if kind is AttributeError and in_frame and "_local' object has no attribute" in text:
        text += OF_THREADS
    send(job, 4, text)


def say_exit(job, status):
    if status is not None and not isinstance(status, int):
        send(job, 2, "%s\n" % (status,))


def run(job, source, name, flags):
    """DONE and so on; of a prompt INCOMPLETE and EXIT, too."""
    pid = posix.getpid()
    session = sessions.get(job) if flags & INTERACTIVE else None
    sources = session.sources if session else Sources()
    try:
        if flags & INTERACTIVE:
            if session is None:
                session = sessions[job] = load(1, "Session")()
                sources = session.sources
            enter(job, session)
            outcome = session.run(source, name, flags & LAST)
        elif flags & TRACE:
            load(3, "answer")
            outcome = load(7, "trace")(job, source)
        elif flags & TORCH:
            outcome = load(9, "torch_request")(job, source)
        elif flags & SITES:
            outcome = load(12, "sites_request")(job, source)
        else:
            enter(job, None)
            if flags & IN_FRAME:
                load(13, "evaluate_in_frame")(job, source, name, sources)
            else:
                evaluate(job, source, name, sources, namespace(), flags & ON_LOOP)
            outcome = DONE
    except BaseException:
        kind, value, trace = sys.exc_info()
        outcome = INTERRUPTED if issubclass(kind, KeyboardInterrupt) else RAISED
        if posix.getpid() == pid:
            if session and issubclass(kind, SystemExit):
                outcome = EXIT
                say_exit(job, value.code)
            else:
                report(job, kind, value, trace, sources, bool(flags & IN_FRAME))
        kind = value = trace = None
    if posix.getpid() != pid:
        posix._exit(1 if outcome == RAISED else 0)  # the code called fork(), and this is the child
    if not session:
        sources.clear()
    return outcome


def complete(job, text):
    """Names that the end of a line may become, sent one on a line."""
    names = {name: sys.modules[name] for name in load(1, "HELPERS") + LOADED if name in sys.modules}
    names.update(namespace())
    found = load(2, "candidates")(text.decode("utf-8", "replace"), names, builtins_of(names))
    send(job, 5, "\n".join(found))
    return DONE


def breakpoints(job, text):
    """What a debugger asks about those at lines, see breaks.py."""
    return load(3, "answer")(job, text)


def apply_torch():
    """What the settings say of torch, as torch.py does it."""
    return load(9, "torch_apply")()


def forget_thread():
    """threading.current_thread() makes an object for a foreign thread and never frees it."""
    threading = sys.modules.get("threading")
    active = getattr(threading, "_active", None)
    if type(active) is dict:
        thread = active.get(get_ident())
        if type(thread) is getattr(threading, "_DummyThread", None):
            with threading._active_limbo_lock:
                active.pop(get_ident(), None)


def close(job):
    """The client has left: nothing of it stays but what its code did."""
    session = sessions.pop(job, None)
    if session:
        session.sources.clear()
    globals().get("bound", {}).pop(job, None)
    forget_thread()


def gone(*_):
    return False


def release():
    """Takes the agent out of the interpreter.

    Code that kept a stream or a frame of ours keeps these names alive, but not the C functions. The
    other objects are freed at once, without waiting for the program's garbage collection."""
    names = globals()
    finder.remove()
    if "forget_breaks" in names:
        forget_breaks()
    if "forget_torch" in names:
        forget_torch()
    if "forget_operators" in names:
        forget_operators()
    native = [name for name in names
              if type(names[name]) is type(len) and names[name].__module__ is None]
    for name in native:
        names[name] = gone
    if "forget_breaks" in names:
        return  # a thread may be in what it calls
    needed = set(native) | {"__builtins__", "Bytes", "evaluating", "get_ident", "threads"}
    for name in [name for name in names if name not in needed]:
        del names[name]


def install():
    """Only of the one load of several that is used: what the program can see of it."""
    finder.install()


finder = Threading()

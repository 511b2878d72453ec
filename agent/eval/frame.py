# SPDX-License-Identifier: GPL-3.0-or-later
# Joins bootstrap.py when code first is to run in a frame, behind package/probing/_variables.py. The code
# becomes a function within a function: its variables are those of the frame, with and without a value, and
# those that a prompt's code has bound in that function. All other names are globals of the frame's module. So
# Python itself gives each name its meaning.

# The code stands in the try. What it assigned, its value and what it raised are read where this yields.
FRAME_SCOPE = """
def around():
    %s
    def scope():
        %s
        %s
        %syield
        if 0:
            %s
        try:
            value = 0
        except BaseException as error:
            yield
        else:
            yield
"""
# Between the two: a class, whose private names it sees, in one that keeps its name from the code.
FRAME_CLASS = """
class around:
    class scope:
        pass
"""
FRAME_VALUE, FRAME_ERROR = ".value", ".error"
DEFINITIONS = "FunctionDef", "AsyncFunctionDef", "ClassDef"
STATEMENTS = "body", "orelse", "finalbody", "handlers", "cases"
ON_STACK = ": --frame %d, where it is one"
PRIVATE_NAME = "'%s' is a private name of a class, and %s"
RAN_ON = "its thread ran on meanwhile, or is unknown to Python"
CANNOT_SET = "%s was assigned, which the frame does not see: before Python 3.13 its variables cannot be set\n"
KEPT_HERE = "%s is now a variable of this prompt: that of the module stays as it is ('global %s' before it sets that)\n"
CANNOT_SET_CONTEXT = "setting the context variable %s has no effect in its thread\n"
OF_THREADS = "the code runs on a thread of the agent, which has none of the values of other threads: those of a threading.local\n"
CANNOT_DELETE = "%s was deleted, which the frame does not see: only its own code can do so\n"
LOOPS = {"run_forever": "/asyncio/base_events.py", "run": "/asyncio/runners.py"}  # functions that run one
bound = {}  # names that clients' code has bound in functions: {job: {code: {name: value}}}; for the debuggers' plugin none


def evaluate_in_frame(job, source, name, sources):
    """The code is behind a line that names the frame: of another thread, which stands there while the
    program is paused, or a debugger asks. In a frame that has gone on, or is not to be looked at, the
    code sees the module alone, and what the frame's variables are called is refused."""
    head, _, source = source.partition(b"\n")
    head = head.decode("utf-8", "surrogateescape").split("\t")
    frame = find_frame(*head[:7])
    if frame is None and len(head) == 9:
        evaluate_beside(job, source, name, sources, *head[6:])
    elif frame is None:
        evaluate(job, source, name, sources, namespace(), False)
    elif frame.f_locals is frame.f_globals:
        in_context(job, head, evaluate, job, source, name, sources, frame.f_globals, False)
    else:
        name = number(name)
        sources.add(name, source)
        kept = bound.setdefault(job, {}).setdefault(frame.f_code, {}) if len(head) == 7 else None
        variables = Variables(frame, int(head[2]), kept)
        try:
            value = in_context(job, head, variables.run, source, name)
        finally:
            left = variables.left
            variables = None
        if value is not None:
            send(job, 3, repr(value))
        for text in sorted(left):
            send(job, 2, text)


def in_context(job, head, function, *arguments):
    """Runs it as the frame's thread: with its context variables, as far as these are known (3.7)."""
    ident = thread_of(*head[:2])
    with AsThread(ident), InLoop(ident):
        return with_variables_of(job, head, function, *arguments)


class InLoop:
    """The loop of asyncio that runs in the frame's thread, and its task, are those of ours meanwhile."""

    def __init__(self, ident):
        self.loop = self.task = None
        self.tasks = sys.modules.get("asyncio.tasks")
        # Without a GIL, the search for the task would wait for all threads.
        known = hasattr(getattr(self.tasks, "events", None), "_set_running_loop") and ident != get_ident() and "free-threading" not in sys.version
        frame = current_frames().get(ident) if known else None
        while frame and not self.loop:
            code = frame.f_code
            if code.co_name in LOOPS and code.co_filename.endswith(LOOPS[code.co_name]):
                self.loop = getattr(frame.f_locals.get("self"), "get_loop", lambda: frame.f_locals.get("self"))()
            frame = frame.f_back

    def __enter__(self):
        if self.loop:
            if sys.version_info >= (3, 14):  # a thread has its own there
                self.task = self.tasks.current_task(self.loop)
            self.tasks.events._set_running_loop(self.loop)
            if self.task:
                self.tasks._enter_task(self.loop, self.task)

    def __exit__(self, *_):
        if self.loop:
            if self.task:
                self.tasks._leave_task(self.loop, self.task)
            self.tasks.events._set_running_loop(None)


class AsThread:
    """threading.current_thread() is the frame's thread meanwhile, and makes none for ours."""

    def __init__(self, ident):
        self.threading = sys.modules.get("threading")
        self.thread = getattr(self.threading, "_active", {}).get(ident) if ident != get_ident() else None

    def __enter__(self):
        if self.thread is None:
            return
        forget_thread()
        before, thread, own = self.threading._DummyThread, self.thread, get_ident()

        class DummyThread(before):
            def __new__(cls):
                return thread if get_ident() == own else before()

        self.before, self.threading._DummyThread = before, DummyThread

    def __exit__(self, *_):
        if self.thread is not None:
            self.threading._DummyThread = self.before


def with_variables_of(job, head, function, *arguments):
    theirs, ident = None, thread_of(*head[:2])
    module = sys.modules.get("_contextvars")
    if module and ident != get_ident():
        ours = module.copy_context()
        theirs = ours.run(thread_context, ident or 0, ours)
    if theirs is None:
        return function(*arguments)
    before = theirs.copy()  # the thread is in theirs, and may run on meanwhile
    own = before.copy()
    try:
        return own.run(function, *arguments)
    finally:
        for each in own:
            if own[each] is not before.get(each, own):
                send(job, 2, CANNOT_SET_CONTEXT % each.name)


def thread_of(ident, tid):
    return int(ident) or ident_of(int(tid))


class Variables:
    """Those of a function's frame, or of a class's."""

    def __init__(self, frame, depth, bound):
        self.frame, self.own, self.left, self.depth = frame, frame.f_locals, [], depth
        code = frame.f_code
        self.is_function = code.co_flags & OPTIMIZED
        self.values = {name: self.own[name] for name in self.own if str.isidentifier(name)}
        known = filter(str.isidentifier, code.co_varnames + code.co_cellvars + code.co_freevars)
        self.empty = set(without_value(code, known, self.values)) if self.is_function else set()
        self.kept = set(code.co_freevars) if self.is_function else set()
        self.around, self.refused = {}, {}  # {name: variables of the function that has it}; {name: its code}
        for each, owner in variables_around(frame).items():
            found = frame_with(frame, owner)
            if each not in self.values and found:
                self.around[each] = found.f_locals
            elif each not in self.values:
                self.refused[each] = owner
        self.free = self.kept.union(self.around, self.refused)
        self.known = self.free.union(self.values, self.empty)
        self.of, self.declared = "", set()
        self.bound = bound if self.is_function or bound is None else self.own
        if self.is_function and bound:
            self.values.update({each: bound[each] for each in bound if each not in self.known})

    def run(self, source, name):
        """The value of the last expression, or None."""
        code = self.compile(source, name)
        for each in code.co_freevars:
            if each in self.refused:
                raise NameError(self.describe(each, self.refused[each]))
            if each in self.around.get(each, ()):
                self.values[each] = self.around[each][each]
        cells = tuple(map(cell_with, [self.values] * len(code.co_freevars), code.co_freevars))
        scope = type(wrap)(code, self.frame.f_globals, code.co_name, None, cells)()
        next(scope)
        try:
            scope.send(tuple(self.values[each] for each in self.in_order()))
            theirs = scope.gi_frame.f_locals
            after = dict(theirs)
        finally:
            scope.close()
        value, error = after.pop(FRAME_VALUE, None), after.pop(FRAME_ERROR, None)
        if type(theirs) is dict:  # before 3.13 what the code has of locals()
            theirs.pop(FRAME_VALUE, None)
            theirs.pop(FRAME_ERROR, None)
        self.keep(after)
        if error is not None:
            raise error
        return value

    def describe(self, name, owner):
        text, frame, depth = NOT_KEPT % (name, called(owner)), self.frame, self.depth
        while frame and frame.f_code is not owner:
            frame, depth = frame.f_back, depth + 1
        return text + ON_STACK % depth if frame else text

    def in_order(self):
        return sorted(each for each in set(self.values) - self.declared - self.free
                      if mangle(self.of, each) == each)

    def compile(self, source, name):
        tree = compile(source, name, "exec", ONLY_AST, True)
        if len(tree.body) > 1 and is_text(tree.body[0]):
            del tree.body[0]
        whole = compile(tree, name, "exec", 0, True)  # what is wrong is said as of a module's code
        flags = future_flags(whole.co_flags) if b"__future__" in source else 0
        body = tree.body
        tree.body = [each for each in body if is_of_modules(each)]
        if tree.body:
            self.run_as_module(compile(tree, name, "exec", 0, True))
        body = [each for each in body if not is_of_modules(each)]
        self.of = class_for(self.frame, private_in(whole))
        self.declared = {mangle(self.of, each) for each in prepare(body)}
        binds = set() if self.bound is None else \
            {mangle(self.of, each) for each in used_as("STORE_NAME", whole)} - self.known - self.declared
        for each in binds.difference(self.values):
            names = self.frame.f_globals if each in self.frame.f_globals else builtins_of(self.frame.f_globals)
            if each in names:  # until it is bound
                self.values[each] = names[each]
        own, used = self.in_order(), {mangle(self.of, each) for each in whole.co_names}
        inner = self.kept | used.intersection(self.free, variables_around(self.frame, False))
        others = used - inner - self.empty - binds - set(own)
        around = self.free | ({"__class__"} if is_class_body(self.frame.f_code) else set())
        return wrap(name, flags, body, around=around, inner=inner - self.declared, own=own,
                    empty=self.empty - self.declared - self.free, others=others - self.declared, of=self.of)

    def run_as_module(self, code):
        if self.bound is None:
            exec(code, self.frame.f_globals)
            return
        found = {}
        exec(code, self.frame.f_globals, found)
        self.keep(dict(self.values, **found))
        self.values.update({each: found[each] for each in found if each not in self.known})

    def keep(self, after):
        """What the code assigned: to the variables, where Python lets it, else to those of the prompt. All else
        is in the module."""
        for name, value in after.items():
            if name in self.values and self.values[name] is value:
                continue
            if name not in self.known and self.bound is not None:
                if self.is_function and name not in self.bound and name in self.frame.f_globals:
                    self.left.append(KEPT_HERE % (name, name))
                self.bound[name] = value
                continue
            own = self.around.get(name, self.own)
            if own is self.own and not self.is_function or sys.version_info >= (3, 13):
                own[name] = value
            else:
                self.left.append(CANNOT_SET % name)
        for name in set(self.values) - self.declared - set(after):
            if mangle(self.of, name) != name:
                continue  # no code in a class can name it
            if name not in self.known:
                self.bound.pop(name, None)
            elif self.is_function or name in self.free:
                self.left.append(CANNOT_DELETE % name)
            else:
                del self.own[name]


def cell_with(values, name):
    """A variable of a function, which has a value if @values has."""
    if name in values:
        content = values[name]
    return (lambda: content).__closure__[0]


def imports_from(statement):
    return type(statement).__name__ == "ImportFrom" and statement.module


def is_of_modules(statement):
    """Whether a function cannot have it."""
    return imports_from(statement) == "__future__" or \
        type(statement).__name__ == "ImportFrom" and statement.names[0].name == "*"


def prepare(statements):
    """Makes the code of a module one that a function may have; the names that it declares as global."""
    declared = set()
    for each in statements:
        kind = type(each).__name__
        if kind == "Global":
            declared.update(each.names)
        elif kind == "AnnAssign":
            each.simple = 0  # is not declared by that
        elif kind not in DEFINITIONS:
            for field in STATEMENTS:
                declared |= prepare(getattr(each, field, ()))
    return declared


def wrap(name, flags, body, around=(), inner=(), own=(), empty=(), others=(), of=""):
    """The code of a function whose variables @own get their values first, and @empty have none. @inner are
    among those of the function @around it, and @others are global. It sees the private names of the class
    @of."""
    text = FRAME_SCOPE % (assign(around), declare("nonlocal", inner), declare("global", others),
                    "".join(each + ", " for each in sorted(own)) + "= " if own else "", assign(empty))
    tree = compile(text, AGENT, "exec", ONLY_AST, True)
    function = tree.body[0].body[1]
    part = function.body[-1]
    function.name, part.handlers[0].name = "<module>", FRAME_ERROR
    result = part.body.pop()
    if body and type(body[-1]).__name__ == "Expr":
        result.targets[0].id, result.value = FRAME_VALUE, body[-1].value
        for each in result._attributes:
            setattr(result, each, getattr(body[-1], each))
        body = body[:-1] + [result]
    part.body = body or function.body[:1]
    if of:
        classes = compile(FRAME_CLASS, AGENT, "exec", ONLY_AST, True).body[0]
        tree.body[0].body[1], classes.name, classes.body[0].name = classes, "<class>", of
        classes.body[0].body = [function]
    for _ in range(4 if of else 2):
        tree = tree if type(tree) is CodeOfVariables else compile(tree, name, "exec", flags, True)
        tree = next(each for each in tree.co_consts if type(each) is CodeOfVariables)
    return tree


def assign(names):
    return " = ".join(sorted(names)) + " = 0" if names else "pass"


def declare(word, names):
    names = sorted(filter(str.isidentifier, names))
    return word + " " + ", ".join(names) if names else "pass"


def evaluate_beside(job, source, name, sources, file, module, hidden):
    """In the @module of a frame that has gone on, whose own variables are @hidden; "*": those of the module,
    if it is one."""
    names = getattr(sys.modules.get(module), "__dict__", None)
    if names is None:
        raise LookupError("the module '%s' of the frame was not found, and %s" % (module, RAN_ON))
    hidden = set(filter(str.isidentifier, hidden.split(",") if hidden != "*" else
                        () if names.get("__file__", file) == file else names))
    used, declared, private = uses(source, hidden)
    if private and hidden:
        raise LookupError(PRIVATE_NAME % (private, RAN_ON))
    if used:
        raise LookupError("'%s' is a variable of the frame, and %s" % (min(used), RAN_ON))
    hidden = hidden.intersection(names) - declared
    seen = {each: value for each, value in names.items() if each not in hidden} if hidden else names
    if hidden:
        seen["__builtins__"] = dict(builtins_of(seen), globals=lambda: names)
    before = dict(seen)
    try:
        evaluate(job, source, name, sources, seen, False)
    finally:
        if hidden:
            names.update({each: value for each, value in seen.items()
                          if each not in before or before[each] is not value})
            for each in set(before).difference(seen):
                names.pop(each, None)


def uses(source, hidden):
    """Those of the names @hidden that code means by a variable, those that it declares as global anywhere, and
    a private one; none if it is no code, which is said elsewhere."""
    try:
        tree = compile(source, AGENT, "exec", ONLY_AST, True)
        private = private_in(compile(tree, AGENT, "exec", 0, True))
    except (SyntaxError, ValueError):
        return set(), set(), None
    declared, rest = set(), [tree]
    while rest:
        node = rest.pop()
        if type(node).__name__ == "Global":
            declared.update(node.names)
        for field in node._fields:
            value = getattr(node, field, None)
            rest.extend(each for each in (value if type(value) is list else [value])
                        if hasattr(each, "_fields"))
    body = [each for each in tree.body if not is_of_modules(each)]
    prepare(body)
    code = wrap(AGENT, 0, body, around=hidden)
    return hidden.intersection(code.co_freevars + code.co_varnames + code.co_cellvars), declared, private


def ident_of(tid):
    """Of the thread that the kernel knows by that number, as far as threading knows."""
    for thread in list(getattr(sys.modules.get("threading"), "_active", {}).values()):
        if getattr(thread, "native_id", None) == tid:
            return thread.ident
    return None


def find_frame(ident, tid, depth, must, line, name, file):
    """None if it is not there any more, and need not be; or if its number says not to look for it."""
    if depth.startswith("-"):
        return None
    ident, left = thread_of(ident, tid), int(depth)
    frame = current_frames().get(ident)
    while frame and ident == get_ident() and frame.f_code.co_filename == AGENT:
        frame = frame.f_back  # of ours, on that thread
    while frame and left:
        frame, left = frame.f_back, left - 1
    if frame and (frame.f_code.co_name, frame.f_lineno) == (name, int(line)) and \
            frame.f_code.co_filename == file:
        return frame
    if must == "1":
        raise LookupError("the frame was not found: " + RAN_ON)
    return None

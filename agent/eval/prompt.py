# SPDX-License-Identifier: GPL-3.0-or-later
# Joins bootstrap.py in the target when a client first is a prompt.
import _ast

Interactive = type(compile("0", AGENT, "single", ONLY_AST))


HELPERS = "asyncio", "gc", "os", "sys", "threading"  # known at a prompt without an import
LOADED = "__main__", "torch"  # likewise, if the program has imported them
MODULE_OF, LAST_VALUE, LOCAL_OF = ("__import__(%r)", "__import__('sys').displayhook.last",
                                   "__import__('sys').displayhook.local(%r)")


def names_in(codes):
    for code in codes:
        for name in code.co_names:
            yield name
        for name in names_in(each for each in code.co_consts if type(each) is type(code)):
            yield name


def may_read(frame, name):
    """Whether it is a variable of the function, and no tracer can be looking at the frame: up to Python 3.12
    both would use the one dict that f_locals is."""
    code = frame.f_code
    return code.co_flags & 1 and name in code.co_varnames + code.co_cellvars + code.co_freevars and (
        sys.version_info >= (3, 13) or frame.f_trace is None and frame.f_lineno != code.co_firstlineno)


def read_local(frame, name, found):
    """Adds the value, if it has one. As read_locals(), for a frame of another thread."""
    own = frame.f_locals
    if name in own:
        found.append(own[name])
    if sys.version_info < (3, 13) and sys.getrefcount(own) == 3:
        code = frame.f_code
        for each in code.co_varnames + code.co_cellvars + code.co_freevars:
            own.pop(each, None)


def find_local(name):
    """([value], where it is) of the innermost function of a thread of the program that has it as a variable,
    the main thread first; ([], None) if none has."""
    running, found, first = current_frames(), [], main_thread(0)
    running.pop(get_ident(), None)  # that of this function would keep itself alive, and the value
    for ident in sorted(set(running).difference(threads), key=lambda each: (each != first, each)):
        frame, depth = running.pop(ident), 0
        while frame:
            if frame.f_code.co_filename != AGENT and may_read(frame, name):
                read_local(frame, name, found)
            if found:
                code = frame.f_code
                thread = getattr(sys.modules.get("threading"), "_active", {}).get(ident)
                return found, "%s() %s:%d (frame %d%s)" % (
                    code.co_name, code.co_filename.rpartition("/")[2], frame.f_lineno, depth,
                    "" if ident == first else " of thread %s" % getattr(thread, "_name", ident))
            frame, depth = frame.f_back, depth + 1
    return found, None


def where_is(error):
    """A line that says which function has the name that an error is about; "" if none has."""
    words = str(error).split("'")
    name = getattr(error, "name", None) or (words[1] if len(words) == 3 else "")
    where = find_local(name)[1]
    if not where:
        return ""
    return "%s is a variable of %s: 'print %s@%s' reads it\n" % (name, where, name, where.partition("(")[0])


def uses_of(tree, name):
    """[(node, field, index)] of where a name is read; None if it is also given a value."""
    found, rest = [], [tree]
    while rest:
        node = rest.pop()
        for field in node._fields:
            value = getattr(node, field, None)
            for index, item in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(item, _ast.AST):
                    rest.append(item)
                    if type(item) is _ast.Name and item.id == name:
                        if type(item.ctx) is not _ast.Load:
                            return None
                        found.append((node, field, index))
                elif item == name and field in ("name", "asname", "names", "arg", "rest"):
                    return None
    return found


def put(uses, text):
    """An expression instead of each use of a name."""
    for node, field, index in uses:
        old = getattr(node, field) if index is None else getattr(node, field)[index]
        new = compile(text, AGENT, "eval", ONLY_AST).body
        part = new
        while part is not None:
            for place in old._attributes:
                setattr(part, place, getattr(old, place, None))
            for argument in getattr(part, "args", ()):
                for place in old._attributes:
                    setattr(argument, place, getattr(old, place, None))
            part = getattr(part, "value", None) or getattr(part, "func", None)
        if index is None:
            setattr(node, field, new)
        else:
            getattr(node, field)[index] = new


class Session:
    """What a prompt keeps from one statement to the next."""

    def __init__(self):
        self.compiler = module("codeop").CommandCompiler()
        self.sources = Sources()
        self.has_last, self.last = False, None
        self.found = {}  # variables of running functions, for one statement
        self.name = None  # of the statement that is being entered

    def flags(self):
        return future_flags(self.compiler.compiler.flags)

    def compile(self, text, name, last):
        """Code objects; None if more has to come."""
        try:
            code = self.compiler(text, name, "single")
            if code is not None:
                return [code]
            if not last:
                return None
        except SyntaxError:
            # Several statements, as are pasted?
            if "\n" not in text.rstrip():
                raise
            try:
                if not last and self.compiler(text, name, "exec") is None:
                    return None
                compile(text, name, "exec", self.flags(), True)
            except SyntaxError:
                several = False
            else:
                several = True
            if not several:
                raise
        tree = compile(text + "\n", name, "exec", ONLY_AST | self.flags(), True)
        return [compile(Interactive([each]), name, "single", self.flags(), True)
                for each in tree.body]

    def local(self, name):
        """The value of a running function's variable: the same one for all of a statement."""
        if name not in self.found:
            value, where = find_local(name)
            if not value:
                raise NameError("name '%s' is not defined" % name)
            self.found[name] = value[0]
            send(threads[get_ident()][0], 2, "%s is that of %s\n" % (name, where))
        return self.found[name]

    def meaning(self, name):
        """The expression that a name stands for which is neither global nor a builtin; None: an error."""
        if name == "_":
            return LAST_VALUE
        if name in HELPERS or name in LOADED and name in sys.modules:
            return MODULE_OF % name
        return LOCAL_OF % name if find_local(name)[1] else None

    def with_meanings(self, codes, text, name, names):
        """The same with this session's `_`, with modules, and with variables of running functions, unless the
        program has such a name."""
        missing = sorted(each for each in set(names_in(codes))
                         if each not in names and each not in builtins_of(names))
        if not missing:
            return codes
        tree, changed = compile(text + "\n", name, "exec", ONLY_AST | self.flags(), True), False
        for each in missing:
            uses = uses_of(tree, each)
            meaning = self.meaning(each) if uses else None
            if meaning:
                put(uses, meaning)
                changed = True
        return [compile(Interactive([each]), name, "single", self.flags(), True)
                for each in tree.body] if changed else codes

    def run(self, source, name, last):
        names = namespace()
        self.name = self.name or number(name)
        name = self.name
        try:
            text = source.decode()
            word = text.strip()
            if word in ("exit", "quit", "exit()", "quit()") and word[:4] not in names:
                return EXIT
            codes = self.compile(text, name, last)
        except (SyntaxError, ValueError, OverflowError, MemoryError) as error:
            self.name = None
            error.__cause__ = None  # how the compiler came to it is of no interest
            raise error.with_traceback(None)
        if codes is None:
            return INCOMPLETE
        self.name = None
        self.sources.add(name, text)
        try:
            for code in self.with_meanings(codes, text, name, names):
                exec(code, names)
        finally:
            self.found.clear()
        return DONE

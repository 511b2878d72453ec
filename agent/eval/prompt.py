# SPDX-License-Identifier: GPL-3.0-or-later
# Joins bootstrap.py in the target when a client first is a prompt.
import _ast

Interactive = type(compile("0", AGENT, "single", ONLY_AST))


def mentions(code, name):
    return name in code.co_names or any(
        mentions(inner, name) for inner in code.co_consts if type(inner) is type(code))


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


def put_last(tree):
    """The session's last value instead of each `_`; False if that is a name of the code's own."""
    uses = uses_of(tree, "_")
    for node, field, index in uses or ():
        old = getattr(node, field) if index is None else getattr(node, field)[index]
        new = compile("__import__('sys').displayhook.last", AGENT, "eval", ONLY_AST).body
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
    return bool(uses)


class Session:
    """What a prompt keeps from one statement to the next."""

    def __init__(self):
        import codeop

        self.compiler = codeop.CommandCompiler()
        self.sources = Sources()
        self.has_last, self.last = False, None
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

    def with_last(self, codes, text, name, names):
        """The same with this session's `_`, unless the program has one."""
        if "_" in names or "_" in builtins_of(names) or not any(
                mentions(code, "_") for code in codes):
            return codes
        tree = compile(text + "\n", name, "exec", ONLY_AST | self.flags(), True)
        return [compile(Interactive([each]), name, "single", self.flags(), True)
                for each in tree.body] if put_last(tree) else codes

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
        for code in self.with_last(codes, text, name, names):
            exec(code, names)
        return DONE

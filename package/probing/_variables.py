# SPDX-License-Identifier: GPL-3.0-or-later
# What names mean in a frame, for code that others bring: what they would mean in the frame's own code. A
# variable without a value raises as it would there, and is never a global or a builtin of the same name; nor
# is a variable of the functions around, or a private name of a class. The agent has this file too, in front
# of agent/eval/frame.py. So it runs on Python 3.4.
import sys

try:
    read_locals  # the agent's own
except NameError:
    from ._locals import read_locals

OPTIMIZED, NESTED = 1, 0x10  # flags of code: a function, one in a function
CodeOfVariables = type((lambda: 0).__code__)
AT_ONCE = "<listcomp>", "<setcomp>", "<dictcomp>", "<generic parameters of "
MOST_CODES = 1000  # that are remembered
NAMES_OF_CODE = "co_names", "co_varnames", "co_freevars", "co_cellvars"
UNKNOWN_CLASS = "'%s' is a private name, and the class around the code is not known: write '_CLASS%s'"
NOT_KEPT = "'%s' is a variable of %s, which the code here does not use, so that it has no value of it"
NEW_WORDS = sys.version_info >= (3, 11)
FREE = "cannot access free variable '%s' where it is not associated with a value in enclosing scope" \
    if NEW_WORDS else "free variable '%s' referenced before assignment in enclosing scope"
LOCAL = "cannot access local variable '%s' where it is not associated with a value" \
    if NEW_WORDS else "local variable '%s' referenced before assignment"
codes_around = {}  # {id(code): (code, {name: code around that has it as a variable}, without what its class assigns)}
classes_around = {}  # {id(code): (code, name)}


def without_value(code, names, values):
    """{name: message} of those @names that are variables of the code and not in @values. The names in a class
    or a module are no variables: without a value they mean a global there too."""
    found = {}
    for name in names:
        if name in values:
            continue
        if name in code.co_freevars:
            found[name] = FREE
        elif code.co_flags & OPTIMIZED and name in code.co_varnames + code.co_cellvars and \
                not is_of_comprehensions(code, name):
            found[name] = LOCAL
    return found


def is_of_comprehensions(code, name):
    """Since 3.12 the variables of comprehensions are among those of the function. Elsewhere in it such a name
    means a global: all that uses it as a variable lies within comprehensions that save its value."""
    if sys.version_info < (3, 12) or name in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]:
        return False
    import opcode

    if opcode.opmap["LOAD_FAST_AND_CLEAR"] not in code.co_code[::2]:
        return False
    saves, uses, extended = [], [], 0
    local = set(opcode.haslocal).union(opcode.hasfree)
    for at, place in enumerate(code.co_positions()):
        number, argument = code.co_code[2 * at], code.co_code[2 * at + 1] | extended
        what = opcode.opname[number]
        extended = argument << 8 if what == "EXTENDED_ARG" else 0
        parts = [argument]
        if what.count("_FAST") > 1:  # two in one
            parts = [argument >> 4, argument & 15]
        elif number not in local or what == "MAKE_CELL":
            continue
        if name in map(code._varname_from_oparg, parts):
            (saves if what == "LOAD_FAST_AND_CLEAR" else uses).append(place)
    if any(None in place for place in saves + uses):
        return False
    within = [((line, column), (end, last)) for line, end, column, last in saves]
    return bool(saves) and all(any(start <= (line, column) and (end, last) <= to for start, to in within)
                               for line, end, column, last in uses)


def is_class_body(code):
    return not code.co_flags & OPTIMIZED and str.isidentifier(code.co_name)


def is_module(code):
    return not code.co_flags & OPTIMIZED and not is_class_body(code)


def path_to(code, root):
    """The codes from @root to the one, each of which has the next; None if it is not in it."""
    if root is code:
        return [code]
    for each in root.co_consts:
        if type(each) is CodeOfVariables:
            found = path_to(code, each)
            if found:
                return [root] + found
    return None


def functions_in(names):
    """Those of a module, and of its classes."""
    of_class = type.__dict__["__dict__"].__get__
    for each in list(names.values()):
        kind = type(each)
        if kind in (staticmethod, classmethod):
            each = each.__func__
        elif kind is property:
            each = each.fget
        if type(each) is type(path_to):
            yield each
        elif issubclass(kind, type) and names.get("__name__") == of_class(each).get("__module__"):
            for one in functions_in(dict(of_class(each), __name__=None)):
                yield one


def roots_of(frame):
    """(code, function or None) of what may have the frame's code in it: what has called it, the functions of
    its module, and at last all that there are."""
    back = frame.f_back
    while back:
        yield back.f_code, None
        back = back.f_back
    for each in functions_in(frame.f_globals):
        yield each.__code__, each
    import gc

    for each in gc.get_objects():
        if type(each) is type(path_to):
            yield each.__code__, each


def paths_of(frame):
    """(path, function or None) for each of those."""
    code, seen = frame.f_code, set()
    for root, function in roots_of(frame):
        if root.co_filename == code.co_filename and root.co_firstlineno <= code.co_firstlineno and \
                (id(root), id(function)) not in seen:
            seen.add((id(root), id(function)))
            path = path_to(code, root)
            if path:
                yield path, function


def look_around(frame):
    """The codes around the frame's, outermost first, as far as they are known."""
    code, longest = frame.f_code, []
    if not code.co_flags & NESTED and not is_class_body(code):
        return longest
    for path, _ in paths_of(frame):
        if len(path) > len(longest) + 1:
            longest = path[:-1]
            if is_module(longest[0]) or longest[0].co_flags & (OPTIMIZED | NESTED) == OPTIMIZED:
                break
    return longest


def used_as(kind, code):
    import dis

    return {each.argval for each in dis.get_instructions(code) if each.opname.endswith(kind)}


def variables_of(code):
    return {name for name in code.co_varnames + code.co_cellvars + code.co_freevars
            if str.isidentifier(name) and not is_of_comprehensions(code, name)}


def variables_around(frame, nested=True):
    """{name: code} of the variables that the functions around have and the frame's code does not use. Were the
    name in its source, it would mean that variable. What a class assigns, too, means that in its body and then
    a global, but not in functions that are @nested in it."""
    code = frame.f_code
    known = codes_around.get(id(code))
    if known is None or known[0] is not code:
        found, others, own = {}, set(), set()
        around = look_around(frame)
        if around:
            own = used_as("_NAME", code)
            others = variables_of(code) if code.co_flags & OPTIMIZED else set()
            others |= used_as("_GLOBAL", code)
        for each in reversed(around):
            if each.co_flags & OPTIMIZED:
                names = variables_of(each)
            else:
                names = {"__class__"} if is_class_body(each) else ()
            for name in names:
                if name not in others:
                    found.setdefault(name, each)
            others |= used_as("_GLOBAL", each).difference(found)
        if len(codes_around) >= MOST_CODES:
            codes_around.clear()
        known = codes_around[id(code)] = code, found, {name: found[name] for name in found if name not in own}
    return known[1 if nested else 2]


def frame_with(frame, code):
    """That of the code around which has the frame's variables, where it is certain: each has called the next at
    once."""
    while frame and frame.f_code is not code:
        own, back = frame.f_code, frame.f_back
        once = is_class_body(own) or own.co_name.startswith(AT_ONCE)
        frame = back if once and back and any(each is own for each in back.f_code.co_consts) else None
    return frame


def called(code):
    return getattr(code, "co_qualname", code.co_name)


def class_in(name):
    """The class that the last part of a qualified name is defined in; "": none."""
    parts = name.split(".")
    for at in reversed(range(len(parts) - 1)):
        if "<locals>" not in parts[at:at + 2]:
            return parts[at]
    return ""


def class_around(frame):
    """The name of the class whose private names the frame's code can use; "": none; None if it is not known."""
    code = frame.f_code
    if is_class_body(code):
        return code.co_name
    if hasattr(code, "co_qualname"):
        return class_in(code.co_qualname)
    known = classes_around.get(id(code))
    if known is None or known[0] is not code:
        if len(classes_around) >= MOST_CODES:
            classes_around.clear()
        known = classes_around[id(code)] = code, find_class(frame)
    return known[1]


def find_class(frame):
    """Before 3.11: from the functions that have the code."""
    found = set()
    if is_module(frame.f_code):
        return ""
    for path, function in paths_of(frame):
        inner = [each.co_name for each in path if is_class_body(each)]
        if inner:
            return inner[-1]
        if is_module(path[0]):
            return ""
        # functools.wraps() gives a function the name of another one.
        if function and function.__qualname__.rpartition(".")[2] == path[0].co_name:
            found.add(class_in(function.__qualname__))
    return found.pop() if len(found) == 1 else None


def is_private(name):
    return name.startswith("__") and not name.endswith("__") and "." not in name


def mangle(of, name):
    return "_%s%s" % (of.lstrip("_"), name) if of.strip("_") and is_private(name) else name


def private_in(code):
    for name in code.co_names + code.co_varnames + code.co_cellvars:
        if is_private(name):
            return name
    return next(filter(None, (private_in(each) for each in code.co_consts if type(each) is CodeOfVariables)),
                None)


def class_for(frame, name):
    """That of a private name, or of none."""
    of = class_around(frame) if name else ""
    if of is None:
        raise NameError(UNKNOWN_CLASS % (name, name))
    return of


def mangled(code, of):
    """The code as the compiler would make it in a class."""
    new = {each: tuple(mangle(of, name) for name in getattr(code, each)) for each in NAMES_OF_CODE}
    new["co_consts"] = tuple(mangled(each, of) if type(each) is CodeOfVariables else each
                             for each in code.co_consts)
    if hasattr(code, "replace"):
        return code.replace(**new)
    return CodeOfVariables(
        code.co_argcount, code.co_kwonlyargcount, code.co_nlocals, code.co_stacksize, code.co_flags, code.co_code,
        new["co_consts"], new["co_names"], new["co_varnames"], code.co_filename, code.co_name,
        code.co_firstlineno, code.co_lnotab, new["co_freevars"], new["co_cellvars"])


def value_around(values, name):
    if name in values:
        return values[name]
    raise NameError(FREE % name)


class NamesOfFrame(dict):
    """The frame's variables, and behind them its globals. A subclass of dict, so that Python asks it for names
    that it does not have."""

    def __init__(self, frame, own, nested):
        dict.__init__(self, own)
        self.frame, self.own, self.nested = frame, dict(own), nested

    def __missing__(self, name):
        owner = variables_around(self.frame, self.nested).get(name)
        if owner:
            found = frame_with(self.frame, owner)
            if found is None:
                raise NameError(NOT_KEPT % (name, called(owner)))
            return read_locals(found, lambda own: value_around(own, name))
        for message in without_value(self.frame.f_code, [name], self.own).values():
            raise (NameError if name in self.frame.f_code.co_freevars else UnboundLocalError)(message % name)
        return self.frame.f_globals[name]


def is_seen_alike(code, frame, own):
    """Whether Python itself gives each name in an expression's @code its meaning. It is asked at each hit of a
    breakpoint."""
    if own is frame.f_globals:
        return True
    for each in code.co_consts:
        if type(each) is CodeOfVariables:  # sees globals alone
            return False
    around = variables_around(frame, False)
    for each in code.co_names:
        if each not in own and (each in around or without_value(frame.f_code, [each], own)):
            return False
    return True


def eval_in_frame(code, frame, own):
    """The value of an expression's @code in a frame with the variables @own."""
    private = private_in(code)
    if private:
        code = mangled(code, class_for(frame, private))
    if is_seen_alike(code, frame, own):
        return eval(code, frame.f_globals, own)
    names = NamesOfFrame(frame, own, True)
    names["__builtins__"] = dict(frame.f_builtins, globals=lambda: frame.f_globals)
    return eval(code, names, NamesOfFrame(frame, own, False))

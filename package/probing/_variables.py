# SPDX-License-Identifier: GPL-3.0-or-later
# What names mean in a frame, for code that others bring. A variable of the frame's code that has no value
# raises as it would in that code: it is never a global or a builtin of the same name. The agent has this
# file too, in front of agent/eval/frame.py. So it runs on Python 3.4.
import sys

OPTIMIZED = 1  # CO_OPTIMIZED: a function
CodeOfVariables = type((lambda: 0).__code__)


def without_value(code, names, values):
    """{name: message} of those @names that are variables of the code and not in @values. The names in a class
    or a module are no variables: without a value they mean a global there too."""
    found, new = {}, sys.version_info >= (3, 11)
    for name in names:
        if name in values:
            continue
        if name in code.co_freevars:
            found[name] = "cannot access free variable '%s' where it is not associated with a value in " \
                          "enclosing scope" if new else \
                          "free variable '%s' referenced before assignment in enclosing scope"
        elif code.co_flags & OPTIMIZED and name in code.co_varnames + code.co_cellvars and \
                not is_of_comprehensions(code, name):
            found[name] = "cannot access local variable '%s' where it is not associated with a value" if new \
                else "local variable '%s' referenced before assignment"
    return found


def is_of_comprehensions(code, name):
    """Since 3.12 the variables of comprehensions are among those of the function. Elsewhere in it such a name
    means a global: all that uses it as a variable lies within comprehensions that save its value."""
    if sys.version_info < (3, 12) or name in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]:
        return False
    import opcode

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


class NamesOfFrame(dict):
    """The frame's variables, and behind them its globals. A subclass of dict, so that Python asks it for names
    that it does not have."""

    def __init__(self, frame, own):
        dict.__init__(self, own)
        self.frame, self.own = frame, dict(own)

    def __missing__(self, name):
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
    for each in code.co_names:
        if each not in own and without_value(frame.f_code, [each], own):
            return False
    return True


def eval_in_frame(code, frame, own):
    """The value of an expression's @code in a frame with the variables @own."""
    if is_seen_alike(code, frame, own):
        return eval(code, frame.f_globals, own)
    names = NamesOfFrame(frame, own)  # for what is nested
    names["__builtins__"] = dict(frame.f_builtins, globals=lambda: frame.f_globals)
    return eval(code, names, NamesOfFrame(frame, own))

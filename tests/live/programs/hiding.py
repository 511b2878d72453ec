# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of classes that hide all that they keep, each derived from another class: `rows` of work(). Its argument is a file of JSON: the
text that nobody may see, and {name: [imports, class, arguments]}. Prints which there are, as {name: where its text would show}, of which
no class can be derived, and what is not in this Python."""
import json
import sys
import types

sys.path.pop(0)  # names of other programs are those of modules
with open(sys.argv[1]) as file:
    TEXT, ROWS = json.load(file)
NUMBER = 42424242


def shows(value):
    try:
        said = repr(value)
    except Exception:
        return False
    return TEXT in said or str(NUMBER) in said


def derived(base):
    return types.new_class("Derived", (base,), {}, lambda names: names.__setitem__("get_secret_value", lambda self: TEXT))


def of_class(made, name):
    """What the class has is no part of the object."""
    return name not in getattr(made, "__dict__", ()) and any(
        name in vars(each) and not hasattr(type(vars(each)[name]), "__set__") for each in type(made).__mro__)


def places(made):
    """What an expression that looks into the object would show."""
    for name in dir(made):
        if of_class(made, name):
            continue
        try:
            value = getattr(made, name)
        except Exception:
            continue
        if shows(value):
            yield "." + name
    for key in 0, "key":
        try:
            if shows(made[key]):
                yield "[%r]" % key
        except Exception:
            pass


def make(imports, base, arguments):
    """The object; False if there is no such class here, or no object of it, None if no other can be derived from it."""
    known = {"TEXT": TEXT, "NUMBER": NUMBER, "derived": derived, "work": work}
    try:
        for name in imports.split():
            known[name] = __import__(name)
        base = eval(base, known)
    except (ImportError, AttributeError, NameError, TypeError):
        return False
    try:
        known["Class"] = derived(base)
    except TypeError:
        return None
    made = eval(arguments, known)
    if not isinstance(made, known["Class"]):  # pandas.Timestamp() gives its own class, whatever was asked for
        return False
    try:
        made.kept = TEXT
    except (AttributeError, TypeError, ValueError):
        pass
    return made


def make_all():
    made, final, missing = {}, [], []
    for name, words in ROWS.items():
        one = make(*words)
        if one is None or one is False:
            (final if one is None else missing).append(name)
        else:
            made[name] = one
    made["dict views"] = [derived(dict)(key=TEXT).values(), derived(dict)(key=TEXT).items(), derived(dict)({TEXT: 1}).keys()]
    return made, [{name: list(places(one)) for name, one in made.items()}, final, missing]


def work(rows):
    sys.stdin.read()


made, told = make_all()
del TEXT, ROWS, NUMBER  # what is left is in the objects
print(json.dumps(told), flush=True)
del told
work(made)

# SPDX-License-Identifier: GPL-3.0-or-later
"""The cases that CPython tests the printers of its own libpython.py with (3.8 to 3.14: 27 of them), by the facts that a
debugger's user looks for: the same text as repr() or, of classes of the program, its name and what its objects hold."""

import json
import re

import debuggers
import pytest
import support
from debuggers import gdb
from test_pretty import ON, shown, types  # noqa: F401 (fixture)

VERSIONS = [each for each in support.one_per_version((3, 8)) if not each.free_threaded]
PROGRAM = """
import json, os, sys

class Plain(object):
    pass

class MyList(list):
    pass

class MyTuple(tuple):
    pass

class MyDict(dict):
    pass

class Broken(object):
    pass

class Flagless(object):
    pass

class Nameless(object):
    pass

def made(kind, **held):
    it = kind()
    it.__dict__.update(held)
    return it

def fails(kind, *words):
    try:
        raise kind(*words)
    except kind as error:
        return error

def divided():
    try:
        1 // 0
    except ZeroDivisionError as error:
        return error

def outer(first, second=5, *rest, **more):
    local = [first]
    return sys._getframe()

in_list = [3, 4, 5]
in_list.append(in_list)
in_dict = {"inner": {}}
in_dict["inner"]["outer"] = in_dict
me, one, two = Plain(), Plain(), Plain()
me.me, one.other, two.other, one.number = me, two, one, 7
with_list, with_tuple = MyList([1, 2]), MyTuple((1, "x"))
with_list.an_int, with_tuple.an_int = 43, 44
same = {
    "int": [42, 0, -7, 10 ** 12, -10 ** 15, 2 ** 100],
    "singletons": [True, False, None],
    "dicts": [{}, {"a": "b"}, {"a": 1, 2: "two"}, {"a": {"b": None}}],
    "lists": [[], list(range(5)), [[1], "x"]],
    "bytes": [b"", b"a text", b"null \\x00 inside", b"last \\xff", b"line\\n"],
    "strings": ["", "a text", "null \\x00 inside", "line\\n", "it's", "\\xe9t\\xe9", "\\u2620 \\u4e00", "\\U0001d121"],
    "tuples": [(), (1,), ("a", "b", "c")],
    "sets": [set(), {7}, {"a"}],
    "frozensets": [frozenset(), frozenset({"a"})],
    "exceptions": [fails(RuntimeError, "a reason"), fails(KeyError, "key", 2), divided()],
    "list in itself": [in_list],
    "dict in itself": [in_dict],
}
others = {
    "class": made(Plain, an_int=42), "subclass of list": with_list, "subclass of tuple": with_tuple,
    "subclass of dict": MyDict(a=1), "object in itself": me, "objects in each other": one, "no type": made(Broken),
    "no sensible type": made(Broken), "flags of a type": made(Flagless, an_int=45),
    "name of a type": made(Nameless, an_int=46), "help": help, "long": list(range(1000)), "builtin function": len,
    "builtin method": sys.stdout.readlines, "frame": outer(3, 4, "rest", key=6),
}
print(json.dumps([[[name, id(it), repr(it)] for name, all in same.items() for it in all],
                  {name: id(it) for name, it in others.items()}, id(Flagless), id(Nameless)]), flush=True)
os.read(0, 1)
"""
TP_NAME, TP_FLAGS = 24, 168
ADDRESS = "0x[0-9a-f]+"
FACTS = {
    "class": r"<__main__\.Plain an_int=42>",
    "subclass of list": r"<__main__\.MyList \[1, 2\] an_int=43>",
    "subclass of tuple": r"<__main__\.MyTuple \(1, 'x'\) an_int=44>",
    "subclass of dict": r"<__main__\.MyDict \{'a': 1\}>",
    "object in itself": r"<__main__\.Plain me=<__main__\.Plain object at %s>>" % ADDRESS,
    "objects in each other": r"<__main__\.Plain (number=7 )?other=<__main__\.Plain object at %s>( number=7)?>" % ADDRESS,
    "null": "0x0",
    "no type": r"<there is no object at %s: .*>" % ADDRESS,
    "no sensible type": r"<there is no object at %s: .*>" % ADDRESS,
    "flags of a type": r"<.*>",
    "name of a type": r"<.*>",
    "help": r"Type help\(\) for .*|<_sitebuiltins\._Helper.*>",
    "long": r"\[0, 1, 2, 3, .*…\+\d+\]",
    "builtin function": r"<built-in function len>",
    "builtin method": r"<built-in method readlines of _io\.TextIOWrapper object at %s>" % ADDRESS,
    "frame": r"<frame at %s, file '.*cases\.py', line \d+, code outer first=3 second=4 rest=\('rest',\) "
             r"more=\{'key': 6\} local=\[3\]>" % ADDRESS,
}


@debuggers.needs_gdb
@pytest.mark.parametrize("interpreter", VERSIONS, ids=repr)
def test_cases(interpreter, types, tmp_path):  # noqa: F811
    program = tmp_path / "cases.py"
    program.write_text(PROGRAM)
    with support.Target(interpreter, program) as process:
        same, others, flagless, nameless = json.loads(process.line())
        support.wait_for_sleep(process.pid, "pipe_read")
        others = {"null": 0, **others}
        damage = ["set {long} (%d + %d) = %d" % each for each in (
            (others["no type"], 8, 0), (others["no sensible type"], 8, 0x5000), (flagless, TP_FLAGS, 0),
            (nameless, TP_NAME, 0xdeadbeef))]
        session = gdb(types, ON, "set print elements 200", *damage,
                      *[command for i, (_, at, _) in enumerate(same)
                        for command in (("same%d" % i,), "print (PyObject *) %d" % at)],
                      *[command for i, at in enumerate(others.values())
                        for command in (("other%d" % i,), "print (PyObject *) %d" % at)], ("end",),
                      arguments=["-p", process.pid])
    assert not session.code and "Python Exception" not in session.err, session
    wrong = [(name, text, now) for i, (name, _, text) in enumerate(same)
             for now in [shown(session, "same%d" % i).split(" ", 1)[1]] if now != text]
    wrong += [(name, FACTS[name], now) for i, name in enumerate(others)
              for now in [re.sub("^0x[0-9a-f]+ ", "", shown(session, "other%d" % i))] if not re.fullmatch(FACTS[name], now)]
    assert not wrong, wrong
    assert len({name for name, _, _ in same}) + len(FACTS) >= 27

# SPDX-License-Identifier: GPL-3.0-or-later
"""The debuggers' own display of pointers to objects, after `set probing pretty on`."""

import json
import re
import subprocess

import debuggers
import environment
import pytest
import support
import tables
from debuggers import gdb, lldb, opened
from debuggers import known  # noqa: F401 (fixture)
from test_library_debugger import look_up
from test_look_up import held

ON = "set probing pretty on"
MODULE = "<code object <module> at 0x"  # the code of the outermost call of the eval loop


class Objects(support.Target):
    """A program that prints the values of some expressions, and the addresses of these objects."""

    def __init__(self, interpreter):
        super().__init__(interpreter, debuggers.PROGRAMS / "looked_up.py")
        self.interpreter = interpreter
        self.truth = json.loads(self.line())
        support.wait_for_sleep(self.pid, "pipe_read")
        with held(self) as session:
            self.at = {expression: look_up(session, self.pid, expression)[2]
                       for expression in self.truth}


@pytest.fixture(params=tables.chosen_interpreters(), ids=repr)
def objects(request):
    with Objects(request.param) as process:
        yield process


@pytest.fixture
def one(known):
    with Objects(known) as process:
        yield process


@pytest.fixture
def symbols(known):
    """For tests that ask the debugger for types and variables of Python."""
    exe, library, _ = environment.parts(known)
    if gdb("ptype PyObject", arguments=[library or exe]).code:
        pytest.skip("%r has no debug symbols here" % known)


@pytest.fixture(scope="module")
def types(tmp_path_factory):
    """A command for gdb that makes Python's types known, even if stripped."""
    file = tmp_path_factory.mktemp("types") / "types.o"
    subprocess.run(["cc", "-g", "-c", "-o", file, debuggers.PROGRAMS / "object_types.c"],
                   check=True)
    return "add-symbol-file %s 0" % file


def shown(session, name):
    """The output of `print` after the mark."""
    return re.search(r"^\$\d+ = (.*)$", session.part(name), re.M).group(1)


@debuggers.needs_gdb
@pytest.mark.parametrize("way", debuggers.WAYS)
def test_gdb_prints_the_values_of_the_program(objects, types, way, tmp_path):
    if way == "core" and objects.interpreter.version >= (3, 13) and \
            "debian" in objects.interpreter.name:
        pytest.skip("gcore stops short at the guard pages of newer C libraries")
    commands = []
    # Values that are no objects in memory have no address.
    expressions = [each for each in sorted(objects.truth) if objects.at[each]]
    for number, expression in enumerate(expressions):
        commands += [("v%d" % number,), "print (PyObject *) %d" % objects.at[expression]]
    number = objects.at["self.items"]
    commands += [("kinds",), "print (UserObject *) %d" % number, "print (PyVarObject *) %d" % number,
                 "print (const PyObject *) %d" % number, "print (struct other *) %d" % number,
                 "print (PyObject **) %d" % number, "print/r (PyObject *) %d" % number, ("end",)]
    with opened(gdb, way, objects, tmp_path) as run:
        session = run(types, ON, *commands)
    assert not session.code, session
    for number, expression in enumerate(expressions):
        assert shown(session, "v%d" % number) == "%#x %s" % (
            objects.at[expression], objects.truth[expression]), expression
    lines = session.part("kinds").strip().splitlines()
    assert len(lines) == 6
    for line in lines[:3]:
        assert line.endswith(" " + objects.truth["self.items"]), session
    for line in lines[3:]:
        assert objects.truth["self.items"] not in line
    assert objects.alive()


@debuggers.needs_gdb
def test_gdb_shows_references_of_the_stack(one, types):
    def command(bits):
        return "python print(gdb.Value((%d).to_bytes(8, 'little'), " \
            "gdb.lookup_type('_PyStackRef')).format_string())" % bits

    number = one.at["self.items"]
    session = gdb(types, ON, ("plain",), command(number), ("tagged",), command(number | 1),
                  ("int",), command(17 << 2 | 3), ("minus",), command((-17 << 2 | 3) % (1 << 64)),
                  ("null",), command(1),
                  ("end",), arguments=["-p", one.pid])
    assert session.part("plain").strip() == "%#x %s" % (number, one.truth["self.items"]), session
    assert session.part("tagged").strip() == "%#x %s" % (number | 1, one.truth["self.items"])
    assert session.part("int").strip() == "0x47 int 17 in the reference"
    assert session.part("minus").strip().endswith(" int -17 in the reference")
    assert session.part("null").strip() == "0x1 NULL"


@debuggers.needs_gdb
@pytest.mark.usefixtures("symbols")
def test_pointers_to_nothing_say_so(one):
    session = gdb(ON, ("null",), "print (PyObject *) 0", ("low",), "print (PyObject *) 16",
                  ("odd",), "print (PyObject *) 17", ("other",), "print (PyObject *) &_PyRuntime",
                  ("far",), "print (PyObject *) 0xfffffffffffffff8",
                  arguments=["-p", one.pid])
    assert not session.code and "Python Exception" not in session.err, session
    assert shown(session, "null") == "0x0"
    for name, address in (("low", "0x10"), ("odd", "0x11"), ("far", "0xfffffffffffffff8")):
        assert shown(session, name).startswith("%s <there is no object at %s: " % (
            address, address)), session
    assert re.match(r"0x\w+ <there is no object at 0x\w+: .*not a type>", shown(session, "other"))


@debuggers.needs_gdb
@pytest.mark.usefixtures("symbols")
def test_own_commands_of_gdb(one):
    session = gdb(ON, ("bt",), "backtrace", ("args",),
                  "frame apply all -q -s info args", ("local",), "set var $kept = PyExc_KeyError", "print $kept",
                  "output PyExc_KeyError", ("type",), "print &PyDict_Type",
                  arguments=["-p", one.pid])
    assert not session.code, session
    assert "=0x" in session.part("bt") and MODULE in session.part("bt")
    assert re.search("^co = 0x[0-9a-f]+ " + MODULE, session.part("args"), re.M)
    assert session.part("local").count(" <class 'KeyError'>") == 2
    assert " <class 'dict'>\n" in session.part("type")


@debuggers.needs_gdb
@pytest.mark.usefixtures("symbols")
def test_limits(one):
    items, text = one.at["self.items"], one.at["argument"]
    session = gdb("set probing max-string 100", ON, ("all",), "print (PyObject *) %d" % items,
                  "set print elements 1", ("one",), "print (PyObject *) %d" % items,
                  ("text",), "print (PyObject *) %d" % text,
                  "set print elements unlimited", "set probing max-string 5", ("cut",),
                  "print (PyObject *) %d" % items, arguments=["-p", one.pid])
    assert shown(session, "all").endswith(" [[1], [2, 'two']]"), session
    assert shown(session, "one").endswith(" [[1], …+1]")
    assert shown(session, "text").endswith(" 'g'…+4")
    assert "…" in shown(session, "cut") and len(shown(session, "cut").split(" ", 1)[1]) < 12


@debuggers.needs_gdb
@pytest.mark.usefixtures("symbols")
def test_memory_that_was_written_is_read_again(one):
    number = one.at["self.named[\"key\"]['inner'][1]"]
    value = "print (PyObject *) %d" % number
    session = gdb(ON, ("before",), value, "set {double} %d = 7.25" % (number + 16), ("after",),
                  value, "set {double} %d = 2.5" % (number + 16), ("again",), value, "detach",
                  arguments=["-p", one.pid])
    assert [shown(session, name).split()[1] for name in ("before", "after", "again")] == \
        ["2.5", "7.25", "2.5"], session


@debuggers.needs_gdb
@pytest.mark.usefixtures("symbols")
def test_off_restores_and_printers_of_others_go_first(one):
    theirs = "python\nclass Theirs:\n    def to_string(self):\n        return 'theirs'\n" \
        "def theirs(value):\n    if str(value.type) == 'PyTypeObject *':\n        return Theirs()\n" \
        "gdb.pretty_printers.append(theirs)\nend"
    look = ["print PyExc_KeyError", "info pretty-printer", "python print(gdb.pretty_printers)",
            "show probing pretty"]
    session = gdb(("before",), *look, ON, ON, ("on",), *look, "set probing pretty off",
                  "set probing pretty off", ("after",), *look, ON, theirs, ("their",),
                  "print &PyDict_Type", ("own",), "print PyExc_KeyError",
                  ("disabled",), "disable pretty-printer global probing", "print PyExc_KeyError",
                  arguments=["-p", one.pid])
    assert not session.code, session
    same = re.sub(r"\$\d+", "$", session.part("before"))
    assert same == re.sub(r"\$\d+", "$", session.part("after"))
    assert "probing" not in same and same.endswith("off\n\n")
    assert "\n  probing\n" in session.part("on") and session.part("on").endswith("on\n\n")
    assert shown(session, "their") == "theirs"
    assert shown(session, "own").endswith("<class 'KeyError'>")
    assert "<class" not in session.part("disabled")


@debuggers.needs_gdb
def test_without_a_process(known, types):
    session = gdb(types, ON, ("none",), "print (PyObject *) 0x1000", arguments=[known.exe])
    assert "there is no process" in session.part("none"), session
    assert "Python Exception" not in session.err


@debuggers.needs_lldb
@pytest.mark.parametrize("way", debuggers.WAYS)
def test_lldb(one, way, tmp_path):
    look = ["target variable PyExc_KeyError", "expression (PyObject *) %d" % one.at["self.items"]]
    with opened(lldb, way, one, tmp_path) as run:
        session = run(
            ("before",), *look, "probing set pretty on", ("on",), *look,
            "expression &PyDict_Type", "expression (PyObject *) 16", "expression (PyObject *) 0",
            "expression (PyObject **) &PyExc_KeyError", ("bt",), "bt", ("set",),
            "probing set pretty", "probing set pretty off", ("after",), *look)
    assert "<class" not in session.part("before") + session.part("after")
    lines = session.part("on").strip().splitlines()
    assert lines[0].endswith(" <class 'KeyError'>"), session
    assert lines[1].endswith(" " + one.truth["self.items"])
    assert lines[2].endswith(" <class 'dict'>")
    assert "<there is no object at 0x10: " in lines[3]
    assert re.search("= (NULL|nullptr)$", lines[4]) and "<" not in lines[5]
    if way != "gdbserver":  # LLDB and gdbserver disagree about the registers
        assert re.search(r"=[^=]*'\S*/looked_up.py'", session.part("bt")), session
    assert session.part("set").split() == ["pretty", "on"]
    assert "Traceback" not in session.err
    assert way == "gdbserver" or one.alive()  # LLDB kills a process that it neither started nor attached to


@debuggers.needs_lldb
@pytest.mark.parametrize(
    "interpreter", [each for each in support.one_per_version((3, 8))
                    if each.version in ((3, 8), (3, 12), (3, 13), (3, 14))], ids=repr)
def test_lldb_on_other_versions(interpreter, types):
    """Objects of several types, with the types known or added."""
    with Objects(interpreter) as process:
        held_in = [name for name in process.truth if process.at[name]]
        assert "self.items" in held_in and len(held_in) > 3
        look = ["expression (PyObject *) %d" % process.at[name] for name in held_in]
        session = lldb("target modules add " + types.split()[1], ("before",), *look,
                       "probing set pretty on", ("on",), *look, ("end",),
                       arguments=["-p", process.pid])
        # We show the part of a line after the address.
        behind = [re.search(r" = 0x[0-9a-f]+(.*)$", line) for line in
                  session.part("on").splitlines() if " = 0x" in line]
        assert [match.group(1) for match in behind] == \
            [" " + process.truth[name] for name in held_in], session
        assert process.truth["self.items"] not in session.part("before")
        assert process.alive() and "Traceback" not in session.err


CLASSES = """
import json, os, sys
class Foo(object):
    pass
class List(list):
    pass
class Pair(tuple):
    pass
class Word(str):
    pass
def outer(first, second=5):
    return sys._getframe()
foo, items, pair, word = Foo(), List([1, 2]), Pair((1, "x")), Word("w at 0x12")
foo.an_int, items.an_int, pair.an_int, foo.me = 42, 43, 44, foo
objects = [foo, items, pair, word, outer(3), [Foo()]]
print(json.dumps([id(each) for each in objects]), flush=True)
os.read(0, 1)
"""


@debuggers.needs_gdb
def test_gdb_shows_classes_attributes_and_variables(newest, types, tmp_path):
    """What repr() of a list or a frame leaves out is what a debugger's user looks for."""
    program = tmp_path / "classes.py"
    program.write_text(CLASSES)
    with support.Target(newest, program) as process:
        numbers = json.loads(process.line())
        support.wait_for_sleep(process.pid, "pipe_read")
        prints = [command for i, number in enumerate(numbers)
                  for command in (("v%d" % i,), "print (PyObject *) %d" % number)]
        session = gdb(types, ON, *prints, ("off",), "set print address off",
                      "print (PyObject *) %d" % numbers[5], "print (PyObject *) %d" % numbers[3],
                      ("end",), arguments=["-p", process.pid])
    texts = [shown(session, "v%d" % i).split(" ", 1)[1] for i in range(len(numbers))]
    assert re.fullmatch(r"<__main__\.Foo an_int=42 me=<__main__\.Foo object at 0x\w+>>", texts[0])
    assert texts[1] == "<__main__.List [1, 2] an_int=43>"
    assert texts[2] == "<__main__.Pair (1, 'x') an_int=44>"
    assert texts[3] == "<__main__.Word 'w at 0x12'>"
    assert re.fullmatch(r"<frame at 0x\w+, file '.*classes\.py', line 12, code outer first=3 second=5>",
                        texts[4]), texts
    # "set print address off" is for what is shown of objects, too, but not for texts.
    assert re.findall(r"^\$\d+ = (.*)$", session.part("off"), re.M) == \
        ["[<__main__.Foo object>]", "<__main__.Word 'w at 0x12'>"], session

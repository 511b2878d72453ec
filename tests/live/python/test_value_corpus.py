# SPDX-License-Identifier: GPL-3.0-or-later
"""Some hundred values of the standard library and of packages: the text is that of repr(), or what
is shown has the same facts, and no number is another one."""
import json
import os
import re
import subprocess
import sys

import pytest

import packages
import support
from library import Session

PROGRAMS = support.HERE / "programs"
TOKEN = re.compile(r"[a-z_]+|\d+(?:[.]\d*)?(?:e[+-]?\d+)?")
# Words of a sentence, which attributes do not repeat.
PROSE = set("at categories categories_dtype dom file filling for freq future in initial is length "
            "line locked module name node object of owner running section set state test tests "
            "text unlocked unset value waiters with wrapper x".split())


def facts(text):
    """The numbers and names of a text; not addresses, which are of the object itself."""
    text = re.sub(r"\\x..|\\n|0x[0-9a-f]+|\w+=none", "", text.lower())
    return {re.sub("[.]0*$", "", token.strip("_")) for token in TOKEN.findall(text)} - PROSE


def compare(told, shown):
    """(same text, same facts, [others], [wrong numbers])"""
    same, equal, others, wrong = 0, 0, [], []
    for i, (expression, text, numbers) in enumerate(told):
        value = shown["v%d" % i]
        has_facts = facts(text) <= facts(value) or "**********" in text and "<hidden>" in value
        same += value == text
        equal += value != text and has_facts
        if value != text and not has_facts:
            others.append((expression, text, value))
        for name, number in numbers.items():
            found = re.search(r"[ (]%s=(-?\d[\w.+-]*)" % re.escape(name), value)
            if found and found.group(1) != number:
                wrong.append((expression, name, number, value))
    return same, equal, others, wrong


def check(interpreter, corpus, least, share):
    with support.Target(interpreter, PROGRAMS / "value_corpus.py", PROGRAMS / corpus) as process:
        told = json.loads(process.line())
        support.wait_for_sleep(process.pid, "pipe_read")
        with Session(process.pid) as session:
            session.query("SET probing.values.max_value = 2000")
            session.query("SET probing.values.max_items = 100")
            shown = dict(session.query("SELECT name, value FROM python.locals WHERE depth = 0"))
    same, equal, others, wrong = compare(told, shown)
    if os.environ.get("PROBING_SHOW_VALUES"):
        sys.stderr.write("".join("%s\n    %.200s\n    %.300s\n" % other for other in others))
        sys.stderr.write("%r: %d values, %d same text, %d same facts, %d others\n" %
                         (interpreter, len(told), same, equal, len(others)))
    assert len(told) >= least
    assert not wrong
    assert same + equal >= share * len(told), others


@pytest.mark.every_interpreter
@pytest.mark.parametrize("interpreter", support.one_per_version((3, 8)), ids=repr)
def test_values_of_the_standard_library(interpreter):
    check(interpreter, "value_corpus_library.txt", 400, 0.95)


ODD_C = """
import ctypes, os
class Node(ctypes.Structure):
    pass
Node._fields_ = [("number", ctypes.c_int), ("next", ctypes.POINTER(Node))]
def show(circle, dangling, text, deep, tampered):
    print("ready", flush=True)
    os.read(0, 1)
circle = Node(7)
circle.next = ctypes.pointer(circle)
text = ctypes.c_char_p()
ctypes.c_void_p.from_buffer(text).value = 3
deep = ((((ctypes.c_int * 2) * 2) * 2) * 2)()
class Tampered(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_int)]
tampered = Tampered(1, 2)
Tampered._fields_.append(("c", ctypes.c_int))
Tampered._fields_[1] = 5
show(circle, ctypes.cast(16, ctypes.POINTER(ctypes.c_int)), text, deep, tampered)
"""


def test_memory_of_c_that_leads_nowhere(newest, tmp_path):
    program = tmp_path / "odd.py"
    program.write_text(ODD_C)
    with support.Target(newest, program) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read")
        with Session(process.pid) as session:
            shown = dict(session.query("SELECT name, value FROM python.locals WHERE depth = 0"))
    assert re.match(r"<__main__\.Node number=7 next=<(?:__main__|ctypes)\.LP_Node 0x\w+ → <__main__\.Node number=7 ",
                    shown["circle"]), shown
    assert len(shown["circle"]) < 500
    assert re.match(r"<\S*LP_c_int 0x10>$", shown["dangling"]), shown
    assert shown["text"] == "c_char_p(3)"
    assert shown["deep"].endswith(" [[[[0, 0], [0, 0]], [[0, 0], [0, 0]]], "
                                  "[[[0, 0], [0, 0]], [[0, 0], [0, 0]]]]>"), shown
    assert shown["tampered"].startswith("<__main__.Tampered _b_base_=None"), shown


FIELDS_C = """
import ctypes, os
class Inner(ctypes.Structure):
    _fields_ = [("x", ctypes.c_double), ("low", ctypes.c_uint, 3), ("high", ctypes.c_int, 5)]
class Outer(ctypes.Structure):
    _fields_ = [("number", ctypes.c_short), ("inner", Inner), ("many", ctypes.c_int * 3), ("text", ctypes.c_char * 8)]
    @property
    def computed(self):
        return 1
def show(s, simple, at):
    print("ready", flush=True)
    os.read(0, 1)
outer = Outer(-7, Inner(2.5, 5, -3), (ctypes.c_int * 3)(1, 2, 3), b"abc")
show(outer, ctypes.c_long(5), ctypes.pointer(outer.inner))
"""


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 8)), ids=repr)
def test_fields_of_c(interpreter, tmp_path):
    """`print s.a`, as Python has it; what is computed by code of the program is refused."""
    program = tmp_path / "fields.py"
    program.write_text(FIELDS_C)
    with support.Target(interpreter, program) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read")
        for expression, value in (("s.number", "-7"), ("s.text", "b'abc'"), ("s.many", "[1, 2, 3]"), ("simple.value", "5"),
                                  ("s.inner", "<__main__.Inner x=2.5 low=5 high=-3>"),
                                  ("at.contents", "<__main__.Inner x=2.5 low=5 high=-3>")):
            done = subprocess.run([support.BINARY, str(process.pid), "print", expression], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
            assert done.stdout == value + "\n", (expression, done.stdout)
        done = subprocess.run([support.BINARY, str(process.pid), "print", "s.computed"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        assert "computed by code" in done.stdout, done


def test_values_of_packages():
    """numpy, pandas, protobuf, SQLAlchemy, Pillow, pydantic, attrs: those that are installed."""
    exe = packages.need("pandas, google.protobuf, sqlalchemy, PIL, pydantic, attrs")
    version = subprocess.check_output([exe, "-c", "import platform; print(platform.python_version())"])
    interpreter = support.Interpreter({"name": "packages", "exe": exe, "env": {}, "free_threaded": False,
                                       "version": version.decode().strip(), "debug_build": False})
    check(interpreter, "value_corpus_packages.txt", 120, 0.95)


PROTOBUF = """
import os
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2
file = descriptor_pb2.FileDescriptorProto(name="m.proto", package="pk", syntax="proto3")
m = file.message_type.add(name="M")
def add_map(name, number, key, value, of=None):
    entry = m.nested_type.add(name=name.title() + "Entry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=key, label=1)
    entry.field.add(name="value", number=2, type=value, label=1, type_name=of)
    m.field.add(name=name, number=number, type=11, label=3, type_name=".pk.M.%sEntry" % name.title())
add_map("texts", 1, 9, 5), add_map("numbers", 2, 5, 9), add_map("messages", 3, 9, 11, ".pk.M")
add_map("flags", 4, 8, 1), add_map("enums", 5, 3, 14, ".pk.E")
for name, number in (("ZERO", 0), ("ONE", 1), ("BIG", 1000), ("NEG", -4)):
    (file.enum_type or [file.enum_type.add(name="E")])[0].value.add(name=name, number=number)
m.field.add(name="one", number=6, type=14, label=1, type_name=".pk.E")
m.field.add(name="many", number=7, type=14, label=3, type_name=".pk.E")
pool = descriptor_pool.DescriptorPool()
pool.AddSerializedFile(file.SerializeToString())
M = message_factory.GetMessageClass(pool.FindMessageTypeByName("pk.M"))
def show(m, zero, both, large, struct):
    print("ready", flush=True)
    os.read(0, 1)
m = M(texts={"a": 1}, numbers={-3: "minus"}, flags={True: 1.5}, enums={2 ** 40: "ONE"}, one=1000, many=[0, 1, -4, 77])
m.messages["k"].texts["deep"] = 5
struct = struct_pb2.Struct()
struct.update({"x": {"y": None}})
show(m, M(numbers={0: "zero"}), M(numbers={0: "zero", 100000: "more"}), M(numbers={n: str(n) for n in range(3000)}),
     struct)
"""


PYDANTIC = """
import os, pydantic
class M(pydantic.BaseModel):
    model_config = {"extra": "allow"}
    a: int = 1
    _own: int = pydantic.PrivateAttr(7)
def show(m, plain):
    print("ready", flush=True)
    os.read(0, 1)
show(M(b=[1, 2]), M())
"""


def test_undeclared_and_private_attributes_of_pydantic(tmp_path):
    exe = packages.need("pydantic, pydantic_core")
    program = tmp_path / "models.py"
    program.write_text(PYDANTIC)
    with support.Program([exe, program]) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read")

        def shown(expression):
            return subprocess.run([support.BINARY, str(process.pid), "print", "--function", "show", expression],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout.strip()

        assert (shown("m"), shown("plain")) == ("<__main__.M a=1 b=[1, 2]>", "<__main__.M a=1>")
        assert (shown("m.b[1]"), shown("m._own"), shown("plain._own")) == ("2", "7", "7")
        assert "__getattr__ of M is code" in shown("m.c")


def test_maps_and_enums_of_protobuf(tmp_path):
    program = tmp_path / "messages.py"
    program.write_text(PROTOBUF)
    with support.Program([packages.need("google.protobuf"), program]) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read")
        with Session(process.pid) as session:
            shown = dict(session.query("SELECT name, value FROM python.locals WHERE depth = 0"))
        large = subprocess.check_output([support.BINARY, str(process.pid), "print", "--depth", "9", "large"]).decode()
    assert shown["m"] == "<M texts={'a': 1} numbers={-3: 'minus'} messages={'k': <texts={'deep': 5}>} flags={True: 1.5} " \
        "enums={1099511627776: ONE} one=BIG many=[ZERO, ONE, NEG, 77]>", shown
    assert shown["zero"] in ("<M numbers={0: 'zero'}>", "<M numbers={…}>"), shown
    assert shown["both"] in ("<M numbers={0: 'zero', 100000: 'more'}>", "<M numbers={100000: 'more', 0: 'zero'}>"), shown
    assert re.match(r"<M numbers=\{(\d+: '\d+', )+…", large) and "…" in large, large
    assert all(key == value for key, value in re.findall(r"(\d+): '(\d+)'", large)), large
    assert "fields={'x': <struct_value=<fields={'y': <null_value=NULL_VALUE>}>>}" in shown["struct"], shown


STORED = """
import os
class Getter(object):
    def __init__(self):
        self.inner = "kept"
    def __getattribute__(self, name):
        raise AttributeError(name)
getter = Getter()
os.write(1, b"ready\\n")
os.read(0, 1)
"""


def test_what_is_stored_where_a_getattribute_decides(newest, tmp_path):
    def printed(*words):
        return subprocess.run([support.BINARY, str(process.pid), "print", *words], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    program = tmp_path / "stored.py"
    program.write_text(STORED)
    with support.Target(newest, program) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read")
        done = printed("getter.inner")
        assert done.stdout == "'kept'\n", done
        assert "the __getattribute__ of Getter, which is not run, may answer otherwise" in done.stderr
        assert json.loads(printed("--json", "getter.inner").stdout)["computed_by"] == "Getter"
        assert "computed_by" not in json.loads(printed("--json", "getter").stdout)
        done = printed("getter.other")
        assert done.returncode == 1 and "the __getattribute__ of Getter is code" in done.stderr


ARRAYS = """
import os, numpy
whole = numpy.arange(12.0).reshape(3, 4)
objects = numpy.array([[1], "x"], dtype=object)
fields = numpy.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")])
os.write(1, b"ready\\n")
os.read(0, 1)
"""


def test_items_of_arrays(tmp_path):
    def printed(expression):
        done = subprocess.run([support.BINARY, str(process.pid), "print", expression], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        return (done.stdout or done.stderr).splitlines()[0]

    program = tmp_path / "arrays.py"
    program.write_text(ARRAYS)
    with support.Program([packages.need("numpy"), "-I", program]) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read")
        assert printed("whole[0]") == "array([0.0, 1.0, 2.0, 3.0], shape=(4,), dtype=float64)"
        assert printed("whole[-1][1]") == "9.0"
        assert printed("len(whole)") == "3"
        assert printed("objects[0][0]") == "1"
        assert printed("fields[0]") == "(1, 2.5)"
        assert printed("whole[3]") == "probing: whole has only 3 items"
        assert "is 0.0, which is not looked into" in printed("whole[0][0][0]")
        assert "of which only items by their number" in printed("whole[0].shape")

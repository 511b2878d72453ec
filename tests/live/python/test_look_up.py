# SPDX-License-Identifier: GPL-3.0-or-later
"""Values looked up by expressions, compared with the program's own."""

import json

import library
import pytest
import support
from library import Debugger, Error, Session
from test_library_debugger import MACHINE, look_up

PROGRAM = support.HERE / "programs" / "looked_up.py"


@pytest.fixture
def asleep(interpreter):
    with support.Target(interpreter, PROGRAM) as process:
        process.truth = json.loads(process.line())
        support.wait_for_sleep(process.pid, "pipe_read")
        yield process


def held(process):
    session = Session()
    session.open_debugger(Debugger(pid=process.pid, machine=MACHINE, held=1))
    return session


def test_values_are_those_of_the_program(asleep):
    assert len(asleep.truth) > 25
    with held(asleep) as session:
        for expression, value in asleep.truth.items():
            assert look_up(session, asleep.pid, expression)[1] == value, expression
        kind, _, address = look_up(session, asleep.pid, "self")
        assert kind == "Node" and address
        assert look_up(session, asleep.pid, "SHARED", depth=1)[0] == "dict"
        assert look_up(session, asleep.pid, " self . items [ 1 ] [ 'x' ]".replace("'x'", "0"))[1] \
            == "2"


@pytest.mark.parametrize("expression, said", [
    ("", "not understood"), ("1", "not understood"), ("self +", "'+' is not understood"),
    ("self.", "not understood"), ("self..kind", "not understood"), ("self[", "not understood"),
    ("self.items[0", "not understood"), ("self.items['0]", "not understood"),
    ("self.method()", "'()' is not understood"), ("self.items[99999999999999999999]", "understood"),
    ("self.items[:1]", "not understood"), ("nowhere", "no variable 'nowhere'"),
    ("later", "'later' is unbound"), ("self.missing", "self, a Node, has no attribute 'missing'"),
    ("self.items[2]", "self.items has only 2 items"), ("self.items[-3]", "has only 2 items"),
    ("self.named['nokey']", "self.named has no such key"), ("SHARED[8]", "SHARED has no such key"),
    ("self.doubled", "self: its 'doubled' is a property of Node: computed by code"),
    ("self.doubled.fget", "self: its 'doubled' is a property of Node: computed by code"),
    ("len(len(free))", "len(free) is 5, which is not looked into"),
    ("len(self)", "the length of a Node only code could tell"), ("len()", "not understood"),
    ("len(self.items", "not understood"), ("repr(self)", "'(self)' is not understood"),
    ("vars(argument)", "vars(argument): str objects have no __dict__"),
    ("self.coded.any", "no 'any' of its own, and the __getattr__ of Coded is code"),
    ("self.coded[0]", "the __getitem__ of Coded is code"),
    ("len(self.coded)", "the __len__ of Coded is code"),
    ("self.lazy", "its 'lazy' is computed by code (Lazy of Node)"),
    ("self.computed.value", "its 'value' is a property of Computed: computed by code"),
    ("self.slotted.right", "no attribute 'right'"), ("self['key']", "without running code"),
    ("argument[0]", "without running code"), ("self.items['key']", "without running code"),
    ("self" + ".items" * 1000, "over 4096 bytes"), ("self" + "[0]" * 300, "without running code"),
])
def test_what_does_not_exist_or_is_not_understood(newest, expression, said):
    with support.Target(newest, PROGRAM) as process:
        process.line()
        with held(process) as session, pytest.raises(Error) as error:
            look_up(session, process.pid, expression)
        assert said in str(error.value), error.value


def test_what_was_looked_into_inside_a_call(newest):
    with support.Target(newest, PROGRAM) as process:
        process.line()
        with held(process) as session, pytest.raises(Error) as error:
            look_up(session, process.pid, "len(self.missing)")
        assert str(error.value).startswith("self, a Node, has no attribute"), error.value


def test_where_it_cannot_be_looked_up(newest):
    with support.Target(newest, PROGRAM) as process:
        process.line()
        with held(process) as session:
            for pid, depth, said in ((process.pid, 99, "has only 2 Python frames"),
                                     (1, 0, "no Python thread 1"), (-1, 0, "one thread")):
                with pytest.raises(Error) as error:
                    look_up(session, pid, "self", depth)
                assert said in str(error.value)
        with Session(process.pid) as session, pytest.raises(Error) as error:
            library.check(library.LIBRARY.probing_describe(session.pointer, 4096, 0,
                                                           library.ON_OBJECT(print), None))
        assert error.value.code == library.UNSUPPORTED


def test_how_much_is_shown(newest):
    with support.Target(newest, PROGRAM) as process:
        process.line()
        with held(process) as session:
            session.set("probing.text.max", "10")
            shown = look_up(session, process.pid, "self.named")[1]
        assert len(shown.encode()) < 30 and "…" in shown

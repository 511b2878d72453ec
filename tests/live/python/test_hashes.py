# SPDX-License-Identifier: GPL-3.0-or-later
"""Names are looked up in dicts as Python does: right for each key, and by few reads."""

import pytest
import support
from library import Error, Session
from test_library_debugger import Through, look_up

PROGRAM = support.HERE / "programs" / "many_keys.py"


@pytest.fixture
def asleep(interpreter):
    with support.Target(interpreter, PROGRAM) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read")
        yield process


def expected(number, count):
    """The value of a key in fill(count) of the program, None if it is not there."""
    if number < 0 or number >= count:
        return None
    return str(-number) if number % 7 == 0 else str(number) if number % 3 else None


def value_of(session, process, expression):
    """repr() of its value, None if there is no such key."""
    try:
        return look_up(session, process.pid, expression)[1]
    except Error as error:
        assert "no such key" in str(error), error
        return None


@pytest.mark.parametrize("table, count", [("few", 3), ("some", 60), ("many", 900), ("most", 22000)])
def test_keys_that_came_and_went(asleep, table, count):
    numbers = list(range(min(count, 60))) + list(range(0, count, max(1, count // 60)))
    with Session() as session:
        session.open_debugger(Through(asleep.pid))
        for number in [-1] + numbers + [count, count + 1]:
            assert value_of(session, asleep, "%s['key_%d']" % (table, number)) == \
                expected(number, count), number
        assert value_of(session, asleep, table + "['\xe9t\xe9']") == "'not ASCII'"


def test_attributes_of_an_instance(asleep):
    with Session() as session:
        session.open_debugger(Through(asleep.pid))
        names = "first second third fourth fifth sixth seventh eighth".split()
        for number, name in enumerate(names, 1):
            assert look_up(session, asleep.pid, "record." + name)[1] == str(number)
        with pytest.raises(Error) as error:
            look_up(session, asleep.pid, "record.ninth")
        assert "no attribute" in str(error.value)


def test_a_name_among_many_takes_few_reads(asleep):
    through = Through(asleep.pid)
    with Session() as session:
        session.open_debugger(through)
        assert value_of(session, asleep, "plain['key_1']") == "1"
        before = through.calls
        for number in (5, 15000, 29999, 30000):
            assert value_of(session, asleep, "plain['key_%d']" % number) == \
                (str(number) if number < 30000 else None)
        assert through.calls - before < 4 * 16

# SPDX-License-Identifier: GPL-3.0-or-later
"""Random objects, read through a script, equal the program's; none of its code runs."""

import ast
import collections
import shutil

import pytest
import support
import tables
from programs import random_values
from test_walked import probing

COUNT = support.count(200, 5000)


def told(value):
    """An object as text in tuples: so True is not 1."""
    kind = type(value)
    if kind in (random_values.Node, random_values.Slotted):
        names = kind.__slots__ if kind is random_values.Slotted else value.__dict__
        found = {name: object.__getattribute__(value, name) for name in names
                 if kind is random_values.Node or hasattr(value, name)}
        return kind.__name__, sorted((name, told(each)) for name, each in found.items())
    if kind in (list, tuple, collections.deque):
        return kind.__name__, [told(each) for each in value]
    if kind is dict:
        return "dict", [(told(name), told(each)) for name, each in value.items()]
    if kind in (set, frozenset):
        return kind.__name__, sorted(told(each) for each in value)
    return kind.__name__, repr(value)


def read(value, ordered):
    """The same of a Value."""
    name = value.type.name
    if name in ("Node", "Slotted"):
        return name, sorted((each, read(one, ordered)) for each, one in probing.attributes(value))
    if name in ("list", "tuple", "deque"):
        return name, [read(each, ordered) for each in value]
    if name == "dict":
        items = [(read(key, ordered), read(each, ordered)) for key, each in value.items()]
        return name, items if ordered else sorted(items)
    if name in ("set", "frozenset"):
        return name, sorted(read(each, ordered) for each in value)
    make = {"NoneType": lambda one: None if one == None else one, "bool": bool, "int": int,  # noqa: E711
            "float": float, "str": str, "bytes": lambda one: ast.literal_eval(repr(one))}
    return name, repr(make[name](value))


def in_any_order(found):
    """Dicts before 3.6 have no order of their own."""
    if isinstance(found, tuple) and found[0] == "dict":
        return "dict", sorted((in_any_order(key), in_any_order(each)) for key, each in found[1])
    if isinstance(found, (tuple, list)):
        return type(found)(in_any_order(each) for each in found)
    return found


SEEDS = pytest.mark.parametrize("seed", range(support.count(2, 20)))


def compare(found, seed, ordered):
    """Each object that a script sees, with one made here."""
    kept = found.thread().frames[-1].globals["kept"]
    assert len(kept) == COUNT
    for value, own in zip(kept, random_values.generate(seed, COUNT)):
        wanted = told(own)
        assert read(value, ordered) == (wanted if ordered else in_any_order(wanted))


@SEEDS
def test_they_are_equal(target, interpreter, seed):
    process = target("random_values.py", seed, COUNT, interpreter=interpreter)
    with probing.attach(process.pid) as program:
        compare(program, seed, interpreter.version >= (3, 6))
    assert process.alive()


@pytest.mark.skipif(not shutil.which("gcore"), reason="gcore is not installed")
@SEEDS
def test_they_are_equal_in_a_core(target, interpreter, seed, tmp_path):
    """Of another seed, so that the long form compares twice as many."""
    seed += 1000
    process = target("random_values.py", seed, COUNT, interpreter=interpreter)
    core = tables.core_of(process.pid, tmp_path)
    with probing.attach(str(core)) as program:
        compare(program, seed, interpreter.version >= (3, 6))
    core.unlink()

# SPDX-License-Identifier: GPL-3.0-or-later
"""The size of a value: equal to sys.getsizeof() in the program, without running anything there."""

import json

import pytest
from test_walked import probing


@pytest.fixture
def sized(target, interpreter):
    process = target("sized.py", interpreter=interpreter)
    with probing.attach(process.pid) as program:
        yield program, process


def test_sizes_are_those_of_the_program(sized):
    program, process = sized
    told, about = json.loads(" ".join(process.ready))
    kept = program.thread().frames[-1].globals["kept"]
    assert len(kept) == len(told) + len(about)
    assert {name: kept[name].size for name in told} == told
    sizes = {name: kept[name].size for name in about}
    assert all(abs(sizes[name] - about[name]) <= 64 for name in about), (sizes, about)


def test_an_attribute_of_that_name(sized):
    program, _ = sized
    plain = program.thread().frames[-1].globals["kept"]["plain"]
    assert isinstance(plain.size, int) and probing.get(plain, "size") == "hidden by the stand-in"
    assert "size" in dir(plain)


def test_what_is_another_object_by_now(target, newest):
    process = target("sized.py")
    with probing.attach(process.pid) as program:
        kept = program.thread().frames[-1].globals["kept"]
        other = probing.Value(program, kept["list"].address, kept["dict"]._prb_type, 0)
        with pytest.raises(probing.Gone, match="another object"):
            other.size
        nothing = probing.Value(program, 0x1000, 0, 0)
        with pytest.raises(probing.Gone):
            nothing.size

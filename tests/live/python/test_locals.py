# SPDX-License-Identifier: GPL-3.0-or-later
"""`debug --locals`: names, kinds and values of variables as the target itself says them."""
import json

import pytest

import support
from conftest import PROGRAMS


def found(frame):
    return {each["name"]: [each["kind"], each["value"]] for each in frame["locals"]}


def told_and_read(interpreter, name):
    """A program's own data of its variables, and the frames of its main thread in a dump."""
    with support.Program([interpreter.exe, PROGRAMS / name], env=interpreter.env) as program:
        told = json.loads(program.line())
        support.wait_for_sleep(program.pid, "pipe_read")
        dump = support.dump(program.pid, "--locals")
    return told, support.python_frames(dump["threads"][0])


@pytest.mark.every_interpreter
def test_locals(interpreter):
    expected, read = told_and_read(interpreter, "values.py")
    frames = {frame["func"]: frame for frame in read}
    for function, variables in expected.items():
        seen = found(frames[function])
        for name, (kind, value) in variables.items():
            # A variable used by an inner function is a cell, also if it is an argument.
            if kind == "argument" and seen[name][0] == "cell":
                kind = "cell"
            assert (function, name, seen[name]) == (function, name, [kind, value])


def test_frames_of_the_same_code_have_their_own_values(interpreter):
    expected, frames = told_and_read(interpreter, "shared_values.py")
    assert (frames[0]["func"], frames[-1]["func"]) == ("say", "<module>")
    assert len(frames) == len(expected) + 2
    for frame, (function, variables) in zip(frames[1:], expected):
        assert frame["func"] == function
        assert {each["name"]: each["value"] for each in frame["locals"]
                if each["value"] is not None} == variables

# SPDX-License-Identifier: GPL-3.0-or-later
"""`debug --locals`: names, kinds and values of variables as the target itself says them."""
import json

import pytest

import support
from conftest import PROGRAMS


def found(frame):
    return {each["name"]: [each["kind"], each["value"]] for each in frame["locals"]}


@pytest.mark.every_interpreter
def test_locals(interpreter):
    command = [interpreter.exe, PROGRAMS / "values.py"]
    with support.Program(command, env=interpreter.env) as program:
        expected = json.loads(program.line())
        support.wait_for_sleep(program.pid, "pipe_read")
        dump = support.dump(program.pid, "--locals")
    frames = {frame["func"]: frame for frame in support.python_frames(dump["threads"][0])}
    for function, variables in expected.items():
        seen = found(frames[function])
        for name, (kind, value) in variables.items():
            # What an inner function uses is a cell, whether or not it is an argument.
            if kind == "argument" and seen[name][0] == "cell":
                kind = "cell"
            assert (function, name, seen[name]) == (function, name, [kind, value])


def test_frames_of_the_same_code_have_their_own_values(interpreter):
    command = [interpreter.exe, PROGRAMS / "shared_values.py"]
    with support.Program(command, env=interpreter.env) as program:
        expected = json.loads(program.line())
        support.wait_for_sleep(program.pid, "pipe_read")
        dump = support.dump(program.pid, "--locals")
    frames = support.python_frames(dump["threads"][0])
    assert (frames[0]["func"], frames[-1]["func"]) == ("say", "<module>")
    assert len(frames) == len(expected) + 2
    for frame, (function, variables) in zip(frames[1:], expected):
        assert frame["func"] == function
        assert {each["name"]: each["value"] for each in frame["locals"]
                if each["value"] is not None} == variables

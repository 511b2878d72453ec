# SPDX-License-Identifier: GPL-3.0-or-later
"""Every way of reading a process gives the stacks that the process reports itself."""
import json

import pytest

import support
from conftest import PROGRAMS

WAYS = [[], ["--native"], ["--nonblocking"], ["--nonblocking", "--native"], ["--freeze"],
        ["--freeze", "--native", "--locals"], ["--locals"]]


@pytest.fixture
def asleep(interpreter):
    command = [interpreter.exe, PROGRAMS / "recorded.py"]
    with support.Program(command, env=interpreter.env) as program:
        program.truth = json.loads(program.line())
        support.wait_for_all_asleep(program.pid, len(program.truth))
        yield program


def check(thread, told, values):
    frames = support.python_frames(thread)
    assert [(frame["func"], frame["line"]) for frame in frames] == \
        [(frame["func"], frame["line"]) for frame in told]
    for frame, expected in zip(frames, told if values else []):
        found = {each["name"]: each["value"] for each in frame["locals"]}
        for name, value in (expected["locals"] or {}).items():
            if value.startswith("<__main__.Shape object at"):
                value = "<__main__.Shape sides=(1, 2)>"
            assert (name, found.get(name)) == (name, value)


@pytest.mark.every_interpreter
def test_dump(probing, asleep):
    for options in WAYS:
        dump = support.dump(asleep.pid, *options)
        threads = {thread["name"]: thread for thread in dump["threads"]}
        assert threads.keys() == asleep.truth.keys()
        for name, told in asleep.truth.items():
            assert threads[name]["error"] is None, (options, threads[name]["error"])
            check(threads[name], told, "--locals" in options)
            natives = [frame for frame in threads[name]["frames"] if frame["kind"] != "python"]
            assert bool(natives) == ("--native" in options)


def test_backtrace(probing, asleep):
    for options in ([], ["--locals"], ["--native"], ["--all"]):
        shown = probing(asleep.pid, "backtrace", "--json", *options)
        assert shown.code == 0, shown
        threads = json.loads(shown.out)["threads"]
        assert len(threads) == (len(asleep.truth) if "--all" in options else 1)
        for thread in threads:
            check(thread, asleep.truth[thread["name"]], "--locals" in options)


def test_list(probing, asleep, interpreter):
    shown = probing("list", "--json")
    assert shown.code == 0, shown
    found = next(each for each in json.loads(shown.out) if each["pid"] == asleep.pid)
    assert found["threads"] == len(asleep.truth) and found["unreadable"] is None
    assert (found["version"] or "").startswith("%d.%d" % interpreter.version)

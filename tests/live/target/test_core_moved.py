# SPDX-License-Identifier: GPL-3.0-or-later
"""A core of a program whose files were moved since: the missing parts, and the options that name their
place."""
import json
import os
import resource
import shutil
import signal
from pathlib import Path

import pytest

import environment
import support
from environment import OK, ONE_EACH, PROGRAMS, USAGE


@pytest.fixture
def moved(tmp_path):
    """moved(INTERPRETER): a core, where its program's files were, and where they are now."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8").strip()
    if pattern != "core":
        pytest.skip("cores of the kernel go to %r here" % pattern)
    limit = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)

    def make(interpreter, script=PROGRAMS / "dies.py"):
        before, folder = tmp_path / "before", tmp_path / "work"
        folder.mkdir()
        copy = environment.Copy(interpreter, before)
        with support.Program([copy.exe, script, "sleep"], env=copy.env, cwd=folder,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, limit)
                             ) as process:
            assert process.line() == "ready"
            os.kill(process.pid, signal.SIGABRT)
            process.wait()
        core, = folder.glob("core*")
        after = tmp_path / "root" / str(before).lstrip("/")
        after.parent.mkdir(parents=True)
        shutil.move(str(before), str(after))
        return core, copy.holder, tmp_path / "root", after

    return make


def stack(found):
    return [frame["func"] for frame in support.python_frames(found["threads"][0])]


@ONE_EACH
def test_files_of_a_core_that_were_moved(interpreter, moved, probing):
    core, holder, root, after = moved(interpreter)
    libraries = "%s:%s" % (after / "bin", after / "lib")
    exe = after / "bin" / os.path.basename(environment.parts(interpreter)[0])
    for options in (["--sysroot", root], ["--library-path", libraries], ["--exe", exe],
                    ["--exe", exe, "--library-path", after / "lib"]):
        found = probing("-t", core, *options, "debug", "--dump", "--json")
        assert found.code == OK, (options, found)
        found = json.loads(found.out)
        assert stack(found) == ["die", "<module>"], (options, found)
        assert not [w for w in found["warnings"] if str(holder) in w], (options, found)

    # Without options: if not all can be read, the message names the file.
    plain = probing("-t", core, "debug", "--dump")
    if plain.code != OK or "die " not in plain.out:
        assert "%s is not on this machine" % holder in plain.err, plain
        assert "--sysroot" in plain.err and "--library-path" in plain.err, plain


def test_a_missing_file_is_named(newest, moved, probing):
    core, holder, _, after = moved(newest)
    plain = probing("-t", core, "debug", "--dump", "--native")
    assert "%s is not on this machine" % holder in plain.err, plain
    assert "--library-path says where it is" in plain.err or "--library-path" in plain.err, plain

    # Another build under its name is not taken, and named.
    wrong = after.parent / "wrong"
    wrong.mkdir()
    shutil.copy("/bin/true", str(wrong / holder.name))
    other = probing("-t", core, "--library-path", wrong, "debug", "--dump", "--native")
    assert str(wrong / holder.name) in other.err, other


def test_folders_that_are_none(newest, moved, probing, tmp_path):
    core, _, _, after = moved(newest)
    for options, words in (
            (["--sysroot", tmp_path / "none"], "--sysroot"),
            (["--library-path", tmp_path / "none"], "--library-path"),
            (["--library-path", "%s:%s" % (after, core)], "it is not a folder")):
        result = probing("-t", core, *options, "debug", "--dump")
        assert result.code != OK and words in result.err and not result.out, result
    for option in "--sysroot", "--library-path":
        result = probing("-p", os.getpid(), option, tmp_path, "debug", "--dump")
        assert result.code == USAGE and "%s is for core files" % option in result.err, result


def places(found):
    return [[(frame["func"], frame["file"], frame["line"])
             for frame in support.python_frames(thread)] for thread in found["threads"]]


@pytest.mark.parametrize("interpreter", support.INTERPRETERS, ids=repr)
def test_names_and_lines_without_the_library(interpreter, moved, probing, tmp_path):
    """The data of stacks is in the heap, and so in the core."""
    core, holder, root, after = moved(interpreter)
    whole = json.loads(probing("-t", core, "--sysroot", root, "debug", "--dump", "--json").out)
    assert stack(whole) == ["die", "<module>"] and not [
        text for text in whole["warnings"] if "recognised" in text], whole

    def check(target, *options):
        alone = probing("-t", target, *options, "debug", "--dump", "--json")
        assert alone.code == OK, alone
        alone = json.loads(alone.out)
        assert places(alone) == places(whole), alone
        said = [text for text in alone["warnings"] if "recognised" in text]
        assert len(said) == 1 and str(holder) in said[0], alone

    check(core)
    # Nor is another build under its name.
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    shutil.copy("/bin/true", str(wrong / holder.name))
    check(core, "--library-path", wrong)
    snapshot = tmp_path / "snapshot"
    assert probing("-t", core, "snapshot", "-o", snapshot).code == OK
    check(snapshot)




VALUES = """
import os

def outer(number, text, items, known):
    data = b"bytes"
    print("ready", flush=True)
    os.read(os.pipe()[0], 1)

outer(4711, "a text", [1, "two", (3,)], {"a": 1})
"""


@ONE_EACH
def test_values_without_the_library(interpreter, moved, probing, tmp_path):
    script = tmp_path / "values.py"
    script.write_text(VALUES, encoding="utf-8")
    core, *_ = moved(interpreter, script)
    found = json.loads(probing("-t", core, "debug", "--dump", "--locals", "--json").out)
    frame = support.python_frames(found["threads"][0])[0]
    shown = {each["name"]: each["value"] for each in frame["locals"]}
    assert shown == {"number": "4711", "text": "'a text'", "items": "[1, 'two', (3,)]",
                     "known": "{'a': 1}", "data": "b'bytes'"}, frame


NO_CODE = """
import ctypes, sys, time, types

def call(fakes):
    code = compile("def fake(): call(fakes[1:]) if fakes else sleep()", "fake.py", "exec")
    space = {"call": call, "fakes": fakes, "sleep": sleep}
    exec(code, space)
    if fakes:
        place = id(space["fake"].__code__) + object.__basicsize__ - 8
        ctypes.c_void_p.from_address(place).value = id(fakes[0])
    space["fake"]()

def sleep():
    print("ready", flush=True)
    time.sleep(1000)

class Code:
    __slots__ = "co_name", "co_filename", "co_firstlineno", "co_flags", "co_linetable"

call([float, type(call), types.FrameType, types.GeneratorType, type(sys), type(None), type, Code])
"""


@pytest.mark.parametrize("interpreter", support.one_per_version(
    usable=lambda interpreter: interpreter.has_ctypes), ids=repr)
def test_no_other_object_is_taken_for_code(interpreter, moved, probing, tmp_path):
    script = tmp_path / "no_code.py"
    script.write_text(NO_CODE, encoding="utf-8")
    core, _, root, _ = moved(interpreter, script)
    for options in (), ("--sysroot", root):
        found = probing("-t", core, *options, "debug", "--dump", "--json")
        assert found.code == OK, found
        names = stack(json.loads(found.out))
        assert names == ["sleep", "fake"] + ["call", None] * 8 + ["call", "<module>"], (options, names)

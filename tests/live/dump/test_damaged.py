# SPDX-License-Identifier: GPL-3.0-or-later
"""Types of the interpreter that a stray write has damaged: the stacks are shown all the same."""
import contextlib
import json
import os
import shutil
import struct

import pytest

import debuggers
import support
import tables

PROGRAM = support.HERE / "programs" / "damaged.py"
# Types needed to read stacks; a dump does not read others, which may be damaged.
NEEDED = {"type", "int", "str", "dict", "code"}


@pytest.fixture
def damaged(interpreter):
    """damaged(TYPE, MEMBER, VALUE) in a `with`: that word of that type while it lasts."""
    with support.Target(interpreter, PROGRAM) as target:
        told = json.loads(target.line())
        support.wait_for_sleep(target.pid, "pipe_read")
        memory = os.open("/proc/%d/mem" % target.pid, os.O_RDWR)

        def place(address, flags, member):
            if member == "ob_type":
                return address + told["header"] - 8
            if member == "tp_name":
                return address + told["header"] + 8
            words = struct.unpack("64Q", os.pread(memory, 512, address))
            return address + 8 * words.index(flags)

        @contextlib.contextmanager
        def damage(name, member, value):
            found, = [each for each in told["types"] if each[0] == name]
            at = place(found[1], found[2], member)
            before = os.pread(memory, 8, at)
            os.pwrite(memory, struct.pack("Q", value), at)
            yield target.pid
            os.pwrite(memory, before, at)

        damage.types = [each[0] for each in told["types"]]
        yield damage
        os.close(memory)


def functions(dump):
    thread, = dump["threads"]
    return [(frame["func"], frame["line"]) for frame in support.python_frames(thread)]


@pytest.mark.parametrize("interpreter", support.INTERPRETERS, ids=repr)
def test_a_damaged_type_hides_no_stack(damaged):
    for name in damaged.types:
        for member in "tp_flags", "ob_type", "tp_name":
            for value in 0, 0x5a5a5a5a5a5a5a5a, 8:
                with damaged(name, member, value) as pid:
                    dump = support.dump(pid)
                assert functions(dump) == [
                    ("innermost", 11), ("outer", 15), ("<module>", 33)], (name, member, dump)
                warnings = " ".join(dump["warnings"])
                assert "damaged" not in warnings or "'%s'" % name in warnings, (name, dump)
                if member == "tp_flags" and not value and name in NEEDED - {"code"}:
                    assert "tp_flags" in warnings and "damaged" in warnings, (name, dump)


@pytest.mark.parametrize("interpreter", support.one_per_version(), ids=repr)
def test_values_of_damaged_types_are_shown(damaged):
    for name in "int", "str", "tuple", "type":
        for member in "tp_flags", "ob_type", "tp_name":
            with damaged(name, member, 0) as pid:
                frame = support.python_frames(support.dump(pid, "--locals")["threads"][0])[0]
            shown = {each["name"]: each["value"] for each in frame["locals"]}
            assert shown == {"number": "4711", "text": "'a text'", "flag": "True",
                             "items": "(1, 'two')"}, (name, member, frame)


@pytest.mark.parametrize("interpreter", support.one_per_version(), ids=repr)
@pytest.mark.parametrize("how", ["deleted", "replaced", "lowered"])
def test_a_program_may_change_its_version(interpreter, how):
    with support.Target(interpreter, PROGRAM, how) as target:
        target.line()
        support.wait_for_sleep(target.pid, "pipe_read")
        assert functions(support.dump(target.pid))[:2] == [("innermost", 11), ("outer", 15)]


@pytest.mark.skipif(not shutil.which("gcore"), reason="gcore is not installed")
@pytest.mark.parametrize("interpreter", support.one_per_version(), ids=repr)
def test_a_core_and_a_snapshot_of_damaged_types(damaged, probing, tmp_path):
    for name in "int", "str", "dict", "type":
        with damaged(name, "tp_flags", 0) as pid:
            core = tables.core_of(pid, tmp_path)
        snapshot = tmp_path / ("snapshot-of-" + name)
        written = probing("-t", core, "snapshot", "-o", snapshot)
        assert written.code == 0, written
        for target in core, snapshot:
            dump = support.dump(target)
            assert functions(dump)[:2] == [("innermost", 11), ("outer", 15)], (name, target, dump)
            assert any("'%s'" % name in text for text in dump["warnings"]), (name, target, dump)
        answer = tables.query(str(core), "SELECT func FROM python.backtrace")
        assert [row["func"] for row in answer][:2] == ["innermost", "outer"], (name, answer)
        assert "'%s'" % name in " ".join(answer.notes), (name, answer)


@debuggers.needs_gdb
@pytest.mark.parametrize("interpreter", support.one_per_version((3, 8)), ids=repr)
def test_gdb_shows_the_stacks_of_damaged_types(damaged):
    for name in "int", "dict":
        with damaged(name, "tp_flags", 0) as pid:
            session = debuggers.gdb(("here",), "probing backtrace", arguments=["-p", pid])
        assert "innermost" in session.part("here") and "outer" in session.part("here"), session
        assert "'%s'" % name in session.out + session.err, session

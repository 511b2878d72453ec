# SPDX-License-Identifier: GPL-3.0-or-later
"""Scripts over programs that go on meanwhile: variables of the instant of their frames, and objects
that are freed under the script."""

import random

import pytest
import support
from debuggers import both, gdb
from test_walked import probing

ROUNDS = support.count(25, 1000)
# Everything that a script may do to a value, and only a probing.Error may come of it.
WALK = """
import random
import probing

def look(v, depth=0):
    for do in (lambda: v.type.name, lambda: repr(v), lambda: len(v), lambda: str(v)[:10], lambda: bool(v),
               lambda: float(v), lambda: v == 3, lambda: v > 2, lambda: v.name, lambda: v["k"],
               lambda: v[0], lambda: list(v)[:50], lambda: probing.attributes(v),
               lambda: list(v.items())[:5], lambda: hash(v)):
        counts["tried"] += 1
        try:
            found = do()
        except (probing.Error, TypeError, ValueError, OverflowError) as error:
            counts[type(error).__name__] = counts.get(type(error).__name__, 0) + 1
            continue
        if depth < 2 and isinstance(found, probing.Value):
            look(found, depth + 1)

counts = {"tried": 0}
"""


def test_variables_are_of_the_instant_of_their_frames(target, interpreter):
    process = target("busy_locals.py", interpreter=interpreter)
    seen = 0
    with probing.attach(process.pid) as program:
        for _ in range(ROUNDS):
            for frame in program.thread().frames:
                found = frame.locals  # none is Gone
                if frame.func == "add" and "twice" in found:
                    assert int(found["twice"]) == 2 * int(found["i"]), found
                    assert found["self"].type.name == "Trainer" and not found["twice"] == True  # noqa: E712
                if frame.func == "work" and "double" in found:
                    seen += 1
                    assert int(found["double"]) == 2 * int(found["n"]), found
                    assert "items" not in found or len(found["items"]) == 1
    assert seen and process.alive()


def test_native_frames_have_variables(target, newest):
    process = target("walked.py")
    with probing.attach(process.pid) as program:
        thread = program.threads(native=True)[0]
        found = [frame.locals for frame in thread.frames if frame.func == "run"]
        assert found and found[0]["self"].type.name == "Trainer"
    assert [frame.locals for frame in thread.frames if frame.native][0] == {}


@pytest.mark.parametrize("way", ("runs", "rests"))
def test_objects_that_are_freed_under_a_script(target, interpreter, way):
    """Only errors of ours come of it, and the program is not harmed."""
    with support.Target(interpreter, support.HERE / "programs/frees.py",
                        *(["pause"] if way == "rests" else [])) as process:
        pool = int(process.line().split()[1])
        space = {}
        exec(WALK, space)
        with probing.attach(process.pid) as program:
            kept = []
            for number in range(ROUNDS):
                values = list(program.value(pool))
                kept.append(random.choice(values))
                space["look"](random.choice(values))
                space["look"](kept[number // 2])
            for each in kept:
                space["look"](each)
        counts = space["counts"]
        assert counts["tried"] > ROUNDS * 30 and counts.get("Gone"), counts
        assert process.alive()


DAMAGE = """
def write(address, data):
    %s

def damaged(program, address):
    spoilt, seen = random.Random(3), []
    values = list(program.value(address))
    for number in range(%d):
        where = spoilt.choice(values).address + 8 * spoilt.randrange(6)
        junk = spoilt.choice((0, 8, 2 ** 64 - 1, 0x4141414141414141, where, address, 2 ** 47 - 8,
                              spoilt.randrange(2 ** 64)))
        write(where, junk.to_bytes(8, "little"))
        program.close()
        for each in spoilt.sample(values, 2):
            look(each)

    write(values[0].address + 8, (0x4141414141414148).to_bytes(8, "little"))
    program.close()
    look(list(program.value(address))[0])

damaged(probing.current(), %d)
print("done", sorted(counts))
"""
WRITES = {gdb: "gdb.selected_inferior().write_memory(address, data)"}


@both
def test_a_process_that_the_debugger_itself_spoils(start, newest, tmp_path):
    """Objects overwritten with anything: no crash of the debugger, and no other error."""
    with support.Target(newest, support.HERE / "programs/frees.py", "pause") as process:
        pool = int(process.line().split()[1])
        file = tmp_path / "damage.py"
        file.write_text(WALK + DAMAGE % (WRITES.get(
            start, "import lldb; lldb.target.process.WriteMemory(address, data, lldb.SBError())"),
            ROUNDS // 4, pool))
        line = "exec(open(%r).read(), {'gdb': globals().get('gdb'), 'lldb': globals().get('lldb')})" \
            % str(file)
        if start is not gdb:
            line = "import lldb; " + line
        session = start(("begin",), ("python " if start is gdb else "script ") + line, ("end",),
                        "kill", arguments=["-p", process.pid])
    assert "done" in session.part("begin") and "Traceback" not in session.out + session.err, session
    assert "Gone" in session.part("begin"), session

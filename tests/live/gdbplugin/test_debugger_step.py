# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing step`, `next`, `finish` and `until` in gdb and LLDB, compared with sys.settrace()."""
import json
import re
import subprocess

import debuggers
import pytest
import support
from debuggers import attached, both, problem

PROGRAM = support.HERE / "programs" / "debug_steps.py"
VERSIONS = [each for each in support.one_per_version((3, 6))
            if support.LONG or each.version in ((3, 8), (3, 12), (3, 15))]
STOPPED = re.compile(r"^(\S+)  \S*debug_steps\.py:(\d+)$", re.M)
on_each = pytest.mark.parametrize("interpreter", VERSIONS, ids=repr)


def line_of(text):
    found = [number for number, line in enumerate(PROGRAM.read_text().splitlines(), 1) if text in line]
    assert len(found) == 1, text
    return found[0]


def told_by_tracing(interpreter):
    out = subprocess.check_output([str(interpreter.exe), str(PROGRAM), "trace"], env=interpreter.env)
    return [tuple(each) for each in json.loads(out.decode())]


def stepped(start, interpreter, *commands, stays=False):
    """Where each of the commands stopped, from the first line of turn() on, whose breakpoint @stays."""
    with support.Target(interpreter, PROGRAM) as process:
        process.line()
        session = attached(start, process, "probing break-py debug_steps.py:%d" % line_of("total = leaf(1)"),
                           "continue", *([] if stays else ["probing break-py -d 1"]), ("from here",), *commands)
        assert process.alive()
    assert not session.code, session
    text = session.part("from here")
    return [(name.rpartition(".")[2], int(line)) for name, line in STOPPED.findall(text)], session


@both
@on_each
@pytest.mark.parametrize("stays", [False, True])
def test_each_line(start, interpreter, stays):
    told = told_by_tracing(interpreter)
    assert told[0] == ("turn", line_of("total = leaf(1)")), told
    count = support.count(10, len(told) - 1)
    found, session = stepped(start, interpreter, *["probing step"] * count, stays=stays)
    assert found == told[1:count + 1], session


@both
@on_each
def test_over_and_out(start, interpreter):
    told = told_by_tracing(interpreter)
    own = [each for each in told if each[0] == "turn"]
    # Into leaf(), and out of it: to the next line of turn(); into the loop, and out of it.
    after, fails = ("turn", line_of("    try:")), ("turn", line_of("        fail()"))
    found, session = stepped(start, interpreter, "probing step", "probing finish", "probing next",
                             "probing until", "probing until %d" % fails[1], "probing next",
                             "probing next")
    behind = own[own.index(fails) + 1:]
    assert found == [told[1], own[1], own[2], after, fails] + behind[:2], session


@both
@on_each
def test_what_was_returned(start, interpreter):
    """`finish` shows it, also what a generator yields; a script has it, until the thread goes on."""
    asked = ("import probing", "f = probing.current().frame()", "print('got', int(f.return_value), f.func)")
    runs = "python " if start is debuggers.gdb else "script "
    fails = "fail = lambda: [None for f in [probing.current().frame()] if f.return_value]"
    _, session = stepped(
        start, interpreter, ("leaf",), "probing step", "probing finish", runs + "; ".join(asked), ("past",),
        "probing next", runs + "import probing; %s; exec('try: fail()\\nexcept probing.NotThere as e: print(e)')" % fails,
        ("yields",), "probing break-py debug_steps.py:%d" % line_of("yield 1"), "continue", "probing finish",
        ("raises",), "probing break-py debug_steps.py:%d" % line_of("raise ValueError"), "continue", "probing finish")
    leaf, past, yields, raises = map(session.part, ("leaf", "past", "yields", "raises"))
    assert re.search(r"^returned 2$", leaf, re.M) and "got 2 turn" in leaf, session
    assert "nothing was returned to this frame" in past and "returned 2" not in past, session
    assert re.search(r"^turn  .*\n.*\nreturned 1$", yields, re.M), session
    assert "turn  " in raises and "returned" not in raises, session


@both
@on_each
def test_breakpoints_and_logpoints_after_a_step(start, interpreter):
    """Leftovers of a step at its thread's place disturb nothing."""
    found, session = stepped(
        start, interpreter, "probing step", "probing break-py debug_steps.py:%d" % line_of("recurse(2)"),
        "continue", "probing break-py -d 2", "probing next", "probing trace --calls leaf",
        "probing trace clear", "probing next")
    assert re.search(r"^Python breakpoint 2, turn  \S*debug_steps\.py:%d$" % line_of("recurse(2)"),
                     session.out, re.M), session
    assert found == [("leaf", line_of("doubled = number")), ("turn", line_of("    return total")),
                     ("<module>", line_of("time.sleep"))], session
    assert re.search("^logpoint [0-9]+$", session.out, re.M), session


@debuggers.needs_gdb
def test_what_is_refused(newest):
    with support.Target(newest, PROGRAM) as process:
        process.line()
        session = attached(debuggers.gdb, process, "probing step 3")
        assert "what does '3' mean" in problem(session), session
        session = attached(debuggers.gdb, process, "probing until x")
        assert "'x' is no line" in problem(session) or "line" in problem(session), session
        assert process.alive()


@debuggers.needs_gdb
def test_a_step_that_nobody_waits_for_any_more(newest):
    """The debugger detaches before the thread reaches its line: the program runs on unharmed."""
    with support.Target(newest, PROGRAM) as process:
        process.line()
        for _ in range(3):
            session = attached(debuggers.gdb, process,
                               "probing break-py debug_steps.py:%d" % line_of("total = leaf(1)"),
                               "continue", "probing step", "probing next")
            assert not session.code, session
        done = subprocess.run([support.BINARY, "-t", str(process.pid), "eval", "turn()"],
                              stdout=subprocess.PIPE, check=True)
        assert done.stdout == b"9\n" and process.alive()

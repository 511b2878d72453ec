# SPDX-License-Identifier: GPL-3.0-or-later
"""Names in code that gdb and LLDB run in a frame mean what they mean in the frame's own code, wherever the
code runs: on a thread of the agent, on the stopped thread itself, or when that has run on."""
import debuggers
import pytest
import support
import tables
from debuggers import attached, both, printed, tried
from test_debugger_stops import STOP, library  # noqa: F401 (fixture)

PROGRAM = support.HERE / "programs" / "unbound_calls.py"
INTERPRETERS = [each for each in support.one_per_version((3, 8)) if each.plain and each.has_ctypes]
UNBOUND = "late", "max", "free"
# What is asked, and what is said in a frame; "late" and so on: what the frame's code itself raises.
ASKED = [("locals", "sorted(set(locals()) & {'late', 'max', 'free', 'named', 'said'})", "['named']"),
         ("names", "named, globals()['named'], [named for _ in [1]], min(2, 1)",
          "('LOCAL named', 'GLOBAL named', ['LOCAL named'], 1)"),
         ("assigned", "global named; named = 'NEW'; print(named)", "NEW"),
         ("kept", "named, globals()['named']", "('LOCAL named', 'NEW')"),
         ("declared", "global late; print(late)", "GLOBAL late")]


@pytest.fixture(params=INTERPRETERS, ids=repr)
def turning(request):
    with support.Target(request.param, PROGRAM) as started:
        assert started.line() == "ready"
        yield started


@pytest.fixture(params=INTERPRETERS, ids=repr)
def calling(request, library):  # noqa: F811
    with support.Target(request.param, PROGRAM, library) as started:
        assert started.line() == "ready"
        yield started


def means_the_same(start, process, *commands):
    asked = []
    for name, code, _ in ASKED:
        asked += [(name,), tried(start, "probing eval " + code)]
    for name in UNBOUND:
        asked += [("said_" + name,), "probing eval print(said[%r])" % name,
                  (name,), tried(start, "probing eval " + name),
                  ("in_" + name,), tried(start, "probing eval print([%s for _ in 'a'])" % name)]
    session = attached(start, process, *commands, *asked, ("end",))
    for name, _, answer in ASKED:
        assert printed(session, name).splitlines()[-1:] == [answer], (name, session)
    for name in UNBOUND:
        said = printed(session, "said_" + name).splitlines()[-1]
        assert name in said and said in session.part(name).splitlines(), (name, session)
        assert "GLOBAL" not in session.part("in_" + name) and "built-in" not in session.part("in_" + name)
        assert "Error: " in session.part("in_" + name), session
    assert process.alive()


@both
@pytest.mark.parametrize("interpreter", INTERPRETERS, ids=repr)
def test_while_it_waits(start, interpreter):
    with support.Target(interpreter, PROGRAM, "wait") as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read")
        means_the_same(start, process)


@both
def test_on_the_thread_itself(start, calling):
    means_the_same(start, calling, *[each.replace("getppid", "native_leaf") for each in STOP[start]])


@both
def test_at_a_breakpoint_of_python(start, turning):
    line = next(number for number, text in enumerate(PROGRAM.read_text().splitlines(), 1) if "time.sleep" in text)
    means_the_same(start, turning, "probing break-py unbound_calls.py:%d" % line,
                   "continue" if start is debuggers.gdb else "process continue")


@both
@pytest.mark.parametrize("interpreter", tables.chosen_interpreters(), ids=repr)
def test_when_it_has_run_on(start, interpreter):
    with support.Target(interpreter, PROGRAM) as process:
        assert process.line() == "ready"
        commands = STOP[start][:1]
        # "inner" is a variable of the function around; before 3.11 it is not known that one is.
        names = UNBOUND + ("named",) + ("inner",) * (interpreter.version >= (3, 11))
        for name in names + ("__private",):
            commands += STOP[start][1:] + [(name,), tried(start, "probing eval --all " + name)]
        commands += STOP[start][1:] + [("declared",),
                                       "probing eval --all global named; named = 'NEW'; print(named)"]
        session = attached(start, process, *commands, ("end",))
        assert "NEW" in session.part("declared").splitlines(), session
        assert "'__private' is a private name of a class, and its thread ran on" in session.part("__private"), session
        for name in names:
            assert "is a variable of the frame, and its thread ran on" in session.part(name), session
        assert debuggers.shell(process, "named") == "'NEW'\n"

# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes stopped by the user of gdb or LLDB in C and with the GIL held: commands that run code keep
that place or are refused, and their answer is never from another scope."""
import json
import re
import subprocess

import agent
import debuggers
import pytest
import support
import tables
from debuggers import attached, both, printed, problem, tried

STOP = {debuggers.gdb: ["break getppid", "continue"],
        debuggers.lldb: ["breakpoint set -n getppid", "process continue"]}
STACK = {debuggers.gdb: "bt 1", debuggers.lldb: "thread backtrace -c 1"}
# Each command that would have to run code of Python elsewhere.
OTHERS = ["probing break-py calls_c.py:17", "probing break-py work", "probing trace calls_c.py:17 n",
          "probing trace --calls work",
          "python import probing; probing.break_py('work')"]


@pytest.fixture(params=tables.chosen_interpreters(), ids=repr)
def process(request):
    with support.Target(request.param, support.HERE / "programs" / "calls_c.py") as started:
        assert started.line() == "ready"
        yield started


def stopped(start, process, *commands):
    return attached(start, process, *STOP[start], ("before",), STACK[start], "probing backtrace", *commands,
                    ("after",), STACK[start], "probing backtrace")


def is_kept(session):
    before, after = printed(session, "before"), printed(session, "after")
    assert "getppid" in before and "work" in before and before == after, session
    assert "ran on" not in session.err, session


@both
@pytest.mark.parametrize("command", OTHERS)
def test_refused(start, process, command):
    if "python" in command and start is debuggers.lldb:
        command = command.replace("python ", "script ")
    session = stopped(start, process, ("refused",), tried(start, command))
    assert re.search(r"thread %d holds the GIL, and would have to run on" % process.pid,
                     session.part("refused") + session.err), session
    is_kept(session)
    assert process.alive()


@both
@pytest.mark.parametrize("command", ["probing break-py", "probing break-py --delete 1", "probing trace list",
                                     "probing trace clear"])
def test_refused_with_the_agent(start, process, probing, command):
    """Without it there is nothing to list."""
    assert probing(process.pid, "inject").code == 0
    session = stopped(start, process, ("refused",), tried(start, command))
    assert "holds the GIL, and would have to run on" in session.part("refused"), session
    is_kept(session)


@both
@pytest.mark.parametrize("command", ["probing eval n", "probing eval 1 + 1", "probing eval --frame 1 other"])
def test_code_is_refused(start, process, command):
    session = stopped(start, process, ("refused",), tried(start, command))
    assert "holds the GIL, and would have to run on" in session.part("refused"), session
    assert "--all" in session.part("refused")
    is_kept(session)
    assert process.alive()


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    made = tmp_path_factory.mktemp("leaf") / "called_leaf.so"
    subprocess.run(["cc", "-g", "-O0", "-shared", "-fPIC", "-o", made,
                    support.HERE / "programs" / "called_leaf.c"], check=True)
    return made


@pytest.fixture(params=[i for i in tables.chosen_interpreters() if i.has_ctypes and not i.free_threaded], ids=repr)
def calling(request, library):
    program = support.HERE / "programs" / "calls_c.py"
    with support.Target(request.param, program, library) as started:
        assert started.line() == "ready"
        yield started


def in_leaf(start, process, *commands):
    """Stopped in the extension, with the commands and where it is then."""
    at = [command.replace("getppid", "native_leaf") for command in STOP[start]]
    session = attached(start, process, *at, ("before",), STACK[start], "probing backtrace", *commands,
                       ("after",), STACK[start], "probing backtrace")
    # Names of threads come from the module threading, once it is imported.
    before, after = [re.sub(r", stop reason.*|^\d+ \S+  ", "", printed(session, name), flags=re.M)
                     for name in ("before", "after")]
    assert "native_leaf" in before and "work" in before and before == after, session
    assert "ran on" not in session.err, session
    return session


@both
def test_in_an_extension(start, calling):
    """Code runs on the thread itself, with the variables of each of its frames; the stop stays."""
    session = in_leaf(start, calling, ("local",), "probing eval n", ("outer",), "probing eval --frame 1 other + n",
                      ("thread",), "probing eval __import__('threading').current_thread().name",
                      ("printed",), "probing eval print(n); fresh = n + 1", ("raised",),
                      tried(start, "probing eval 1 / 0"), ("up",), "probing up", "probing eval other", "probing down",
                      ("refused",), tried(start, "probing break-py work"))
    assert printed(session, "local") == "5" and printed(session, "outer") == "12", session
    assert printed(session, "thread") == "'MainThread'" and printed(session, "printed") == "5", session
    assert "ZeroDivisionError: division by zero" in session.part("raised"), session
    assert "\n6\n" in session.part("up"), session
    assert "holds the GIL, and would have to run on" in session.part("refused"), session
    agent.wait_until(lambda: debuggers.shell(calling, "n, fresh, rounds >= 0") == "(1000, 6, True)\n")
    done = subprocess.run([support.BINARY, "-p", str(calling.pid), "eject", "--json"], check=False,
                          stdout=subprocess.PIPE)
    assert json.loads(done.stdout.decode())["unmapped"], done
    assert calling.alive()


@both
def test_the_module_below_the_variables(start, calling):
    """globals() is the frame's own, also where the code sees variables of the function; closures see those
    too."""
    session = in_leaf(start, calling, ("both",), "probing eval n, globals()['n'], globals() is __import__('__main__').__dict__",
                      ("closure",), "probing eval (lambda: n)(), [n for _ in range(1)], sum(n for _ in 'ab'), eval('n')",
                      ("set",), "probing eval globals()['n'] = 1001", "probing eval globals()['n'], n",
                      ("deleted",), tried(start, "probing eval del n"), "probing eval n",
                      ("made",), "probing eval fresh = 7", "probing eval del fresh",
                      tried(start, "probing eval fresh"), ("scope",), "probing eval --frame 1 sorted(set(dir()) & {'globals'})")
    assert printed(session, "both") == "(5, 1000, True)", session
    assert printed(session, "closure") == "(5, [5], 10, 5)", session
    assert "(1001, 5)" in printed(session, "set"), session
    assert "n was deleted, which the frame does not see" in session.part("deleted") + session.err, session
    assert re.search(r"^5$", session.part("deleted"), re.M), session
    assert "name 'fresh' is not defined" in session.part("made"), session
    assert printed(session, "scope") == "[]", session
    agent.wait_until(lambda: debuggers.shell(calling, "n") == "1001\n")


@both
def test_code_that_does_not_end_in_an_extension(start, calling):
    session = in_leaf(start, calling, ("loop",), tried(start, "probing eval -t 0.5 while True: pass"),
                      ("next",), "probing eval n")
    assert "has not ended within 0.5 s, or before a Ctrl-C, and was interrupted" in session.part("loop"), session
    assert printed(session, "next") == "5", session
    agent.wait_until(lambda: debuggers.shell(calling, "n") == "1000\n")


@both
def test_all_may_run_on(start, process):
    """The user says so; still no value comes from elsewhere."""
    session = attached(start, process, *STOP[start], ("local",), tried(start, "probing eval --all n"),
                       *STOP[start][1:], ("text",), tried(start, "probing eval --all eval('n')"),
                       *STOP[start][1:], ("global",), "probing eval --all rounds >= 0",
                       *STOP[start][1:], ("frame",), tried(start, "probing eval --all --frame 1 other"),
                       *STOP[start][1:], ("assigned",), tried(start, "probing eval --all n = 3"),
                       *STOP[start][1:], ("fresh",), "probing eval --all fresh = rounds")
    assert "'n' is a variable of the frame, and its thread ran on" in session.part("local"), session
    assert "NameError" in session.part("text"), session
    assert re.search("^True$", session.part("global"), re.M), session
    assert "so no code runs in a frame" in session.part("frame"), session
    assert "'n' is a variable of the frame" in session.part("assigned"), session
    assert "1000" not in session.part("local") + session.part("text"), session
    assert debuggers.shell(process, "n, fresh >= 0") == "(1000, True)\n"


@debuggers.needs_gdb
def test_while_gdb_repeats_its_commands(process):
    session = attached(debuggers.gdb, process, "set trace-commands on", ("eval",), "probing eval rounds > 0",
                       "probing break-py work", ("points",), "info breakpoints", ("go",), "continue")
    assert re.search("^True$", session.part("eval"), re.M) and "Python breakpoint 1 at" in session.out, session
    assert "SIGURG" not in session.part("points"), session
    assert "Python breakpoint 1, work" in session.part("go"), session

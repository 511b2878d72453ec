# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing break-py` in gdb and LLDB before there is a process, before Python has started, and before a module is imported;
again after each `run`; in gdb's own list."""

import os
import re

import debuggers
import pytest
import support
from debuggers import PROGRAMS, needs_gdb, needs_lldb

VERSIONS = [each for each in support.one_per_version((3, 6)) if not each.free_threaded]
ONES = [each for each in VERSIONS if each.version < (3, 12)][-1:] + [each for each in VERSIONS if each.version >= (3, 12)][-1:]
# gdb resumes one thread after the other, and fails if the process ends before the last: so the end waits for that.
PROGRAM = """\
import os

import other


def is_stopped(thread):
    try:
        with open("/proc/self/task/%s/stat" % thread) as file:
            return file.read().rpartition(") ")[2][0] == "t"
    except OSError:
        return False


def work(number):
    total = number + 1
    return total


for i in range(3):
    work(i)
    other.Thing().method(i)
    try:
        work("x")
    except Exception as error:
        print("caught", type(error).__name__, error)
print("done", flush=True)
while any(map(is_stopped, os.listdir("/proc/self/task"))):
    pass
"""
OTHER = """\
class Thing:
    def method(self, number):
        double = lambda value: value * 2
        return double(number)


def generate():
    yield 1
"""
WORK, METHOD, CALL = PROGRAM.splitlines().index("    total = number + 1") + 1, 3, \
    PROGRAM.splitlines().index("    work(i)") + 1


@pytest.fixture
def program(tmp_path):
    (tmp_path / "other.py").write_text(OTHER)
    path = tmp_path / "early.py"
    path.write_text(PROGRAM)
    return path


def session(interpreter, program, *commands):
    # gdb's own Python must not see them.
    env = ["set environment %s %s" % each for each in interpreter.env.items()]
    done = debuggers.gdb(*env, *commands, arguments=["--args", interpreter.exe, program])
    assert "Error in re-setting" not in done.err and "No symbol" not in done.err, done
    return done


@needs_gdb
@pytest.mark.parametrize("interpreter", VERSIONS, ids=repr)
def test_before_run_and_again(interpreter, program):
    """A line, and a method of a module that is not imported, with a condition."""
    done = session(
        interpreter, program, ("set",), "probing break-py early.py:%d" % WORK,
        "probing break-py Thing.method if number == 1", ("listed",), "probing break-py", ("info",), "info breakpoints",
        ("first",), "run", ("stack",), "probing backtrace", ("second",), "continue", "continue", "continue", ("known",),
        "info breakpoints", ("list",), "probing break-py", ("again",), "run", ("number",), "probing print number",
        "delete", ("end",), "continue", ("none",), "probing break-py")
    for number, place in ((1, "early.py:%d" % WORK), (2, "Thing.method if number == 1")):
        waits = "%s, which waits for Python to start" % place
        assert "Python breakpoint %d at %s" % (number, waits) in done.part("set"), done
        assert "%-3d %s" % (number, waits) in done.part("listed"), done
        assert "%-7d is Python breakpoint %d: %s" % (number, number, waits) in done.part("info"), done
    assert "Python breakpoint 1, work  %s:%d" % (program, WORK) in done.part("first"), done
    assert debuggers.frames_of(done.part("stack")) == [
        ("work", "%s:%d" % (program, WORK)), ("<module>", "%s:%d" % (program, CALL))], done
    assert re.search(r"Python breakpoint 2, (Thing\.)?method  \S+/other.py:%d" % METHOD, done.part("second")), done
    assert re.search(r"^1  .*early.py:%d in work; reached 3 times$" % (
        WORK), done.part("list"), re.M), done
    assert "Python breakpoint 1: " in done.part("known") and "Python breakpoint 2: " in done.part("known"), done
    assert "Python breakpoint 1, work  %s:%d" % (program, WORK) in done.part("again"), done
    assert re.search("^0$", done.part("number"), re.M), done
    assert "done" in done.part("end") and "exited normally" in done.part("end"), done
    assert "no breakpoints of Python" in done.part("none"), done


@needs_gdb
@pytest.mark.parametrize("interpreter", ONES, ids=repr)
def test_gdb_own_commands(interpreter, program):
    """commands, disable, enable, ignore, tbreak-py, delete with a number; commands are traced."""
    done = session(
        interpreter, program, "set trace-commands on", "probing break-py early.py:%d" % WORK,
        "commands 1\nsilent\nprobing print number\ncontinue\nend", "probing tbreak-py Thing.method", ("run",), "run",
        ("listed",), "info breakpoints", "disable 1", "probing break-py other.py:4", ("other",), "continue", ("enabled",),
        "enable 1", "ignore 1 1", "continue", ("deleted",), "delete 1", "probing break-py", ("end",), "delete",
        "continue", ("left",), "info breakpoints")
    assert re.search(r"^0$", done.part("run"), re.M) and "Python breakpoint 2, " in done.part("run"), done
    assert "Python breakpoint 1, " not in done.part("run"), done
    assert "Python breakpoint 1: " in done.part("listed") and "Python breakpoint 2: " not in done.part("listed"), done
    assert "other.py:4" in done.part("other"), done
    assert "early.py:%d" % WORK not in debuggers.printed(done, "deleted") and "other.py:4" in done.part("deleted"), done
    assert "exited normally" in done.part("end") and not re.search(r"^-?\d+ +catchpoint", done.part("left"), re.M), done


@needs_gdb
@pytest.mark.parametrize("interpreter", ONES, ids=repr)
def test_stopped_before_python(interpreter, program):
    """The process is there, and Python is not."""
    done = session(interpreter, program, "starti", ("set",), "probing break-py work if number == 2", "continue", ("at",),
                   "probing print number", "kill", ("listed",), "probing break-py")
    assert "which waits for Python to start" in done.part("set"), done
    assert re.search("^2$", done.part("at"), re.M), done
    assert "1   work if number == 2, which waits for Python to start" in done.part("listed"), done


@needs_gdb
def test_a_process_that_was_there_gets_none(newest, program):
    """A killed gdb must not leave a breakpoint in the interpreter of a program that it has attached to."""
    with support.Target(newest, PROGRAMS / "sleeper.py") as process:
        support.wait_for_sleep(process.pid, "pipe_read")
        done = session(newest, program, "probing break-py early.py:%d" % WORK, "run", "kill", "attach %d" % process.pid,
                       ("listed",), "probing break-py", ("info",), "info breakpoints", "maint info breakpoints", "detach")
    assert "no breakpoints of Python" in done.part("listed"), done
    assert "is Python breakpoint 1: early.py:%d, not in this process" % WORK in done.part("info"), done
    assert not re.search(r"^-\d+ .* y .*PyEval_EvalCode", done.part("info"), re.M), done


@needs_gdb
@pytest.mark.parametrize("interpreter", VERSIONS, ids=repr)
def test_an_exception_on_request(interpreter, program):
    """At a breakpoint, and where a step has ended."""
    done = session(
        interpreter, program, "probing break-py early.py:%d" % CALL, "run", "probing next", "probing next",
        "probing raise KeyError('asked', i)", ("end",), "delete", "continue")
    assert "KeyError: ('asked', 0)" in done.err, done
    done = session(interpreter, program, "probing break-py early.py:%d" % CALL, "run", "probing raise i")
    assert debuggers.problem(done) == "raise: int is no exception", done
    done = session(
        interpreter, program, "probing break-py early.py:%d if number == 'x'" % WORK, "run",
        "probing raise KeyError('asked', number)", ("end",), "delete", "continue")
    assert "caught KeyError ('asked', 'x')" in done.out, done


@needs_gdb
@pytest.mark.parametrize("interpreter", ONES, ids=repr)
def test_later_imports_cost_nothing(interpreter, tmp_path):
    """Once all are set, gdb stops at the code of no further module."""
    names = ["part%d" % number for number in range(9)]
    for name in names:
        (tmp_path / (name + ".py")).write_text("x = 1\n")
    program = tmp_path / "imports.py"
    program.write_text("import " + ", ".join(names) + "\n")
    done = session(interpreter, program, "probing break-py part0.py:1", "probing break-py part8.py:1", ("first",), "run",
                   "maint info breakpoints", ("last",), "continue", "maint info breakpoints")
    hits = [re.search(r"PyEval_EvalCode\b.*\n\s+breakpoint already hit (\d+) times?\n", done.part(each)) for each in
            ("first", "last")]
    assert "Python breakpoint 1, " in done.part("first") and "Python breakpoint 2, " in done.part("last"), done
    assert hits[0].group(1) == hits[1].group(1), done


IMPORTS = """\
import keyword, colorsys
try:
    import nowhere
except ImportError:
    pass
{}[1]
"""


@needs_gdb
@pytest.mark.parametrize("interpreter", ONES, ids=repr)
def test_what_the_import_system_raises(interpreter, tmp_path):
    """What it handles itself, under a lock that code of ours needs, stops nothing; the rest stops at the import."""
    program = tmp_path / "imports.py"
    program.write_text(IMPORTS)
    done = session(interpreter, program, "probing tbreak-py imports.py:1", "run", "probing catch-py KeyError",
                   "probing catch-py ImportError", ("first",), "continue", "probing next", ("second",), "continue")
    assert re.search(r"Python breakpoint 3, <module>  %s:3\n.*\nModuleNotFoundError: " % program, done.part("first")), done
    assert re.search(r"Python breakpoint 2, <module>  %s:6\n.*\nKeyError: 1$" % program, done.part("second"), re.M), done


def lldb_session(interpreter, program, *commands, lldb=None):
    # The rest is inherited; make's own variables would be read as options.
    env = ["settings set target.env-vars '%s=%s'" % each for each in interpreter.env.items()
           if os.environ.get(each[0]) != each[1]]
    done = debuggers.lldb("settings set target.run-args %s" % program, *env, *commands,
                          arguments=["-f", interpreter.exe], program=lldb)
    assert "Traceback" not in done.err, done
    return done


def before_run_in_lldb(interpreter, program, lldb=None):
    done = lldb_session(
        interpreter, program, ("set",), "probing break-py early.py:%d" % WORK,
        "probing break-py Thing.method if number == 1", "probing tbreak-py early.py:%d" % CALL, ("listed",),
        "probing break-py", ("off",), debuggers.tried(debuggers.lldb, "probing break-py --disable 2"), ("once",), "run", ("first",), "continue", ("stack",),
        "probing backtrace", ("list",), "probing break-py", ("second",), "continue", "continue", "continue", ("kill",), "kill",
        ("again",), "run", ("number",), "probing print number", ("delete",), "probing break-py --delete",
        "probing break-py", ("own",), "breakpoint list", ("end",), "continue", lldb=lldb)
    for number, place in ((1, "early.py:%d" % WORK), (2, "Thing.method if number == 1"), (3, "early.py:%d" % CALL)):
        waits = "%s, which waits for Python to start" % place
        assert "Python breakpoint %d at %s" % (number, waits) in done.part("set"), done
        assert "%-3d %s" % (number, waits) in done.part("listed"), done
    assert "--disable needs Python, which has not started" in done.part("off"), done
    assert "Python breakpoint 3, <module>  %s:%d" % (program, CALL) in done.part("once"), done
    assert "Python breakpoint 1, work  %s:%d" % (program, WORK) in done.part("first"), done
    assert debuggers.frames_of(done.part("stack")) == [
        ("work", "%s:%d" % (program, WORK)), ("<module>", "%s:%d" % (program, CALL))], done
    assert re.search(r"^1  .*early.py:%d in work; reached 1 time$" % WORK, done.part("list"), re.M), done
    assert not re.search("^3 ", done.part("list"), re.M), done
    assert re.search(r"Python breakpoint 2, (Thing\.)?method  \S+/other.py:%d" % METHOD, done.part("second")), done
    assert "Python breakpoint 1, work  %s:%d" % (program, WORK) in done.part("again"), done
    assert re.search("^0$", done.part("number"), re.M), done
    assert "breakpoint 1 deleted\nbreakpoint 2 deleted\nno breakpoints of Python" in done.part("delete"), done
    assert "No breakpoints currently set" in done.part("own"), done
    assert "exited with status = 0" in done.part("end"), done


@needs_lldb
@pytest.mark.parametrize("interpreter", VERSIONS, ids=repr)
def test_lldb_before_run_and_again(interpreter, program):
    """A line, a method of a module that is not imported, and one that stops once: not in the second process."""
    before_run_in_lldb(interpreter, program)


@needs_lldb
def test_lldb_in_a_process_that_was_there(newest, program):
    """One that it has attached to gets no breakpoint in the interpreter, and none that waits."""
    with support.Target(newest, PROGRAMS / "sleeper.py") as process:
        support.wait_for_sleep(process.pid, "pipe_read")
        done = lldb_session(newest, program, "probing break-py early.py:%d" % WORK, "run", "kill",
                            "process attach -p %d" % process.pid, ("listed",), "probing break-py", ("own",),
                            "breakpoint list probing_start_py", "detach")
    assert "no breakpoints of Python" in done.part("listed"), done
    assert "disabled" in done.part("own"), done

# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing break-py` in gdb and LLDB: the process stops at lines of Python, runs on unharmed, and removes
breakpoints without a debugger."""

import os
import re
import subprocess
import time

import debuggers
import pauses
import pytest
import support
import tables
from debuggers import attached, both, problem

PROGRAM = support.HERE / "programs" / "breaks.py"
BUSY = PROGRAM.with_name("breaks_busy.py")
THREADS = 4  # of that one
VERSIONS = [i for i in support.one_per_version((3, 6))] + \
    [i for i in support.INTERPRETERS if i.free_threaded and i.version >= (3, 12)][:1]
TRACED_VERSIONS = [i for i in VERSIONS if i.version < (3, 12)]
# For behaviour common to all versions that trace, and to all that need not.
ONES = TRACED_VERSIONS[-1:] + [i for i in VERSIONS if i.version >= (3, 12)][:1]
LATE = "def late(number):\n    done = number\n    return done\n\n\nloaded = True\n"


def line_of(text, program=PROGRAM):
    """Number of the line of the program that has the text."""
    lines = program.read_text().splitlines()
    found = [number for number, line in enumerate(lines, 1) if text in line]
    assert len(found) == 1, text
    return found[0]


# Words of thread states: of all that have a profile or trace function, or pending calls.
TRACED = """
import ctypes, sys
api, version = ctypes.pythonapi, sys.version_info[:2]
for name in "PyInterpreterState_Head", "PyInterpreterState_ThreadHead", "PyThreadState_Next":
    getattr(api, name).restype = ctypes.c_void_p
    getattr(api, name).argtypes = [ctypes.c_void_p] if name != "PyInterpreterState_Head" else []
def read(at, kind=ctypes.c_size_t):
    return kind.from_address(at).value
def used(state):
    first = 48 if version < (3, 7) else 64 if version == (3, 11) else 56
    if version < (3, 10):
        told = read(state + (44 if version < (3, 7) else 48), ctypes.c_int)
    else:
        told = read(read(state + first - 8), ctypes.c_uint8)
    return [read(state + first), read(state + first + 8), told]
found, state = [], api.PyInterpreterState_ThreadHead(api.PyInterpreterState_Head())
while state:
    if any(used(state)):
        found.append(used(state))
    state = api.PyThreadState_Next(state)
found
"""


RESULT, VALUE, DEPTH = map(line_of, ("result = double", "value += 1", "depth = left"))
BUSY_RESULT = line_of("result = double", BUSY)


class Counting(support.Target):
    """The program, and its own counts."""

    def __init__(self, interpreter, folder, program=PROGRAM):
        self.shared = support.Shared()
        self.late = folder / "late"
        super().__init__(interpreter, program, self.shared.path, self.late)
        self.interpreter = interpreter

    def goes_on(self):
        """Until the main thread has come by twice more."""
        wanted = self.shared[0] + 2
        wait_until(lambda: self.shared[0] >= wanted or not self.alive())
        assert self.alive(), self.errors()

    def shell(self, code):
        done = subprocess.run([support.BINARY, "-p", str(self.pid), "eval", code], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert not done.returncode, (done, self.alive(), self._process.returncode, self.errors())
        return done.stdout.strip()

    def on_main(self, code):
        with self.starting_on_main(code) as command:
            said = command.communicate()
        assert not command.returncode, said

    def starting_on_main(self, code):
        return subprocess.Popen(
            [support.BINARY, "-p", str(self.pid), "eval", "--thread", "main", code],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def has_none(self):
        """Nothing of ours is in the interpreter."""
        if self.interpreter.version < (3, 12):
            return self.shell(TRACED) == "[]"
        return self.shell("[sys.monitoring.get_tool(i) for i in range(6)]") == str([None] * 6)


def wait_until(true):
    end = time.monotonic() + 120
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)


def counting(params):
    """A fixture: the program, in each of these interpreters."""
    def started(request, tmp_path):
        with Counting(request.param, tmp_path) as process:
            process.line()
            yield process
    return pytest.fixture(params=params, ids=repr)(started)


each, one, traced = counting(VERSIONS), counting(ONES), counting(TRACED_VERSIONS)
# Those that end a program in which a RecursionError went unseen, and have sys.audit().
unforgiving = counting([i for i in TRACED_VERSIONS if (3, 8) <= i.version < (3, 10)])


@pytest.fixture(params=VERSIONS, ids=repr)
def busy(request, tmp_path):
    """All of its threads run all the time."""
    with Counting(request.param, tmp_path, BUSY) as process:
        process.line()
        yield process
        before = [process.shared[2 + each] for each in range(THREADS)]
        wait_until(lambda: not process.alive() or process.errors() or all(
            process.shared[2 + each] > before[each] + 1 for each in range(THREADS)))
        assert process.alive() and not process.errors(), process.errors()


def place(line):
    return "%s:%d" % (PROGRAM, line)


# Stopping

@both
def test_it_stops_with_the_line_selected(start, each):
    session = attached(
        start, each, ("set",), "probing break-py breaks.py:%d" % RESULT, debuggers.on_stderr(start, "stopped"),
        ("stop",), "continue", ("stack",), "probing backtrace", ("locals",), "probing locals", ("eval",),
        "probing eval 6 * 7", ("again",), "probing backtrace", ("list",), "probing break-py",
        ("delete",), "probing break-py --delete 1", ("none",), "probing break-py")
    assert "Python breakpoint 1 at breaks.py:%d in work" % RESULT in session.part("set"), session
    assert "Python breakpoint 1, work  " + place(RESULT) in session.part("stop"), session
    assert "result = double + 1" in session.part("stop")
    assert debuggers.frames_of(session.part("stack"))[0] == ("work", place(RESULT)), session
    number = int(re.search(r"argument number = (\d+)", session.part("locals")).group(1))
    assert "double = %d" % (2 * number) in re.sub(" +", " ", session.part("locals"))
    assert "result = (unbound)" in re.sub(" +", " ", session.part("locals"))
    # Evaluating code moves no thread.
    said = session.err.split("stopped\n")[1]
    assert re.search("^42$", session.part("eval"), re.M) and "ran on" not in said, session
    assert debuggers.frames_of(session.part("again")) == debuggers.frames_of(session.part("stack"))
    assert "in work; reached 1 time\n" in session.part("list"), session
    assert "breakpoint 1 deleted" in session.part("delete")
    assert "no breakpoints of Python" in session.part("none")
    each.goes_on()
    assert each.has_none()


@both
def test_each_call_stops_and_a_condition_chooses(start, each):
    session = attached(
        start, each, "probing break-py breaks.py:%d if number %% 5 == 2" % RESULT, "continue",
        ("one",), "probing print number", "continue", ("two",), "probing print number",
        ("list",), "probing break-py", "probing break-py -d 1",
        "probing break-py %s" % place(RESULT), "continue", ("three",), "probing print number",
        "continue", ("four",), "probing print number")
    one, two, three, four = (int(re.search(r"^(\d+)$", session.part(name), re.M).group(1))
                             for name in ("one", "two", "three", "four"))
    assert one % 5 == 2 and two == one + 5 and three == two + 1 and four == three + 1, session
    assert "if number % 5 == 2 in work; reached 2 times" in session.part("list"), session
    each.goes_on()


@both
@pytest.mark.parametrize("interpreter", [i for i in ONES if not i.free_threaded] + TRACED_VERSIONS[:1], ids=repr)
def test_exceptions(start, interpreter, target, shared):
    """Those that an `except` handles count, unless only others are asked for."""
    driven = PROGRAM.with_name("driven.py")
    raised = line_of("raise ValueError(k)", driven)
    session = attached(
        start, target("driven.py", shared.path, interpreter=interpreter), "probing catch-py --uncaught", ("set",),
        "probing catch-py ValueError", ("stop",), "continue", ("stack",), "probing backtrace", ("list",),
        "probing break-py")
    assert "Python breakpoint 2 at ValueError" in session.part("set"), session
    assert ("all\n  lines " in session.part("set")) == (interpreter.version < (3, 12)), session
    assert re.search(r"Python breakpoint 2, fails .*:%d\n.*\nValueError: \d+$" % raised, session.part("stop"), re.M), session
    assert debuggers.frames_of(session.part("stack"))[0] == ("fails", "%s:%d" % (driven, raised)), session
    assert re.search("any exception that is not handled; reached 0 times\n2 +ValueError; reached 1 time$",
                     session.part("list"), re.M), session
    pauses.wait_until_runs(shared)


@both
def test_limits(start, each):
    """One that is deleted when it was reached; ignored times; disabled and enabled; of one thread; all deleted."""
    session = attached(
        start, each, "probing tbreak-py breaks.py:%d" % RESULT, "continue", ("once",), "probing break-py",
        "probing break-py --ignore 2 breaks.py:%d" % RESULT, ("zero",), "probing print number", "continue",
        ("three",), "probing print number", "probing break-py --ignore 4 2", ("list",), "probing break-py", "continue",
        ("eight",), "probing print number", "probing break-py --disable 2",
        "probing break-py --thread breaks.py:%d if number %% 3 == 0" % RESULT, "continue", ("other",),
        "probing break-py", "probing break-py --enable 2", ("again",), "continue", ("all",),
        "probing break-py --delete all", "probing break-py")
    assert "no breakpoints of Python" in session.part("once"), session
    zero, three, eight = (int(re.search(r"^(\d+)$", session.part(name), re.M).group(1))
                          for name in ("zero", "three", "eight"))
    assert (three, eight) == (zero + 3, three + 5), session
    assert "reached 1 time, 4 more are ignored" in session.part("list"), session
    assert "reached 2 times, disabled" in session.part("other") and "in one thread" in session.part("other"), session
    assert "Python breakpoint 2, work" in session.part("again"), session
    assert "breakpoint 2 deleted\nbreakpoint 3 deleted\nno breakpoints of Python" in session.part("all"), session
    each.goes_on()
    assert each.has_none()


@both
@pytest.mark.parametrize("name", ["work", "__main__:work"])
def test_a_function(start, each, name):
    first = line_of("double = number")
    session = attached(
        start, each, ("set",), "probing break-py %s if number %% 3 == 1" % name, "continue", ("one",),
        "probing print number", ("stack",), "probing backtrace", "continue", ("two",),
        "probing print number", ("list",), "probing break-py", "probing break-py -d 1")
    assert re.search(r"Python breakpoint 1 at \S*breaks.py:%d if number %% 3 == 1 in work" % first,
                     session.part("set")), session
    one, two = (int(re.search(r"^(\d+)$", session.part(part), re.M).group(1))
                for part in ("one", "two"))
    assert one % 3 == 1 and two == one + 3, session
    assert debuggers.frames_of(session.part("stack"))[0][1].endswith("breaks.py:%d" % first)
    assert "reached 2 times" in session.part("list")
    each.goes_on()


@both
def test_two_at_one_line_both_count(start, each):
    """The second one with a condition that holds every other time."""
    session = attached(
        start, each, "probing break-py breaks.py:%d" % RESULT,
        "probing break-py breaks.py:%d if number %% 2 == 0" % RESULT, "continue", "continue", ("list",),
        "probing break-py", "probing break-py -d 1", "probing break-py -d 2")
    listed = debuggers.printed(session, "list").splitlines()
    assert listed[0].startswith("1 ") and listed[0].endswith("reached 2 times"), session
    assert listed[1].startswith("2 ") and listed[1].endswith("reached 1 time"), session
    each.goes_on()


@both
def test_code_that_is_running_or_suspended(start, each):
    """Main has the loop since before; the generator waits at its yield."""
    loop = line_of("work(shared[0])")
    session = attached(
        start, each, "probing break-py breaks.py:%d" % loop, "continue", ("loop",),
        "probing backtrace", "probing break-py --delete 1", "probing break-py breaks.py:%d" % VALUE,
        "continue", ("generator",), "probing backtrace")
    assert debuggers.frames_of(session.part("loop")) == [("<module>", place(loop))], session
    frames = debuggers.frames_of(session.part("generator"))
    assert frames[:2] == [("numbers", place(VALUE)),
                          ("others", place(line_of("for value in numbers")))], session
    each.goes_on()


@both
def test_code_that_is_loaded_later(start, each):
    text = each.late.with_name("text")
    text.write_text(LATE)
    move = "shell mv %s %s" % (text, each.late)
    session = attached(
        start, each, ("set",), "probing break-py late.py:2", ("one",), "probing break-py late.py:6",
        move if start is debuggers.gdb else "platform " + move, ("module",), "continue",
        ("function",), "continue", ("stack",), "probing backtrace", ("list",), "probing break-py")
    assert "late.py:2, of which no code was found so far" in session.part("set"), session
    assert "Python breakpoint 2, <module>  /nowhere/late.py:6" in session.part("module"), session
    assert "Python breakpoint 1, late  /nowhere/late.py:2" in session.part("function")
    assert [name for name, _ in debuggers.frames_of(session.part("stack"))] == [
        "late", "load", "<module>"]
    assert "late.py:2 in late; reached 1 time" in session.part("list")
    each.goes_on()


@both
def test_two_in_one_function(start, one):
    """A line that was passed before it had a breakpoint is checked again."""
    other = line_of("return result")
    session = attached(
        start, one, "probing break-py breaks.py:%d" % RESULT, "continue",
        "probing break-py breaks.py:%d" % other, ("second",), "continue", ("first",), "continue",
        "probing break-py -d 1", ("only",), "continue", "probing break-py -d 2")
    assert "Python breakpoint 2, work  " + place(other) in session.part("second"), session
    assert "Python breakpoint 1, work  " + place(RESULT) in session.part("first"), session
    assert "Python breakpoint 2, work  " + place(other) in session.part("only"), session
    one.goes_on()
    assert one.has_none()


@both
def test_a_condition_that_raises_stops(start, one):
    session = attached(start, one, "probing break-py breaks.py:%d if nothing > 1" % RESULT,
                       ("stop",), "continue")
    assert "its condition raised NameError: name 'nothing' is not defined" in session.part("stop")
    one.goes_on()


@both
def test_what_is_evaluated_does_not_stop(start, one):
    # It may be stopped in a function of late.py, which has other globals.
    session = attached(start, one, "probing break-py breaks.py:%d" % RESULT, ("inside",),
                       "probing eval __import__('__main__').unseen()", ("stop",), "continue", ("outside",),
                       "probing eval __import__('__main__').work(20)")
    assert re.search("^-1$", session.part("inside"), re.M), session
    assert "Python breakpoint 1, work" in session.part("stop")
    assert re.search("^41$", session.part("outside"), re.M), session


@debuggers.needs_gdb
def test_a_recursion_goes_as_deep_as_before(each):
    """Though nothing of ours has room at its end."""
    def deepest():
        before = each.shared[0]
        wait_until(lambda: each.shared[0] >= before + 3)
        return each.shared[1]

    depth = deepest()
    assert depth > 100
    with holding(each, "probing break-py breaks.py:%d if left < 0" % DEPTH):
        assert deepest() == depth


@debuggers.needs_gdb
def test_what_is_looked_for_at_the_end_of_a_recursion(unforgiving):
    """Every 1024 calls the process checks for the debugger: once at each depth of a thousand calls."""
    before = unforgiving.shared[0]
    with holding(unforgiving, "probing break-py breaks.py:%d if number < 0" % RESULT):
        wait_until(lambda: not unforgiving.alive() or unforgiving.shared[0] > before + 1100)
    assert unforgiving.alive(), unforgiving.errors()


@debuggers.needs_gdb
def test_tracing_says_what_it_costs_and_ends_with_the_last(traced):
    session = attached(
        debuggers.gdb, traced, ("set",), "probing break-py breaks.py:%d" % RESULT, "continue",
        "probing break-py breaks.py:%d" % VALUE, ("one",), "probing break-py --delete 1", "continue",
        ("both",), "probing break-py --delete 2")
    said = session.part("set")
    assert "Python %d.%d is traced for this, which slows" % traced.interpreter.version in said, session
    assert re.search(r"calls take about \d\.\d times as long, calls of functions of C \d\.\d times, "
                     r"loops \d\.\d times, lines of\n  a function that has a breakpoint \d times\n",
                     said), session
    assert "Python breakpoint 2, numbers" in session.part("one"), session
    traced.goes_on()
    assert traced.has_none()


@debuggers.needs_gdb
def test_tracing_is_seen_where_it_is(traced):
    """Proves that the other tests would notice leftover tracing."""
    with holding(traced, "probing break-py breaks.py:%d if ready" % RESULT):
        assert not traced.has_none()
        assert traced.shell("sys.gettrace(), sys.getprofile()") == "(None, None)"


@debuggers.needs_gdb
def test_a_profiler_that_comes_later(traced):
    """It replaces our profile function in its thread, which is reported."""
    traced.shell("recurses = deafened = False")
    session = attached(
        debuggers.gdb, traced, "probing break-py breaks.py:%d if sys.setprofile(lambda *_: None) or "
        "globals().update(deafened=True)" % RESULT, "probing break-py breaks.py:%d if deafened" % VALUE,
        "continue", ("list",), "probing break-py")
    assert "Python breakpoint 2, numbers" in session.out, session
    assert "1 thread has a tracer or profiler of the program's own, and may not stop" in \
        session.part("list"), session
    traced.goes_on()


STARTS = {
    "threading": "import threading; threading.Thread(target=work, args=(-7,)).start()",
    "_thread": "import _thread; _thread.start_new_thread(work, (-7,))",
    "pool": "import concurrent.futures as f; pool = f.ThreadPoolExecutor(1); pool.submit(work, -7)",
}


@debuggers.needs_gdb
@pytest.mark.parametrize("how", STARTS)
def test_a_thread_that_begins_later(each, how):
    """Its first call counts already."""
    each.shell("started = False")
    with holding(each, "probing break-py breaks.py:%d if number == -7" % RESULT) as gdb:
        starter = each.starting_on_main(STARTS[how])
        said = ""
        while "Python breakpoint 1, work" not in said:
            line = gdb.stdout.readline()
            assert line, said
            said += line
        gdb.kill()
        gdb.wait()
        starter.communicate()
    each.goes_on()


# Refusals

@both
def test_a_line_without_code(start, one):
    empty = RESULT + 1
    session = attached(start, one, "probing break-py breaks.py:%d" % empty)
    said = problem(session)
    assert said.startswith("line %d of %s has no code that can be reached" % (empty, PROGRAM)), said
    assert "that have: %d, %d, %d, " % (RESULT - 1, RESULT, RESULT + 2) in said, said
    one.goes_on()
    assert one.has_none()


@both
@pytest.mark.parametrize("command, said", [
    ("probing break-py here.py", "'here.py' is no place: for example"),
    ("probing break-py a.py:0", "'a.py:0' is no place"),
    ("probing break-py a.py:1 if )", "')' is no condition"),
    ("probing break-py --delete x", "'x' is no breakpoint"),
])
def test_what_is_no_breakpoint(start, command, said):
    assert said in problem(start(command))


@both
@pytest.mark.parametrize("name, said", [
    ("several", " functions several; name more of it, or the line of one: "),
    ("breaks.py:%d" % line_of("import mmap"), "has no code that can be reached any more; lines nearby"),
], ids=["several", "past"])
def test_several_functions_or_a_past_line(start, one, name, said):
    one.shell("exec('\\n'.join('class C%d:\\n def several(self): pass' % i for i in range(41)))")
    assert problem(attached(start, one, "probing break-py " + name)).find(said) >= 0
    one.goes_on()
    assert one.has_none()


@both
def test_functions_of_one_name(start, one):
    """It is one breakpoint, which stops in each of them."""
    session = attached(start, one, ("set",), "probing break-py __enter__", ("list",), "probing break-py")
    for name in ("set", "list"):
        assert re.search(r"1 +(at )?\d+ places: .*:\d+, .*, … in .*__enter__, ", session.part(name)), session
    one.goes_on()
    assert one.has_none()


@both
def test_one_that_is_not_there(start, one):
    session = attached(start, one, "probing break-py --delete 7")
    assert "there is no breakpoint 7: 'probing break-py' lists them" in problem(session)


@both
def test_before_3_6(start, target):
    old = [i for i in tables.chosen_interpreters() if i.version < (3, 6)]
    if not old:
        pytest.skip("no interpreter of 3.4 or 3.5 here")
    process = target("sleeper.py", interpreter=old[0])
    said = problem(attached(start, process, "probing break-py sleeper.py:3"))
    assert "needs Python 3.6 or later, and this is 3." in said


@debuggers.needs_gdb
@pytest.mark.parametrize("code", [
    "sys.settrace(lambda *_: None)", "sys.setprofile(lambda *_: None)",
    "import threading; threading.setprofile(lambda *_: None)\n"
    "threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()",
], ids=["tracer", "profiler", "thread"])
def test_a_tracer_of_the_program_itself(traced, code):
    """It is not replaced, whichever thread has it."""
    traced.shell("recurses = False")  # in a function of Python, which would be taken out
    traced.on_main(code)
    said = problem(attached(debuggers.gdb, traced, "probing break-py breaks.py:%d" % RESULT))
    assert "a tracer or profiler of its own in some thread" in said and "end it, or run" in said
    traced.goes_on()
    traced.on_main("sys.settrace(None), sys.setprofile(None)")
    assert "thread" in code or traced.has_none()


@debuggers.needs_gdb
def test_hooks_for_audits(traced):
    """They would run while threads are changed, which may end meanwhile."""
    if traced.interpreter.version < (3, 8):
        pytest.skip("hooks for audits came with 3.8")
    traced.shell("heard = []; sys.addaudithook(lambda event, _: heard.append(event))")
    said = problem(attached(debuggers.gdb, traced, "probing break-py breaks.py:%d" % RESULT))
    assert "hooks for audits (sys.addaudithook())" in said
    assert traced.shell("[each for each in heard if 'trace' in each or 'profile' in each]") == "[]"
    assert traced.has_none()


@both
def test_a_core(start, one, tmp_path):
    core = tables.core_of(one.pid, tmp_path)
    exe = os.readlink("/proc/%d/exe" % one.pid)
    session = start("probing break-py breaks.py:1", arguments=[exe, core] if start is debuggers.gdb
                    else ["-c", core, exe])
    assert "break-py needs a process, and this is a core file" in problem(session), session


@debuggers.needs_gdb
@debuggers.needs_gdbserver
def test_behind_a_gdbserver(one):
    with debuggers.gdbserver(one.pid) as address:
        session = debuggers.gdb(
            "target remote " + address, "probing break-py breaks.py:%d" % RESULT, ("stop",),
            "continue", ("locals",), "probing locals",
            arguments=[os.readlink("/proc/%d/exe" % one.pid)])
    assert "Python breakpoint 1, work" in session.part("stop"), session
    assert "argument number" in session.part("locals")
    one.goes_on()


# The end

@both
def test_a_debugger_that_left(start, each):
    """The process takes its breakpoints back by itself."""
    session = attached(start, each, "probing break-py breaks.py:%d" % RESULT, "continue")
    assert "Python breakpoint 1, work" in session.out, session
    each.goes_on()
    wait_until(each.has_none)
    session = attached(start, each, ("list",), "probing break-py")
    assert "no breakpoints of Python" in session.part("list"), session


class holding:
    """gdb, in which the process runs on after the command."""

    def __init__(self, process, command):
        self.process, self.command = process, command

    def __enter__(self):
        before = self.process.shared[0]
        self.gdb = subprocess.Popen(
            [*debuggers.gdb_alone(), "-batch", "-ex", "source %s" % (debuggers.PLUGIN / "probing-gdb.py"),
             "-ex", self.command, "-ex", "echo set\\n", "-ex", "continue", "-p", str(self.process.pid)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=debuggers.environment())
        said = ""
        for line in self.gdb.stdout:
            said += line
            if line == "set\n":
                break
        try:
            debuggers.skip_if_refused(said)
            assert re.search(r"^Python breakpoint \d+ at", said, re.M), said
        except BaseException:
            self.__exit__()
            raise
        wait_until(lambda: self.process.shared[0] > before + 2)
        return self.gdb

    def __exit__(self, *_):
        self.gdb.kill()
        self.gdb.communicate()


@debuggers.needs_gdb
def test_a_debugger_that_died(each):
    """Its own breakpoint stays in the process, and is never run into."""
    with holding(each, "probing break-py breaks.py:%d if ready" % RESULT) as gdb:
        gdb.kill()
        gdb.wait()
    assert pauses.nobody_traced(each.pid)
    each.shell("ready = True")
    each.goes_on()
    wait_until(each.has_none)
    each.goes_on()


@debuggers.needs_gdb
def test_a_debugger_that_died_and_a_condition_that_stays_false(each):
    with holding(each, "probing break-py breaks.py:%d if ready" % RESULT) as gdb:
        gdb.kill()
        gdb.wait()
    wait_until(each.has_none)
    each.goes_on()


@debuggers.needs_gdb
def test_a_debugger_that_died_and_a_line_that_is_not_reached(traced):
    """The part that slows all calls down is removed before the line is reached."""
    with holding(traced, "probing break-py breaks.py:%d" % line_of("return work(-1)")) as gdb:
        assert not traced.has_none()
        gdb.kill()
        gdb.wait()
    wait_until(traced.has_none)
    traced.goes_on()


@debuggers.needs_gdb
def test_the_agent_can_go(each):
    session = attached(debuggers.gdb, each, "probing break-py breaks.py:%d if 0" % RESULT,
                       "probing break-py breaks.py:%d" % VALUE, "continue")
    assert "Python breakpoint 2, numbers" in session.out, session
    done = subprocess.run([support.BINARY, "-p", str(each.pid), "eject"], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0 and b"reason" not in done.stdout, done
    with open("/proc/%d/maps" % each.pid) as maps:
        assert "libprobing-agent" not in maps.read(), done
    each.goes_on()
    assert each.has_none()


def ejected(process):
    """True if the agent could be ejected; one of its calls may be under way."""
    done = subprocess.run([support.BINARY, "-p", str(process.pid), "eject"], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done
    return "reason" not in done.stdout


@debuggers.needs_gdb
def test_the_agent_goes_while_its_lines_are_reached(busy):
    for _ in range(support.count(2, 40)):
        attached(debuggers.gdb, busy, "probing break-py breaks_busy.py:%d if ready" % BUSY_RESULT)
        wait_until(lambda: ejected(busy))


# Threads that run all the time

@debuggers.needs_gdb
@pytest.mark.every_interpreter
def test_frames_that_come_and_go(busy):
    """Without a GIL to protect frames, the agent reads none of them."""
    turns = support.count(10, 100)
    condition = "probing break-py breaks_busy.py:%d if ready"
    session = attached(debuggers.gdb, busy, *[condition % BUSY_RESULT] * turns, ("running",),
                       condition % line_of("shared[0] += 1", BUSY))
    assert "Python breakpoint %d at" % turns in session.out, session
    assert "in <module>" in session.part("running"), session
    assert not busy.interpreter.free_threaded or busy.shared[1] == 0


@debuggers.needs_gdb
def test_all_threads_see_that_the_debugger_died(busy):
    """One thread removes the breakpoints; nothing is raised in the others."""
    for _ in range(support.count(3, 50)):
        with holding(busy, "probing break-py breaks_busy.py:%d if ready" % BUSY_RESULT) as gdb:
            gdb.kill()
            gdb.wait()
        wait_until(busy.has_none)


# Where a thread may hold the GIL, it may run on only if nobody wanted the stop to be there.
INTERRUPT = ["python import os, signal, threading", "python PID = gdb.selected_inferior().pid",
             "python threading.Timer(0.01, os.kill, (PID, signal.SIGINT)).start()", "continue"]


@debuggers.needs_gdb
@pytest.mark.parametrize("lowest", [(3, 6), (3, 12)])
def test_running_it_again(lowest, tmp_path):
    """The breakpoint does not hinder the next process of the debugger, which has it as well."""
    shared = support.Shared()
    interpreter = next(i for i in VERSIONS if i.version >= lowest)
    asleep = "clock_nanosleep" if interpreter.version >= (3, 11) else "select"
    session = debuggers.gdb(
        "set breakpoint pending on", "tbreak " + asleep, "run", *INTERRUPT, ("set",),
        "probing break-py breaks.py:%d" % RESULT, ("stop",), "continue", "kill",
        "tbreak " + asleep, ("again",), "run", "probing break-py", "continue", "kill",
        arguments=["--args", interpreter.exe, PROGRAM, shared.path, tmp_path / "late"],
        env=interpreter.env)
    assert "Python breakpoint 1 at" in session.part("set"), session
    assert "Python breakpoint 1, work" in session.part("stop"), session
    assert "Cannot" not in session.err + session.out, session
    assert "Python breakpoint 1, work" in session.part("again"), session
    assert "breaks.py:%d in work; reached 1 time" % RESULT in session.part("again") or \
        "breaks.py:%d in work; reached 0 times" % RESULT in session.part("again"), session
    shared.close()


@debuggers.needs_gdb
def test_another_debugger_in_its_place(one):
    """debugpy or coverage may have some of the places: all others are taken."""
    if one.interpreter.version < (3, 12):
        pytest.skip("it has no sys.monitoring")
    one.shell("sys.monitoring.use_tool_id(4, 'theirs')")
    session = attached(debuggers.gdb, one, "probing break-py breaks.py:%d" % RESULT, ("stop",),
                       "continue")
    assert "Python breakpoint 1, work" in session.part("stop"), session
    one.shell("[sys.monitoring.use_tool_id(i, 'theirs') for i in (3, 5)]")
    wait_until(lambda: one.shell("sys.monitoring.get_tool(3)") == "'theirs'")
    session = attached(debuggers.gdb, one, "probing break-py breaks.py:%d" % RESULT)
    assert "sys.monitoring has no place left: theirs, theirs, theirs" in problem(session), session


@debuggers.needs_gdb
def test_a_child_does_not_stop(one):
    """It inherits the lines, but has no debugger."""
    one.shell("def forks():\n"
              "    child = os.fork()\n"
              "    if not child:\n"
              "        work(1)\n"
              "        os._exit(7)\n"
              "    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n")
    with holding(one, "probing break-py breaks.py:%d if number == 1" % RESULT):
        assert one.shell("forks()") == "7"
    one.goes_on()



@both
def test_logpoints_stay_when_the_debugger_leaves(start, each):
    session = attached(
        start, each, ("calls",), "probing trace --calls work", ("line",),
        "probing trace breaks.py:%d number, double" % RESULT, ("list",), "probing trace list",
        ("one",), "probing trace clear 1", "probing trace clear 7")
    assert "logpoint 1" in session.part("calls") and "logpoint 2" in session.part("line"), session
    assert "1  calls of work" in session.part("list") and "2  breaks.py:" in session.part("list")
    assert "1 removed" in session.part("one"), session
    assert problem(session) == "trace: there is no logpoint 7"
    each.goes_on()
    words = [support.BINARY, str(each.pid), "trace"]
    while b" hit 0 times" in subprocess.run(words + ["list"], stdout=subprocess.PIPE, check=True).stdout:
        assert each.alive()
    assert subprocess.run(words + ["clear"], stdout=subprocess.PIPE, check=True).stdout == b"1 removed\n"
    each.goes_on()
    assert each.has_none()

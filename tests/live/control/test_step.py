# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing step`: a paused program runs to the next line of a thread, and is paused again there."""
import json
import os
import re
import signal
import subprocess

import pytest

import agent
import faults
import pauses
import support
from environment import FAILED, NO_PROCESS, OK, TIMEOUT, UNSUPPORTED, USAGE
from pauses import Pause
from remote import Service
from test_break_py import TRACED

PROGRAM = support.HERE / "programs" / "stepped.py"
ALL = [each for each in support.INTERPRETERS if each.version >= (3, 6) and pauses.agent_holds(each)
       and not (each.debug_build and each.version < (3, 9))]
BEGINS = next(number for number, line in enumerate(PROGRAM.read_text().splitlines(), 1)
              if "first = leaf(1)" in line)


ONES = [each for each in ALL if not each.debug_build and each.version in ((3, 6), (3, 9), (3, 11), (3, 12))
        or each is ALL[-1] or each.free_threaded]
on_all = pytest.mark.parametrize("interpreter", ALL, ids=repr)
on_ones = pytest.mark.parametrize("interpreter", ONES, ids=repr)
# The interpreter's monitoring tools: their names, and events of all reachable functions.
MONITORED = """
import gc, sys
monitoring = sys.monitoring
found = [monitoring.get_tool(number) for number in range(6) if monitoring.get_tool(number)]
found += monitoring._all_events()
for number in (3, 4, 5):
    if monitoring.get_tool(number) is None:
        monitoring.use_tool_id(number, "test")
        found += [each for each in gc.get_objects() if type(each) is type(lambda: 0) and
                  monitoring.get_local_events(number, each.__code__)]
        monitoring.free_tool_id(number)
found
"""


@pytest.fixture
def stepped(target, shared, newest):
    return target("stepped.py", shared.path)


@pytest.fixture
def case(target):
    return lambda interpreter, *words: target("step_cases.py", *words, interpreter=interpreter)


@pytest.fixture
def clean(probing):
    """Nothing of a step is left in the interpreter, and no thread is paused."""
    def clean(interpreter, pid):
        code = TRACED if interpreter.version < (3, 12) else MONITORED
        done = probing(pid, "eval", code)
        assert (done.code, done.out) == (OK, "[]\n"), done
        agent.wait_until(lambda: pauses.nobody_traced(pid))

    return clean


def stepping(pid, *options):
    """The command, running."""
    return subprocess.Popen([support.BINARY, "-t", str(pid), "step", *options],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def wait_until_runs_on(pid, probing):
    """A step has begun, as the agent says."""
    agent.wait_until(lambda: json.loads(probing(pid, "agent", "status", "--json").out)["running"] == 2)


@pytest.fixture
def step(probing):
    """Makes a step; (function, line) of the thread's new place."""
    def step(pid, *options):
        done = probing(pid, "step", "--json", *options)
        assert done.code == OK, done
        told = json.loads(done.out)
        assert told["pid"] == pid, told
        return told["func"], told["line"]

    return step


def events(interpreter, shared):
    """Events of one turn by the interpreter's own tracing."""
    shared[0] = 0
    out = subprocess.run([interpreter.exe, str(PROGRAM), shared.path, "trace"], env=interpreter.env,
                         stdout=subprocess.PIPE, check=True).stdout.decode()
    return json.loads(out)


def go(told, at, way):
    """Where a step from the line event @at leads to."""
    _, limit, caller, _, _ = told[at]
    out = way == "--out"
    for place in range(at + 1, len(told)):
        event, frame, back, _, _ = told[place]
        if event == "return" and frame == limit:
            limit, out = back, False
        elif event == "line" and (not way or (frame == limit and not out)):
            return place
    return None


def to_begin(step, pid):
    """To where the events begin."""
    while step(pid) != ("turn", BEGINS):
        pass


@pytest.mark.parametrize("way", [None, "--over", "--out"])
@pytest.mark.parametrize("interpreter", ALL, ids=repr)
def test_goes_as_the_interpreter_traces(interpreter, way, target, shared, step, clean):
    told = events(interpreter, shared)
    process = target("stepped.py", shared.path, interpreter=interpreter)
    options = [way] if way else []
    with Pause(process.pid) as pause:
        to_begin(step, process.pid)
        at, made = 0, 0
        while at is not None:
            # With --out: each third step leaves a function that was entered.
            now = options if way != "--out" or made % 3 == 2 else []
            place = go(told, at, now[0] if now else None)
            if place is None:
                break
            assert step(process.pid, *now) == tuple(told[place][3:]), (told, at, now)
            at, made = place, made + 1
        assert made > 8
        pause.interrupt()
    pauses.wait_until_runs(shared)
    clean(interpreter, process.pid)


def test_says_where_it_stands(stepped, shared, probing):
    with Pause(stepped.pid):
        for _ in range(100):
            done = probing(stepped.pid, "step")
            found = re.match(r"(\d+) stopped in turn at stepped.py:(\d+)\n    (.*)\n", done.out)
            if found:
                break
        assert int(found.group(1)) == stepped.pid, done
        assert found.group(3) == PROGRAM.read_text().splitlines()[int(found.group(2)) - 1].strip()
        before = pauses.total(shared)
        dump = support.dump(stepped.pid)
        frame = support.python_frames(dump["threads"][0])[0]
        assert (frame["func"], frame["line"]) == ("turn", int(found.group(2))), frame
        assert pauses.total(shared) == before


@on_ones
def test_everything_stands_but_for_the_step(interpreter, target, shared, step, probing):
    process = target("stepped.py", shared.path, interpreter=interpreter)
    with Pause(process.pid):
        for _ in range(5):
            before = pauses.total(shared)
            step(process.pid)
            assert pauses.total(shared) >= before
            before = pauses.total(shared)
            assert probing(process.pid, "eval", "sum(shared[:16])").out == "%d\n" % before
            assert pauses.total(shared) == before


@on_ones
def test_another_thread(interpreter, target, shared, step):
    process = target("stepped.py", shared.path, interpreter=interpreter)
    with Pause(process.pid):
        tid, = [each["tid"] for each in support.dump(process.pid)["threads"]
                if any(frame["func"] == "count" for frame in support.python_frames(each))]
        turns = shared[0]
        lines = {step(process.pid, "--tid", str(tid))[1] for _ in range(6)}
        of = [number for number, line in enumerate(PROGRAM.read_text().splitlines(), 1)
              if "shared[1] += 1" in line]
        assert set(of) <= lines <= {of[0] - 1, of[0]}, lines
        counted = shared[1]
        step(process.pid, "--tid", str(tid), "--over")
        assert shared[1] - counted <= 1 and shared[0] >= turns


@on_ones
def test_no_line_in_time(interpreter, case, probing, clean):
    process = case(interpreter, "reads")
    support.wait_for_sleep(process.pid, "pipe_read", tid=process.pid)
    with Pause(process.pid) as pause:
        done = probing(process.pid, "step", "--timeout", "200ms")
        assert done.code == TIMEOUT and done.out == "", done
        assert "reached no such line within 0.2 s" in done.err, done
        assert "it is paused again: thread %d" % process.pid in done.err and "reads" in done.err, done
        clean(interpreter, process.pid)
        process.send(b"one\n")
        done = probing(process.pid, "step", "--over")
        assert done.code == OK and "in reads at step_cases.py" in done.out, done
        pause.interrupt()
    assert process.line() == "read one"
    clean(interpreter, process.pid)


@on_ones
def test_a_tracer_that_comes_meanwhile(interpreter, case, probing):
    """Before 3.12 it replaces our trace function, which is reported."""
    process = case(interpreter, "retraces")
    support.wait_for_sleep(process.pid, "pipe_read", tid=process.pid)
    with Pause(process.pid) as pause:
        process.send(b"go\n")
        done = probing(process.pid, "step", "--over")
        assert done.code == OK and "in retraces at step_cases.py" in done.out, done
        # Where no line event comes, the step times out.
        done = probing(process.pid, "step", "--over", "--timeout", "60s" if interpreter.version >= (3, 12) else "500ms")
        if interpreter.version >= (3, 12):
            assert done.code == OK and "in retraces at step_cases.py" in done.out, done
        else:
            assert done.code == TIMEOUT and "called sys.settrace() meanwhile" in done.err, done
        done = probing(process.pid, "step")
        assert done.code == UNSUPPORTED and TRACER in done.err, done
        pause.interrupt()
    assert process.line() == "ready"


TRACER = "the program has a tracer of its own"
REFUSALS = [("traced", (3, 6), (3, 99), TRACER), ("covered", (3, 12), (3, 99), TRACER),
            ("debugged", (3, 12), (3, 99), TRACER), ("full", (3, 12), (3, 99), "no place left"),
            ("audited", (3, 8), (3, 11), "hooks for audits")]


@pytest.mark.parametrize("interpreter, name, says", [
    pytest.param(each, name, says, id="%s-%s" % (each, name)) for name, first, last, says in REFUSALS
    for each in ONES if first <= each.version <= last])
def test_refusals(interpreter, name, says, case, probing):
    process = case(interpreter, name)
    with Pause(process.pid):
        for _ in range(2):
            done = probing(process.pid, "step")
            assert done.code == UNSUPPORTED and says in done.err, done
        assert probing(process.pid, "step", "--time", "10ms").code == OK
        traced = probing(process.pid, "eval", "__import__('sys').gettrace()")
        assert traced.code == OK, traced


def test_words(stepped, probing):
    done = probing(stepped.pid, "step", "--over", "--out")
    assert done.code == USAGE, done
    done = probing(stepped.pid, "step", "--time", "1s", "--over")
    assert done.code == USAGE, done
    with Pause(stepped.pid):
        done = probing(stepped.pid, "step", "--tid", "1")
        assert done.code == NO_PROCESS and "has no Python thread 1" in done.err, done
        agents = next(tid for tid, name in agent.tasks(stepped.pid).items() if name == "probing-agent")
        done = probing(stepped.pid, "step", "--tid", str(agents))
        assert done.code == NO_PROCESS and "no Python thread" in done.err, done
    done = probing(stepped.pid, "step")
    assert done.code == FAILED and "not paused" in done.err, done


@on_ones
def test_whose_client_dies_stands_again(interpreter, case, probing, clean):
    process = case(interpreter, "sleeps")
    with Pause(process.pid) as pause:
        with stepping(process.pid, "--timeout", "1h") as client:
            wait_until_runs_on(process.pid, probing)
            client.kill()
        agent.wait_until(lambda: probing(process.pid, "eval", "1").out == "1\n")
        clean(interpreter, process.pid)
        pause.interrupt()


@pytest.mark.parametrize("how", ["killed", "interrupted", "resumed"])
@on_ones
def test_the_pause_ends_meanwhile(interpreter, how, case, probing, clean):
    process = case(interpreter, "reads")
    support.wait_for_sleep(process.pid, "pipe_read", tid=process.pid)
    with Pause(process.pid) as pause:
        with stepping(process.pid, "--timeout", "1h") as client:
            wait_until_runs_on(process.pid, probing)
            if how == "killed":
                pause.kill()
            elif how == "interrupted":
                pause.interrupt()
            else:
                assert probing(process.pid, "resume").code == OK
            _, err = client.communicate(timeout=60)
            assert client.returncode == FAILED and re.search(
                b"the pause has ended|is not paused", err), err
    process.send(b"one\n")
    assert process.line() == "read one"
    clean(interpreter, process.pid)


def test_no_longer_than_the_pause_may_last(newest, case, probing, clean):
    process = case(newest, "sleeps")
    with Pause(process.pid, "--max", "2s") as pause:
        with stepping(process.pid, "--timeout", "1h") as client:
            assert pause.end()["reason"] == "deadline"
            client.communicate(timeout=60)
            assert client.returncode == FAILED
    clean(newest, process.pid)


@pytest.mark.parametrize("name", ["forks", "spawns"])
@on_ones
def test_children_are_left_alone(interpreter, name, case, step, clean):
    process = case(interpreter, name)
    with Pause(process.pid, "--within", "60s") as pause:  # it begins processes all the time
        for number in range(30):
            step(process.pid, *[["--over"], []][name == "forks" and number % 2])
        pause.interrupt()
    for _ in range(3):
        assert process.line() == "child 0"
    clean(interpreter, process.pid)


@on_ones
def test_objects_live_as_long_as_ever(interpreter, case, step):
    process = case(interpreter, "frees")
    with Pause(process.pid) as pause:
        for way in ([], ["--over"], ["--out"]) * 10:
            if way != ["--out"]:
                step(process.pid, *way)
        pause.interrupt()
    assert process.alive(), process.errors()


def thread_in(pid, function):
    """The thread that has come to that function."""
    found = []

    def came():
        found.extend(each["tid"] for each in support.dump(pid)["threads"]
                     if any(frame["func"] == function for frame in support.python_frames(each)))
        return found

    agent.wait_until(came)
    return found[0]


def step_until_it_fails(probing, pid, *options):
    """The message of a step that reaches no line, long before its timeout."""
    into = 0
    while True:
        # Not through all modules imported to print an exception.
        done = probing(pid, "step", "--timeout", "1h", *options, *["--out"] * (into > 5))
        into += 1
        if done.code != OK:
            return done


@pytest.mark.parametrize("how", ["returns", "raises", "exits", None], ids=lambda how: how or "of_c")
@on_all
def test_the_thread_ends(interpreter, how, case, probing, clean):
    process = case(interpreter, *["thread_ends", how] if how else ["thread_of_c_ends"])
    tid = thread_in(process.pid, how or "returns")
    with Pause(process.pid) as pause:
        process.send(b"x\n")
        done = step_until_it_fails(probing, process.pid, "--tid", str(tid))
        assert done.code == NO_PROCESS and re.search(
            "thread %d .*ended before it reached such a line" % tid, done.err), done
        assert re.search(r"it was last seen in \S+ at .+:\d+; process %d is paused again" %
                         process.pid, done.err), done
        assert probing(process.pid, "eval", "1").out == "1\n"
        done = probing(process.pid, "step", "--tid", str(tid))
        assert done.code == NO_PROCESS and "no Python thread" in done.err, done
        pause.interrupt()
    clean(interpreter, process.pid)


@pytest.mark.parametrize("interpreter", [each for each in ALL if each.has_ctypes], ids=repr)
def test_the_first_thread_ends(interpreter, case, probing):
    """It stays listed as a zombie."""
    process = case(interpreter, "first_thread_ends")
    with Pause(process.pid) as pause:
        process.send(b"x\n")
        done = step_until_it_fails(probing, process.pid)
        assert done.code == NO_PROCESS and "thread %d (MainThread) ended" % process.pid in done.err, done
        pause.interrupt()


@pytest.mark.parametrize("how", ["returns", "raises", "exits", "ends_all"])
@on_all
def test_the_program_ends(interpreter, how, case, probing):
    """By itself, in spite of the step; the last lines may be of functions called at exit."""
    process = case(interpreter, "program_ends", how)
    with Pause(process.pid) as pause:
        process.send(b"x\n")
        done = step_until_it_fails(probing, process.pid)
        assert ((done.code, "process %d has ended" % process.pid in done.err) == (NO_PROCESS, True) or
                (done.code, "since the interpreter does" in done.err) == (FAILED, True)), done
        pause.process.communicate(timeout=60)
    assert process.wait()[0] == (how == "raises"), done


@on_all
def test_another_thread_ends_the_program(interpreter, case, probing):
    process = case(interpreter, "thread_ends", "ends_all")
    with Pause(process.pid) as pause:
        with stepping(process.pid, "--timeout", "1h") as client:
            process.send(b"x\n")
            _, err = client.communicate(timeout=60)
        assert client.returncode == NO_PROCESS and b"process %d has ended" % process.pid in err, err
        pause.process.communicate(timeout=60)
    assert process.wait() == (0, "")


@on_ones
def test_the_agent_can_be_unloaded(interpreter, target, shared, probing, step):
    process = target("stepped.py", shared.path, interpreter=interpreter)
    with Pause(process.pid) as pause:
        step(process.pid)
        pause.interrupt()
    done = probing(process.pid, "eject")
    assert done.code == OK, done
    pauses.wait_until_runs(shared)


def test_from_elsewhere(stepped, shared):
    with Service(stepped.pid) as service:
        with Pause(stepped.pid):
            done = service.run("step", "--over", "--timeout", "10s")
            assert done.returncode == OK and b"stopped in " in done.stdout, done


@pytest.mark.skipif(not faults.STEPS, reason="no build with fault steps: $PROBING_FAULT_STEPS")
@on_ones
def test_whoever_pauses_is_killed_at_each_step(interpreter, target, shared, clean):
    process = target("stepped.py", shared.path, interpreter=interpreter)
    for number in range(1, 1000):
        env = {"PROBING_FAULT_STEP": str(number), "PROBING_FAULT_SIGNAL": str(int(signal.SIGKILL))}
        with Pause(process.pid, wait=False, env=env, binary=faults.STEPS) as pause:
            if pause.process.stdout.readline():
                with stepping(process.pid) as client:
                    client.communicate(timeout=60)
            if pause.process.poll() is None:
                pause.process.send_signal(signal.SIGINT)
            err = pause.process.communicate(timeout=120)[1]
            if not pause.process.returncode:
                break
        pauses.wait_until_runs(shared)
        assert pauses.nobody_traced(process.pid), err
    assert number > 5
    clean(interpreter, process.pid)

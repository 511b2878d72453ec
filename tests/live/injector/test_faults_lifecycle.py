# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault matrix: targets that begin, fork, become other programs and end while they are injected,
and libraries and commands that behave badly."""
import os
import random
import signal
import subprocess
import time

import pytest

import environment
import faults
import support
from environment import FAILED, NO_PROCESS, OK, PERMISSION, TIMEOUT, UNSUPPORTED
from faults import SLEEPERS, STEPS, Cell, Checked, Look, run_cell, wait_until_same

needs_steps = pytest.mark.skipif(
    not STEPS, reason="no build with fault steps: $PROBING_FAULT_STEPS")


@pytest.mark.parametrize("kind", ["fork", "vfork", "spawn"])
def test_children(build, kind):
    program = build.program("fault_races")
    run_cell("children all the time: " + kind, build, lambda: Checked(program, kind),
             workers=SLEEPERS).assert_loaded()


def test_thread_churn_without_the_first(build):
    program = build.program("fault_races")

    def start():
        target = Checked(program, "churn")
        environment.wait_until(lambda: target.shared[target.ROUNDS] > 1000)
        return target

    run_cell("first thread gone, others come and go", build, start,
             threads=False).assert_loaded()


def assert_unharmed(target, before):
    """The target runs on, not stopped, not traced, with its descriptors and signals unchanged."""
    target.wait_for_progress()
    wait_until_same(before, threads=False)
    assert not target.shared[target.ERRORS], target.shared[target.DETAIL]


def look_between_execs(target):
    """Each program has the shared file open for a moment, when it begins."""
    while True:
        look = faults.look_settled(target.pid)
        if not any(target.shared.path in each for each in look.descriptors):
            return look


def inject_what_may_vanish(cell, build, target):
    target.wait_for_progress()
    before, began = look_between_execs(target), time.monotonic()
    code, out, err = faults.inject(target.pid, build.library(), "--symbol", "fault_touch")
    cell.note(code, out, err, time.monotonic() - began)
    assert code in (OK, FAILED, TIMEOUT, NO_PROCESS) or "has no memory" in err, (code, err)
    assert_unharmed(target, before)


def test_exec_all_the_time(build):
    """The next program has no loaded library; it only has to run on."""
    program = build.program("fault_races")
    run_cell("exec all the time", build, lambda: Checked(program, "exec"),
             each=inject_what_may_vanish)


class Ending(Checked):
    """Comes to its end in the course of the test."""

    def finish(self):
        """The test has seen its end."""


def steps(cell, build, start, number, look):
    """Sends @number to a target at each step of an injection, each time to a new one."""
    def one(step):
        """Again, if the machine was so busy that the command stood for seconds, as it says then."""
        for _ in range(3):
            there, err = once(step)
            if "this command was stopped for seconds" not in err:
                break
        return there

    def once(step):
        with start() as target:
            target.wait_for_progress()
            before, began = faults.look_settled(target.pid), time.monotonic()
            said = faults.at_step(step, target.pid, build, number, target.pid)
            if said is None:
                return False, ""
            code, err = said
            if "this command was stopped for seconds" in err:
                return True, err
            assert code in (OK, FAILED, TIMEOUT, NO_PROCESS), (code, err)
            assert time.monotonic() - began < faults.REFUSAL_SECONDS, (step, code, err)
            cell.run("loaded" if code == OK else "refused")
            try:
                look(target, before, code)
            except AssertionError as error:
                raise AssertionError("step %d: %s\n%s" % (step, error, err)) from error
            return True, err

    first, there = 1, [True]
    while all(there):
        assert first < faults.MOST_STEPS, "steps without end"
        there = faults.in_parallel(one, range(first, first + SLEEPERS), SLEEPERS)
        first += SLEEPERS
    assert first > 20
    cell.passed()


@needs_steps
@pytest.mark.parametrize("kind", ["exec", "fork", "vfork", "spawn", "thread"])
def test_race_at_each_step(build, kind):
    """Another thread acts while one is hijacked."""
    program = build.program("fault_races")
    cell = Cell("at each step, another thread: " + kind)

    def look(target, before, code):
        assert kind == "exec" or code == OK
        assert_unharmed(target, before)
        environment.wait_until(lambda: target.shared[target.RECEIVED] == 1)

    steps(cell, build, lambda: Checked(program, "at-" + kind), signal.SIGUSR1, look)


@needs_steps
def test_a_thread_whose_number_another_one_has(build):
    """A thread that calls exec() gets the number of the first thread, which we trace; no other does."""
    program = build.program("fault_races")

    def one(_):
        with Checked(program, "at-exec") as target:
            target.wait_for_progress()
            said = faults.at_step(2, target.pid, build, signal.SIGUSR1, target.pid)
            assert said and "is being traced" not in said[1], said

    faults.in_parallel(one, range(support.count(300, 3000)), SLEEPERS)


@needs_steps
@pytest.mark.parametrize("name, kind, number, status", [
    ("exit()", "at-exit", signal.SIGUSR1, 7), ("SIGKILL", "at-exit", signal.SIGKILL, -9),
    ("SIGTERM", "at-thread", signal.SIGTERM, -15)], ids=["exit", "kill", "term"])
def test_end_at_each_step(build, name, kind, number, status):
    """It ends as it would have, and the command says that it has."""
    program = build.program("fault_races")
    cell = Cell("at each step, the target ends: " + name)

    def look(target, _, code):
        assert code in (OK, NO_PROCESS), code
        assert target.target.wait()[0] == status

    steps(cell, build, lambda: Ending(program, kind), number, look)


@needs_steps
def test_stopped_at_each_step(build):
    """It stays stopped until it gets SIGCONT, and then runs on."""
    program = build.program("fault_races")
    cell = Cell("at each step, the target is stopped: SIGSTOP")

    def look(target, before, _):
        environment.wait_until(lambda: support.thread_status(target.pid)["State"][0] == "T", 60)
        os.kill(target.pid, signal.SIGCONT)
        assert_unharmed(target, before)

    steps(cell, build, lambda: Checked(program, "at-thread"), signal.SIGSTOP, look)


def test_ends_at_any_moment(build):
    program = build.program("fault_races")

    def end_once(cell, build, target):
        with Ending(program, "at-exit") as target:
            target.wait_for_progress()
            command = subprocess.Popen(
                [support.BINARY, "-t", str(target.pid), "inject", "-L", build.library()],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(random.uniform(0, 0.02))
            os.kill(target.pid, signal.SIGUSR1)
            out, err = command.communicate(timeout=60)
            ended = command.returncode == UNSUPPORTED and b"has ended: it " in err
            assert ended or command.returncode in (OK, NO_PROCESS), (command.returncode, err)
            assert target.target.wait()[0] == 7
            cell.run("loaded" if command.returncode == OK else "refused")

    cell = Cell("the target ends at any moment")
    for _ in range(faults.RUNS):
        end_once(cell, build, None)
    cell.passed()


@pytest.mark.parametrize("flag, what", [
    ("-DDLOPEN", "calls dlopen()"), ("-DTHREAD", "runs a thread")], ids=["dlopen", "thread"])
def test_constructors(build, flag, what):
    program = build.program("fault_heap")
    run_cell("constructor %s" % what, build, lambda: Checked(program, "heap", 2),
             each=lambda *about: faults.inject_once(*about, library=build.library(flag))
             ).assert_loaded()


def test_constructor_crashes(build):
    """That is the library's doing, and is called so."""
    program = build.program("fault_places")
    cell = Cell("constructor crashes (and the target by it)")
    for _ in range(faults.RUNS):
        with Ending(program, "idle") as target:
            began = time.monotonic()
            code, out, err = faults.inject(target.pid, build.library("-DCRASH"))
            cell.note(code, out, err, time.monotonic() - began)
            assert code == NO_PROCESS and "code of the library" in err, (code, err)
            assert target.target.wait()[0] == -signal.SIGSEGV
    cell.passed()


def test_constructor_hangs(build):
    """The target runs on; only the thread made for the library hangs."""
    program = build.program("fault_places")

    def hang_once(cell, build, _):
        with Ending(program, "idle") as target:
            began = time.monotonic()
            code, out, err = faults.inject(target.pid, build.library("-DHANG"), "--timeout", "1.5")
            cell.note(code, out, err, time.monotonic() - began)
            assert code == TIMEOUT and "is still loading" in err, (code, err)
            look = Look(target.pid)
            assert len(look.threads) == 2 and not look.traced and not look.stopped
            target.wait_for_progress()

    cell = Cell("constructor hangs")
    faults.in_parallel(lambda _: hang_once(cell, build, None), range(faults.RUNS), SLEEPERS)
    cell.passed()


def together(pid, libraries):
    """Commands that inject at the same time: (code, stderr) of each."""
    commands = [subprocess.Popen(
        [support.BINARY, "-t", str(pid), "inject", "-L", library, "--symbol", "fault_touch"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for library in libraries]
    return [(command.communicate(timeout=60)[1].decode(), command.returncode)[::-1]
            for command in commands]


@pytest.mark.parametrize("same", [False, True], ids=["other", "same"])
def test_two_at_once(build, same):
    """Each loads its library; the later one waits for the other."""
    program = build.program("fault_heap")

    def twice(cell, build, target):
        target.wait_for_progress()
        before, first = faults.look_settled(target.pid), build.library()
        libraries = [first, first if same else build.library()]
        for code, err in together(target.pid, libraries):
            cell.run("loaded" if code == OK else "refused", err)
            assert code in (OK, TIMEOUT, PERMISSION), (code, err)
        assert sum(" r-xp " in line and first.name in line
                   for line in faults.maps(target.pid).split("\n")) <= 1
        wait_until_same(before)
        target.wait_for_progress()

    run_cell("two commands at once, %s library" % ("the same" if same else "each its"), build,
             lambda: Checked(program, "heap", 2), runs=2 * faults.RUNS, each=twice).assert_loaded()


def test_loaded_already(build):
    program = build.program("fault_places")
    cell = Cell("loaded already")
    with Checked(program, "idle") as target:
        library = build.library()
        for turn in range(faults.RUNS + 1):
            began = time.monotonic()
            code, out, err = faults.inject(target.pid, library)
            assert code == OK and out["already"] == (turn > 0), err
            if turn:
                cell.note(code, out, err, time.monotonic() - began)
        target.wait_for_progress()
    cell.passed()

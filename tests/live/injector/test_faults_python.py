# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault matrix: Python, in all states of its life. A library is loaded, and the agent evaluates code;
where it cannot, it says why, and the program runs on."""
import random
import subprocess
import time

import pytest

import environment
import faults
import support
from environment import FAILED, NO_PROCESS, OK, TIMEOUT, UNSUPPORTED
from faults import Cell, Checked, run_cell, wait_until_same

SCRIPT = faults.PROGRAMS / "fault_python.py"


def start(interpreter, kind):
    return Checked(SCRIPT, kind, before=[interpreter.exe], env=interpreter.env)


def command(pid, *words):
    """The command: exit code, stdout, stderr, seconds."""
    began = time.monotonic()
    done = subprocess.run([support.BINARY, str(pid), *words], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False)
    return (done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"),
            time.monotonic() - began)


def evaluate_once(cell, build, target, refusals=(), words=(), settled=True):
    """The agent is loaded, evaluates, and is stopped; after that only its library is left."""
    target.wait_for_progress()
    before = faults.look_settled(target.pid)
    # Where it has to succeed, it may take long beside others.
    code, out, err, took = command(target.pid, "eval", "--timeout", "2" if refusals else "40", "20 + 3")
    cell.note(code, {}, err, took)
    assert (code, out) == (OK, "23\n") or code in refusals, (code, out, err)
    assert not code or all(word in err for word in words), err
    stopped = command(target.pid, "agent", "stop")
    assert stopped[0] == OK or code, stopped
    if settled:
        wait_until_same(before)
    target.wait_for_progress()
    assert not target.shared[target.ERRORS], target.shared[target.DETAIL]


# States are tested on every version in the long form, on some in the short one.
VERSIONS = support.one_per_version()
SOME = (VERSIONS[1::4] or VERSIONS) if faults.RUNS <= 10 else VERSIONS
SHARE = -(-faults.RUNS // len(SOME))  # of the runs of a cell, for each version
EACH = pytest.mark.parametrize("interpreter", SOME, ids=repr)


@pytest.mark.parametrize("kind", ["idle", "busy"])
def test_every_interpreter(build, interpreter, kind):
    runs = 2 if faults.RUNS <= 10 else faults.RUNS
    run_cell("%s, %s: library" % (interpreter, kind), build, lambda: start(interpreter, kind),
             runs=runs).assert_loaded()
    run_cell("%s, %s: agent and eval" % (interpreter, kind), build,
             lambda: start(interpreter, kind), runs=runs, each=evaluate_once).assert_loaded()


@pytest.mark.parametrize("kind, what", [
    ("collect", "collects garbage"), ("collected", "in a destructor, in a collection"),
    ("atexit", "in an exit function, with a daemon thread")])
@EACH
def test_states(build, interpreter, kind, what):
    run_cell("python %s: library" % what, build, lambda: start(interpreter, kind),
             runs=SHARE).assert_loaded()
    run_cell("python %s: agent and eval" % what, build, lambda: start(interpreter, kind),
             runs=SHARE, each=evaluate_once).assert_loaded()


@EACH
def test_finalizing(build, interpreter):
    """The interpreter ends a thread that then wants the GIL, or lets it hang: the agent does not try."""
    run_cell("python finalizing: library", build, lambda: start(interpreter, "ending"),
             runs=SHARE).assert_loaded()
    run_cell("python finalizing: agent and eval", build, lambda: start(interpreter, "ending"),
             runs=SHARE, each=evaluate_once, refusals=(FAILED, UNSUPPORTED, TIMEOUT))


class Holder(Checked):
    """Holds the GIL until it is released by the test."""

    def wait_for_progress(self):
        """It makes none."""
        assert self.target.alive()

    def finish(self):
        self.shared[self.STOP] = 1
        self.target.send(b"x" * 10)
        super().finish()


@EACH
def test_gil_held(build, interpreter):
    if not interpreter.has_ctypes:
        pytest.skip("needs ctypes")

    def hold():
        return Holder(SCRIPT, "hold", before=[interpreter.exe], env=interpreter.env)

    def refuse_once(cell, build, target):
        code, out, err, took = command(target.pid, "eval", "--timeout", "0.3", "20 + 3")
        cell.note(code, {}, err, took)
        assert code == TIMEOUT and "the interpreter was not free within 0.3 s" in err, (code, err)

    run_cell("python with the GIL held in C: library", build, hold, runs=SHARE).assert_loaded()
    run_cell("python with the GIL held in C: agent and eval", build, hold, runs=SHARE,
             each=refuse_once).assert_refused()


def embed(build, interpreter, kind):
    program, env = environment.embed(interpreter, "fault_embed.c")
    return lambda: Checked(program, kind, env=env)


@EACH
def test_before_initialisation(build, interpreter):
    """There is nothing yet that could evaluate; once there is, it does."""
    begin = embed(build, interpreter, "before")
    name = "python not initialised yet"

    def twice(cell, build, target):
        evaluate_once(cell, build, target, (FAILED, UNSUPPORTED, TIMEOUT), ("initiali",))
        target.shared[target.SENT] = 1
        target.wait_for_progress()
        code, out, err, _ = command(target.pid, "eval", "--timeout", "40", "20 + 3")
        assert (code, out) == (OK, "23\n"), (code, out, err)
        command(target.pid, "agent", "stop")

    run_cell(name + ": library", build, begin, runs=SHARE).assert_loaded()
    cell = Cell(name + ": agent and eval")
    for _ in range(SHARE):
        with begin() as target:
            twice(cell, build, target)
    cell.assert_refused()
    cell.passed()


@EACH
def test_subinterpreters(build, interpreter):
    begin = embed(build, interpreter, "interpreters")
    run_cell("python with three interpreters: library", build, begin, runs=SHARE).assert_loaded()
    run_cell("python with three interpreters: agent and eval", build, begin, runs=SHARE,
             each=evaluate_once).assert_loaded()


@EACH
def test_initialised_again_and_again(build, interpreter):
    """The interpreter starts and ends under the reader, and opens files of its own."""
    begin = embed(build, interpreter, "again")
    name = "python initialised again and again"
    run_cell(name + ": library", build, begin, runs=SHARE, settled=False).assert_loaded()
    run_cell(name + ": agent and eval", build, begin, runs=SHARE, each=evaluate_once,
             refusals=(FAILED, UNSUPPORTED, TIMEOUT, NO_PROCESS), settled=False)


ENDLESS = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.001)"


@EACH
def test_code_that_runs_when_python_ends(build, interpreter):
    """It is interrupted, so that the interpreter may be started again; its client gets the reason."""
    cell = Cell("python initialised again and again: code that does not end")
    with embed(build, interpreter, "again")() as target:
        interrupted = 0
        while interrupted < SHARE:
            target.wait_for_progress()
            code, out, err, _ = command(target.pid, "eval", "--timeout", "20", ENDLESS)
            assert code not in (OK, TIMEOUT), (code, out, err)
            interrupted += out == "begun\n"
            assert not out or "interrupted: Python is shutting down" in err, (out, err)
            cell.run("loaded" if out else "refused", err)
            target.wait_for_progress()
    cell.passed()


@EACH
@pytest.mark.parametrize("what", ["library", "agent and eval"])
def test_first_milliseconds(build, interpreter, what):
    """Caught right after its exec and later; it starts undisturbed."""
    cell = Cell("python in its first milliseconds: " + what)

    def one(_):
        with support.Program([interpreter.exe, "-c", "import os; print('ready', flush=True); "
                              "os.read(0, 1); print('done')"], env=interpreter.env) as target:
            time.sleep(random.uniform(0, 0.03))
            words = ["eval", "--timeout", "1", "20 + 3"] if "eval" in what else [
                "inject", "--library", str(build.library())]
            code, _, err, took = command(target.pid, *words)
            cell.note(code, {}, err, took)
            assert code in (OK, FAILED, UNSUPPORTED, TIMEOUT), (code, err)
            assert target.line() == "ready"
            look = faults.Look(target.pid)
            assert not look.traced and not look.stopped
            target.send(b"x")
            assert target.line() == "done"
            assert target.wait()[0] == 0

    faults.in_parallel(one, range(SHARE), 1)
    cell.passed()

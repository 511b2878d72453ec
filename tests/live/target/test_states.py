# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that start, end, are stopped, are traced, start threads all the time, or fork."""
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import time

import pytest

import environment
import support
from environment import (FAILED, NO_PROCESS, OK, ONE_EACH, PERMISSION, PROGRAMS, SCRIPT,
                         UNSUPPORTED, Started, assert_read, assert_untouched, process_state, python,
                         wait_until)

EACH = pytest.mark.parametrize("interpreter", support.INTERPRETERS, ids=repr)
# The system call of time.sleep(), and its name in the kernel after an interruption by a stop.
SLEEPS = ("clock_nanosleep", "pselect6", "select", "restart_syscall")
MODES = [(), ("--nonblocking",), ("--freeze",), ("--native", "--locals")]


@pytest.fixture
def read(probing):
    """read(PID, *options): the dump, its warnings included."""

    def read_it(pid, *options):
        result = probing("-p", pid, "debug", "--dump", "--json", *options)
        assert result.code == OK, result
        return json.loads(result.out)

    return read_it


def busy_target(interpreter, **options):
    return Started([interpreter.exe, SCRIPT], env=dict(interpreter.env, BUSY="1"), **options)


def python_threads(found):
    """Without those that only --native shows."""
    return dict(found, threads=[t for t in found["threads"] if t["interpreter"] is not None])


def assert_complete(thread):
    """Of a stopped thread, a few registers are known: enough for most native frames."""
    assert thread["error"] is None or thread["error"].startswith("native frames end early"), thread


# Stopped

@ONE_EACH
def test_stopped_by_a_signal(interpreter, read):
    """It stays stopped, nothing of it is lost, and it continues undisturbed."""
    with busy_target(interpreter) as process:
        os.kill(process.python, signal.SIGSTOP)
        wait_until(lambda: {s for s, _ in process_state(process.python).values()} == {"T"})
        for options in MODES:
            found = read(process.python, *options)
            threads = {t["name"]: t for t in python_threads(found)["threads"]}
            assert not found["warnings"] and found["pause_us"] == 0, found
            assert sorted(threads) == ["MainThread", "waiter", "worker"]
            for thread in threads.values():
                assert thread["state"] == "stopped" and thread["read"] == "idle", thread
                assert_complete(thread)
            assert python(threads["MainThread"])[:2] == ["rest", "main"]
            assert python(threads["waiter"])[0] == "wait_for"
            assert python(threads["worker"])[0] == "compute"
            assert set(process_state(process.python).values()) == {("T", "0")}
        os.kill(process.python, signal.SIGCONT)
        wait_until(lambda: "R" in {s for s, _ in process_state(process.python).values()})
        assert process.wait()[0] == 0


# Traced by another tool

@contextlib.contextmanager
def gdb(pid, *commands):
    words = ["gdb", "-q", "-nx", "-p", str(pid), "-ex", "set confirm off"]
    for command in commands:
        words += ["-ex", command]
    with support.Program([*words, "-ex", r"echo \nready\n"],
                         env=dict(os.environ, DEBUGINFOD_URLS="")) as process:
        while process.line() != "ready":
            pass
        yield process


needs_gdb = environment.needs("gdb is not installed", "gdb", "--version")
needs_strace = environment.needs("strace is not installed", "strace", "-V")


@needs_gdb
def test_held_by_gdb(probing, newest, read):
    """All its threads are stopped, so all are exact, without ptrace."""
    with busy_target(newest) as process:
        with gdb(process.python) as tracer:
            before = process_state(process.python)
            assert set(before.values()) == {("t", str(tracer.pid))}
            for options in MODES:
                found = read(process.python, *options)
                threads = {t["name"]: t for t in python_threads(found)["threads"]}
                assert python(threads["worker"])[0] == "compute" and not found["warnings"], found
                for thread in threads.values():
                    assert thread["read"] == "idle" and thread["state"] == "traced", thread
                assert process_state(process.python) == before
            assert "traced" in probing("-p", process.python, "debug", "--dump").out
        assert_untouched(process.python)
        assert process.wait()[0] == 0


def assert_read_beside(tracer, process, probing, read):
    """Another tool traces it and lets it run: a running thread is read without a stop, with a message."""
    for options in (), ("--native",):
        found = read(process.python, *options)
        threads = assert_read(python_threads(found), busy=True, reads=("idle", "stopped"))
        warning, = found["warnings"]
        assert threads["worker"]["read"] == "unstable"
        assert "traced by process %d" % tracer in warning, warning
        assert "without being stopped" in warning, warning
    assert not read(process.python, "--nonblocking")["warnings"]
    result = probing("-p", process.python, "debug", "--dump", "--freeze")
    assert result.code == PERMISSION and not result.out and "--nonblocking" in result.err, result
    for state, theirs in process_state(process.python).values():
        assert state in "RSD" and theirs == str(tracer)


@needs_gdb
def test_running_under_gdb(probing, newest, read):
    with busy_target(newest) as process, gdb(process.python, "continue &") as tracer:
        wait_until(lambda: {s for s, _ in process_state(process.python).values()} == {"R", "S"})
        environment.settle(process.python)
        assert_read_beside(tracer.pid, process, probing, read)


@needs_strace
def test_running_under_strace(probing, newest, read, tmp_path):
    with busy_target(newest) as process:
        tracer = subprocess.Popen(["strace", "-f", "-o", str(tmp_path / "trace"), "-p",
                                   str(process.python)], stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: {t for _, t in process_state(process.python).values()} ==
                       {str(tracer.pid)})
            environment.settle(process.python)
            assert_read_beside(tracer.pid, process, probing, read)
        finally:
            tracer.terminate()
            tracer.wait()
        wait_until(lambda: {t for _, t in process_state(process.python).values()} == {"0"})


# Starting and ending

EXEC = "began to run another program"  # the end of its exec() counts as that
CLEAR = ("is gone", "No such process", "has ended", "is not initialised", "is not a Python",
         "No such file", EXEC)


def assert_clear(result):
    """A dump, or one message with the reason, not an internal error."""
    assert result.code in (OK, UNSUPPORTED, NO_PROCESS) or \
        (result.code == FAILED and EXEC in result.err), result
    if result.code:
        assert result.err.startswith("probing: ") and not result.out, result
        assert any(words in result.err for words in CLEAR), result
        assert result.code == NO_PROCESS or not re.search(r"\b0x[0-9a-f]", result.err), result


@ONE_EACH
def test_starting(interpreter, probing):
    """At any moment of the start: a dump, or a word that it is not there yet."""
    runs = support.count(10, 100)
    dumped = 0
    for run in range(10 * runs):
        if run >= runs and dumped:
            break  # else the machine is slow: later moments
        with subprocess.Popen([interpreter.exe, SCRIPT], env=interpreter.env,
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
            time.sleep(random.uniform(0, 0.2) * run / runs)
            result = probing("-p", process.pid, "debug", "--dump", "--json", "--locals", "--native")
            process.stdin.close()
            assert_clear(result)
            assert process.wait(20) == 0
            dumped += result.code == OK
            if result.code == OK:
                for thread in json.loads(result.out)["threads"]:
                    assert thread["read"] != "idle" or thread["error"] is None, thread
    assert dumped


@ONE_EACH
def test_ending(interpreter, probing):
    """At any moment of the end, daemon threads and exit functions included."""
    for run in range(support.count(5, 100)):
        with Started([interpreter.exe, PROGRAMS / "env_ending.py"], env=interpreter.env,
                     rest=1) as process:
            process.send(b"\n")
            time.sleep(random.uniform(0, 0.02))
            for options in (), ("--native", "--locals"), ("--freeze",):
                assert_clear(probing("-p", process.python, "debug", "--dump", "--json", *options))
            assert process.wait()[0] in (0, -6), process.errors()


WITH_LIBRARY = [i for i in support.one_per_version() if environment.libraries(i)[0]]


@pytest.mark.parametrize("interpreter", WITH_LIBRARY, ids=repr)
def test_python_that_comes_and_goes(interpreter, probing):
    """The interpreter is initialised, finalised, and initialised again in one process."""
    server, env = environment.embed(interpreter, "env_finalized.c")
    with Started([server], env=env, rest=1) as process:
        for _ in range(2):
            result = probing("-p", process.python, "debug", "--dump")
            assert result.code == UNSUPPORTED and "not initialised" in result.err, result
            assert_clear(result)
            process.send(b"\n")
            process.line()
            result = probing("-p", process.python, "debug", "--dump", "--json")
            assert result.code == OK, result
            thread, = json.loads(result.out)["threads"]
            assert python(thread) == ["ask", "<module>"], thread
            process.send(b"\n")
            process.line()


# Threads that come and go

SHORT = ["inner", "middle", "outer", "run"]


def assert_possible(thread):
    """Threads of env_churn.py have these stacks and no others, up to where they came or are."""
    names = [frame["func"] for frame in support.python_frames(thread)]
    if thread["read"] == "unstable" or not names or names[-1] == "<module>":
        return
    # The frames of an ending thread may be gone when they are read, which the dump says.
    if thread["error"] and names[-1] is None:
        return
    assert names[-1] in ("_bootstrap", "_thread_bootstrap", "__bootstrap"), thread
    for name in SHORT:
        if name in names[1:] and name != "inner":
            below = names[names.index(name) + 1]
            assert below in {"middle": "outer", "outer": "run", "run": "_bootstrap_inner"}[name]


@EACH
def test_short_lived_threads(interpreter, read):
    """Thread states are freed and used again under our hands: never a wrong stack or a crash."""
    with Started([interpreter.exe, PROGRAMS / "env_churn.py"], env=interpreter.env,
                 rest=1) as process:
        seen = 0
        for run in range(1000):
            if run >= support.count(24, 1000) and seen:
                break
            found = read(process.python, *MODES[run % len(MODES)])
            for thread in found["threads"]:
                assert_possible(thread)
                seen += "outer" in python(thread)
        assert seen and process.alive()
        wait_until(lambda: all(tracer == "0" for _, tracer in steady_state(process.python)))


def steady_state(pid):
    for tid in support.thread_ids(pid):
        try:
            status = support.thread_status(pid, tid)
        except (FileNotFoundError, ProcessLookupError):
            continue
        yield status["State"][0], status["TracerPid"]


# Now asleep, now not


@pytest.mark.parametrize("options", [(), ("--native",), ("--freeze",), ("--freeze", "--native")],
                         ids="-".join)
@ONE_EACH
def test_restless(interpreter, options, read, target):
    """A thread's wait is of the same moment as its stack, whenever that was."""
    process = target("restless.py", interpreter=interpreter)
    seen, most = set(), support.count(30, 1000)
    for look in range(100 * most):
        if look >= most and {state for _, state in seen} == {"running", "idle"}:
            break
        for thread in read(process.pid, *options)["threads"]:
            # Other readers of all processes also trace this one for moments.
            if thread["name"] != "worker" or thread["state"] == "traced":
                continue
            innermost = support.python_frames(thread)[0]["func"]
            wait = thread["waits_for"]
            assert thread["state"] in ("running", "idle"), thread
            assert (thread["state"] == "idle") == (wait is not None), thread
            if wait and not wait.startswith("futex"):  # that is the GIL
                assert wait.split(":")[0] in SLEEPS and innermost == "rest", thread
            seen.add((thread["read"], thread["state"]))
    assert {state for _, state in seen} == {"running", "idle"}, seen
    assert "stopped" in {how for how, _ in seen}, seen


# The GIL and the collector

@EACH
def test_gil(interpreter, read):
    """At most one thread holds it; the others wait for it, or there is none."""
    with Started([interpreter.exe, PROGRAMS / "env_gil.py"], env=interpreter.env,
                 rest=1) as process:
        waits = holds = 0
        for _ in range(10):
            found = read(process.python)
            workers = [t for t in found["threads"] if t["name"] == "worker"]
            assert len(workers) == 4, found
            assert found["target"]["python"]["free_threaded"] == interpreter.free_threaded
            held = [t for t in workers if t["gil"] == "holds"]
            assert len(held) <= 1, found
            holds += len(held)
            waits += sum(t["gil"] == "waits" for t in workers)
            for thread in workers:
                assert python(thread)[0] == "compute" and thread["error"] is None, thread
        if interpreter.free_threaded:
            assert not waits and not holds
        else:
            assert waits and holds


@EACH
def test_collecting(interpreter, read):
    with Started([interpreter.exe, PROGRAMS / "env_collecting.py"], env=interpreter.env,
                 rest=1) as process:
        found = read(process.python)
        threads = {thread["name"]: thread for thread in found["threads"]}
        assert python(threads["collector"])[:2] == ["__del__", "collect"], found
        assert threads["collector"]["gc"] is not interpreter.free_threaded, found
        assert threads["MainThread"]["gc"] is False, found


# In vfork

@pytest.mark.parametrize(
    "interpreter", [i for i in support.one_per_version() if i.has_ctypes], ids=repr)
def test_vfork(interpreter, probing, read):
    """The child has the parent's memory, and no thread of its own in it."""
    library = environment.build("env_vfork.c", "env_vfork.so", "-shared", "-fPIC")
    if not environment.runs(interpreter.exe, "-c", "import ctypes; ctypes.CDLL(%r)" % str(library),
                            env=interpreter.env):
        pytest.skip("its C library is too old for ours")
    with support.Target(interpreter, PROGRAMS / "env_vfork.py", library) as process:
        assert process.line() == "ready"
        children = []

        def has_child():
            children[:] = support.children(process.pid)
            return children

        wait_until(has_child)
        child, = children
        try:
            for options in (), ("--nonblocking",), ("--native",):
                found = read(process.pid, *options)
                threads = {t["name"]: t for t in found["threads"]}
                spawner = threads["spawner"]
                assert spawner["state"] == "uninterruptible" and spawner["read"] == "idle", found
                assert python(spawner)[0] == "spawn", spawner
                assert_complete(spawner)
                assert not found["warnings"], found
            result = probing("-p", child, "debug", "--dump", "--json")
            assert result.code in (OK, UNSUPPORTED), result
        finally:
            os.kill(child, signal.SIGKILL)
        assert process.wait()[0] == 0

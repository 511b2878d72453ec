# SPDX-License-Identifier: GPL-3.0-or-later
"""Thread states that are not of the thread which made them: pools of C threads, forks in C."""
import json
import os

import pytest

import environment
import support
from environment import OK, Started, assert_untouched, embed, python

# Of each version one, with a library to link with where there is one.
CHOSEN = {i.version: i for i in sorted(support.INTERPRETERS,
                                       key=lambda i: environment.libraries(i)[0] is not None)
          if i.version >= (3, 6) and not i.debug_build}
EACH = pytest.mark.parametrize("interpreter", [CHOSEN[v] for v in sorted(CHOSEN)], ids=repr)
LOAD = """
import ctypes, os, sys
ctypes.PyDLL(sys.argv[1]).start_pool(sys.argv[2].encode())
os.read(os.pipe()[0], 1)
"""
MODES = (), ("--nonblocking",), ("--freeze",), ("--native",)
A_CHAIN, X_CHAIN = ["a1", "a2", "a3"], ["x1", "x2", "x3"]


@pytest.fixture
def read(probing):
    """read(PID, *options): the dump as Python data."""

    def read_it(pid, *options):
        result = probing("-p", pid, "debug", "--dump", "--json", *options)
        assert result.code == OK, result
        return json.loads(result.out)

    return read_it


def pool(interpreter, mode, rest):
    """The pool of env_handed.c in a program of its own, or in an interpreter without a library."""
    if environment.libraries(interpreter)[0]:
        program, env = embed(interpreter, "env_handed.c")
        return Started([program, mode], rest=rest, env=env)
    library = environment.build("env_handed.c", "env_handed.so", "-shared", "-fPIC", "-DLIBRARY",
                                "-lpthread")
    if not interpreter.has_ctypes or not environment.runs(
            interpreter.exe, "-c", "import ctypes; ctypes.PyDLL(%r)" % str(library),
            env=interpreter.env):
        pytest.skip("neither a library nor an interpreter that can load one of ours")
    return Started([interpreter.exe, "-c", LOAD, library, mode], rest=rest, env=interpreter.env)


def of_workers(process, found):
    """Stacks of others than the first thread."""
    return [t for t in found["threads"] if python(t) and t["tid"] != process.python]


def assert_honest(thread):
    """A stack without a thread says so, and no sleep of a thread is taken for a proof."""
    if thread["tid"] is None:
        assert thread["state"] == "threadless" and thread["note"], thread
        assert thread["read"] != "idle" and thread["waits_for"] is None, thread
    else:
        assert "note" not in thread and thread["state"] != "threadless", thread


@EACH
def test_pool(interpreter, read):
    """Three states of the first thread run on three others: each stack is on its worker."""
    with pool(interpreter, "rest", 4) as process:
        for _ in range(2):
            process.line()
        environment.settle(process.python, 4)
        for options in MODES:
            found = read(process.python, *options)
            stacks = of_workers(process, found)
            assert sorted(python(thread)[:2] for thread in stacks) == [
                ["inner_%d" % n, "worker_code_%d" % n] for n in (1, 2, 3)], found
            for thread in stacks:
                assert_honest(thread)
                assert thread["name"] is None and thread["error"] is None, thread
                if thread["tid"] is not None:
                    assert thread["os_name"] == "worker-" + python(thread)[0][-1], thread
            assert not found["warnings"], found
        assert_untouched(process.python)


@EACH
@pytest.mark.parametrize("how", [[], ["fork"], ["fork", "told"]], ids=len)
def test_several_interpreters_of_a_server(interpreter, how, read):
    """As uWSGI serves several applications: workers swap to states that the first thread made."""
    if not environment.libraries(interpreter)[0]:
        pytest.skip("no library to link with")
    program, env = embed(interpreter, "env_handed.c")
    with Started([program, "mounts", *how], rest=4, env=env) as process:
        for _ in range(2):
            process.line()
        environment.settle(process.python, 4)
        for options in MODES:
            found = read(process.python, *options)
            stacks = [thread for thread in found["threads"] if python(thread)]
            assert sorted(python(thread)[:2] for thread in stacks) == [
                ["inner_%d" % n, "worker_code_%d" % n] for n in (1, 2, 3)], found
            for thread in stacks:
                assert_honest(thread)
                assert thread["interpreter"] == 1 and thread["error"] is None, thread
                assert thread["os_name"] == "worker-" + python(thread)[0][-1], thread
        assert_untouched(process.python)


@EACH
@pytest.mark.parametrize("who", ["main", "thread"])
@pytest.mark.parametrize("told", [[], ["told"]], ids=["raw", "told"])
def test_fork_in_c(interpreter, who, told, read):
    """The child's only thread has its stack; the state of a thread missing in the child is there and says
    so."""
    if not interpreter.has_ctypes or told and interpreter.version < (3, 7):
        pytest.skip("no ctypes, or no PyOS_AfterFork_Child()")
    with support.Program([interpreter.exe, environment.PROGRAMS / "forks.py", who, *told],
                         env=interpreter.env) as program:
        word, pid = program.line().split()
        assert word == "child"
        environment.settle(int(pid), 1)
        for options in MODES:
            found = read(int(pid), *options)
            stacks = [thread for thread in found["threads"] if python(thread)]
            own = [thread for thread in stacks if thread["tid"] == int(pid)]
            assert [python(thread)[:2] for thread in own] == [["child", "forks"]], found
            left = [thread for thread in stacks if thread["tid"] is None]
            for thread in stacks:
                assert_honest(thread)
            assert len(own) + len(left) == len(stacks), found
            if told:
                assert not left, found
            else:
                assert ["stays", "run"] in [python(thread)[:2] for thread in left], found


def told_without_thread(threads):
    return sorted((t["state"], t["note"], t["read"]) for t in threads if t["tid"] is None)


@EACH
def test_fork_in_a_snapshot_and_in_sql(interpreter, read, probing, tmp_path):
    """Snapshots and tables agree with the dump."""
    if not interpreter.has_ctypes:
        pytest.skip("no ctypes")
    with support.Program([interpreter.exe, environment.PROGRAMS / "forks.py", "thread"],
                         env=interpreter.env) as program:
        pid = int(program.line().split()[1])
        environment.settle(pid, 1)
        live = read(pid)
        file = tmp_path / "child.snapshot"
        result = probing("-p", pid, "snapshot", "-o", file)
        assert result.code == OK, result
        again = json.loads(probing(file, "debug", "--dump", "--json").out)
        stacks = [[(t["tid"], t["name"], python(t)) for t in found["threads"]]
                  for found in (live, again)]
        assert stacks[0] == stacks[1]
        assert told_without_thread(live["threads"]) == told_without_thread(again["threads"])
        query = "SELECT tid, state, note, read FROM python.threads"
        for target in pid, file:
            result = probing(target, "query", query, "--format", "json")
            assert result.code == OK, result
            rows = json.loads(result.out)
            assert told_without_thread(rows) == told_without_thread(live["threads"]), result
            assert [row["tid"] for row in rows if row["note"] is None] == [pid], result
        text = probing(pid, "debug", "--dump").out
        assert "\n(no thread)" in text and "threadless: " in text, text


def assert_possible(thread):
    """Frames of one chain, outermost first, behind the module."""
    if thread["error"] is not None:
        assert thread["read"] == "unstable", thread
    frames = python(thread)[::-1]
    if thread["read"] == "unstable" and not frames:
        return
    assert frames[0] == "<module>", thread
    calls = [name for name in frames[1:] if name != "sum"]
    assert calls in [chain[:n] for chain in (A_CHAIN, X_CHAIN) for n in range(4)], thread


@EACH
@pytest.mark.parametrize("mode, sleepers", [("chains", 1), ("lent", 2)])
def test_no_mixed_stack_of_a_pool(interpreter, mode, sleepers, read):
    """The maker sleeps while its state runs elsewhere: that proves nothing."""
    with pool(interpreter, mode, sleepers) as process:
        for number in range(support.count(30, 600)):
            options = MODES[number % len(MODES)]
            found = read(process.python, *options)
            stacks = of_workers(process, found)
            assert len(stacks) == 1 or "--nonblocking" in options, found
            for thread in stacks:
                assert_honest(thread)
                assert_possible(thread)
                assert thread["read"] != "idle", thread
        assert process.alive()

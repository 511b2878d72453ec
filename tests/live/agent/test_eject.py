# SPDX-License-Identifier: GPL-3.0-or-later
"""Ejecting the agent: what is gone then, what stays and why, and repeated ejects."""
import json
import os
import shlex
import subprocess

import pytest

import agent
import support
from agent import Client, wait_until
from environment import FAILED, OK


def mappings(pid):
    with open("/proc/%d/maps" % pid, encoding="utf-8") as maps:
        return maps.read().split("\n")


def is_mapped(pid):
    return any("probing-agent" in line for line in mappings(pid))


def eject(probing, pid):
    done = probing(pid, "eject", "--json")
    assert done.code == OK, done
    return json.loads(done.out)


GONE = {"stopped": True, "unmapped": True, "reason": None, "paused": None}


def test_nothing_stays(interpreter, target, probing):
    process = target("evaluated.py", "idle", interpreter=interpreter)
    for i in range(3):
        assert probing(process.pid, "eval", "print(%d)" % i).out == "%d\n" % i
        path = json.loads(probing(process.pid, "agent", "status", "--json").out)["socket"]
        assert eject(probing, process.pid) == dict(GONE, pid=process.pid)
        assert not is_mapped(process.pid) and not agent.ours(process.pid)
        assert not os.path.exists(path)
        assert agent.descriptors(process.pid) == [0, 1, 2]
    done = probing(process.pid, "eject")
    assert done.code == FAILED and "has no agent" in done.err, done
    # A handler that fork() calls, or a function that the interpreter calls at its end, would crash.
    process.send(b"x")
    assert process.line() == "awake"
    process._process.stdin.close()
    process._process.stdin = None
    assert process._process.wait(30) == 0, process.errors()


def test_fork_and_end_after_it(interpreter, target, probing):
    process = target("obeys.py", interpreter=interpreter)
    assert probing(process.pid, "eval", "1").out == "1\n"
    assert eject(probing, process.pid)["unmapped"]
    process.send(b"os.waitpid(os.fork() or os._exit(3), 0)[1] == 3 << 8 or os._exit(1)\n")
    assert process.line() == "done"
    process.send(b"sys.exit(5)\n")
    assert process.wait()[0] == 5


def test_an_agent_that_was_only_stopped(newest, target, probing):
    process = target("evaluated.py", "idle")
    agent.load(probing, process.pid)
    assert probing(process.pid, "agent", "stop").code == OK
    assert is_mapped(process.pid)
    done = probing(process.pid, "eject")
    assert done.out == ("the agent of process %d did not run, and its library is unmapped\n"
                        % process.pid), done
    assert not is_mapped(process.pid)


def test_it_can_be_started_again_before(newest, target, probing):
    """However often it was started, it is opened once."""
    process = target("evaluated.py", "idle")
    for _ in range(3):
        agent.load(probing, process.pid)
        assert probing(process.pid, "agent", "stop").code == OK
    agent.load(probing, process.pid)
    assert eject(probing, process.pid)["unmapped"]


KEEPS = [
    # code that keeps something of the agent's, whether the library may go, code for later
    ("import sys\nkept = sys.stdout", True, "kept.write('kept\\n'); kept.flush()"),
    ("import sys\nkept = sys._getframe()", True, "kept.f_back.f_globals['emit'](1, 2, 3)"),
    ("import logging\nkept = logging.StreamHandler()", True, "kept.stream.flush()"),
    ("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    kept = e", True, "str(kept)"),
    ("import sys\nkept = sys._getframe().f_back.f_globals['emit']", False, "repr(kept)"),
]


@pytest.mark.parametrize("keeps,goes,later", KEEPS)
@pytest.mark.parametrize("interpreter", support.one_per_version(), ids=repr)
def test_what_code_keeps(interpreter, target, probing, keeps, goes, later):
    """Evaluated code may keep streams and frames; a kept function of the library keeps the library, which
    is reported."""
    process = target("obeys.py", interpreter=interpreter)
    done = probing(process.pid, "eval", keeps)
    assert done.code == OK, done
    found = eject(probing, process.pid)
    assert found["unmapped"] == goes and (goes or "Python objects" in found["reason"]), found
    process.send(later.encode() + b"\n")
    while process.line() != "done":
        pass
    process.send(b"del kept\nimport gc; gc.collect()\n")
    assert process.line() == "done" and process.line() == "done"
    assert probing(process.pid, "eval", "2").out == "2\n"


def test_a_call_that_the_main_thread_owes(newest, target, probing):
    process = target("evaluated.py", "idle")
    done = probing(process.pid, "eval", "--thread", "main", "--timeout", "0.2", "1")
    assert done.code == 5, done
    found = eject(probing, process.pid)
    assert found["stopped"] and not found["unmapped"] and "main thread" in found["reason"], found
    assert is_mapped(process.pid)
    process.send(b"x")
    assert process.line() == "awake"
    wait_until(lambda: json.loads(probing(process.pid, "eject", "--json").out or "{}").get(
        "unmapped", False))


@pytest.mark.parametrize("interpreter", support.one_per_version(last=(3, 6)), ids=repr)
def test_a_program_without_a_gil(interpreter, target, probing):
    """The call that enables the GIL is requested, and may come late: until then the library stays."""
    process = target("evaluated.py", "alone", interpreter=interpreter)
    done = probing(process.pid, "eval", "--timeout", "0.2", "1")
    assert done.code == 5 and "until that thread makes it" in done.err, done
    found = eject(probing, process.pid)
    assert found["stopped"] and not found["unmapped"] and "main thread" in found["reason"], found
    process.send(b"x")
    assert process.line() == "awake"
    wait_until(lambda: json.loads(probing(process.pid, "eject", "--json").out or "{}").get(
        "unmapped", False))
    assert probing(process.pid, "eval", "2").out == "2\n"
    assert eject(probing, process.pid)["unmapped"]


@pytest.mark.parametrize("interpreter", support.one_per_version(last=(3, 6)), ids=repr)
def test_an_agent_that_was_never_used(interpreter, target, probing):
    process = target("evaluated.py", "alone", interpreter=interpreter)
    agent.load(probing, process.pid)
    assert eject(probing, process.pid)["unmapped"]
    process.send(b"x")
    assert process.line() == "awake"


IN_CHILD = (b"child = os.fork(); child or (os.write(1, b'child\\n'), [exec(line()) for _ in iter(int, 1)])"
            b"; os.waitpid(child, 0)\n")


def test_out_of_a_child_of_fork(interpreter, target, probing):
    """The child also has the objects of the parent's agent, and garbage collections traverse all of them."""
    process = target("obeys.py", interpreter=interpreter)
    assert probing(process.pid, "eval", "1").out == "1\n"
    process.send(IN_CHILD)
    assert process.line() == "child"
    child, = support.children(process.pid)
    assert probing(child, "eval", "2").out == "2\n"
    assert eject(probing, child)["unmapped"]
    process.send(b"import gc; gc.collect(); os.write(1, b'collected\\n')\n")
    assert process.line() == "collected"
    process.send(b"os._exit(0)\n")
    assert process.line() == "done"


@pytest.mark.parametrize("interpreter", support.one_per_version(), ids=repr)
def test_calls_of_a_busy_main_thread(interpreter, target, probing):
    """Its last call may be over and not left yet when the library goes."""
    process = target("evaluated.py", "busy", interpreter=interpreter)
    for i in range(support.count(5, 50)):
        done = probing(process.pid, "eval", "--thread", "main", "%d" % i)
        assert done.out == "%d\n" % i, done
        assert eject(probing, process.pid)["unmapped"]
    assert process.alive()


def test_an_agent_loaded_from_memory(newest, probing, tmp_path):
    """Where the file is not to be seen it is loaded by its descriptor's number: never twice."""
    script = support.HERE / "programs" / "obeys.py"
    command = ["unshare", "-m", "sh", "-c",
               "mount -t tmpfs tmpfs %s && exec \"$@\"" % shlex.quote(os.path.dirname(support.BINARY)), "sh",
               newest.exe, str(script)]
    if os.geteuid() != 0:
        pytest.skip("only root makes a mount namespace")
    with support.Program(command, env=newest.env) as process:
        assert process.line() == "ready"
        before = None
        for i in range(4):
            assert "from memory" in probing(process.pid, "inject").out
            process.send(b"kept_%d = open('/dev/null')\n" % i)  # moves the numbers on
            assert process.line() == "done"
            assert probing(process.pid, "agent", "stop").code == OK
            assert probing(process.pid, "eval", "4").out == "4\n"
            count = sum("probing-agent" in line for line in mappings(process.pid))
            assert before in (None, count)
            before = count
            assert eject(probing, process.pid)["unmapped"]
            assert not is_mapped(process.pid)


def test_two_at_once(newest, target, probing):
    """Commands that load and unload at the same time: each works or says why, nothing crashes, at the next
    garbage collection neither."""
    process = target("evaluated.py", "idle")
    for _ in range(support.count(10, 100)):
        started = [subprocess.Popen([support.BINARY, str(process.pid), *words],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                   for words in (["eval", "1"], ["eject"], ["inject"], ["eject"])]
        for command in started:
            out, err = command.communicate(timeout=60)
            assert command.returncode in (0, 1, 4, 5, 6), (out, err)
            assert out or err
        collected = probing(process.pid, "eval", "__import__('gc').collect() >= 0")
        assert process.alive() and collected.out == "True\n", (collected, process.errors())
    assert probing(process.pid, "eval", "3").out == "3\n"
    assert eject(probing, process.pid)["unmapped"]
    process.send(b"x")
    assert process.line() == "awake"


def test_clients_when_it_goes(newest, target, probing):
    process = target("evaluated.py", "idle")
    path = agent.load(probing, process.pid)
    with Client(path) as one, Client(path) as two:
        assert one.evaluate("1")[0] == two.evaluate("1")[0] == agent.OK
        assert eject(probing, process.pid)["unmapped"]
        assert one.receive() is None and two.receive() is None

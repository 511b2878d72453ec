# SPDX-License-Identifier: GPL-3.0-or-later
"""`inject --by remote-exec`: the interpreter itself loads the agent (3.14)."""
import os
import subprocess
from pathlib import Path

import pytest

import agent
import pauses
import support
from environment import FAILED, OK, TIMEOUT, UNSUPPORTED, USAGE
from test_beside_pdb import Pdb

PROGRAMS = support.HERE / "programs"
NEW = [each for each in support.INTERPRETERS if each.version >= (3, 14)]
OLD = [each for each in support.one_per_version() if each.version < (3, 14)][-1:]
BY = "inject", "--by", "remote-exec"
# sys.addaudithook() of a program that refuses such scripts.
REFUSES = """
import sys
def hook(event, _):
    if event == "cpython.remote_debugger_script":
        raise RuntimeError("no scripts here")
sys.addaudithook(hook)
print("ready", flush=True)
while True:
    pass
"""



def scripts_of(pid):
    return list(Path("/tmp").glob("probing-%d-*" % pid))


@pytest.mark.parametrize("interpreter", NEW, ids=repr)
def test_it_loads_the_agent(interpreter, target, probing):
    process = target("evaluated.py", "busy", interpreter=interpreter)
    before = set(support.thread_ids(process.pid))
    done = probing(process.pid, *BY)
    assert done.code == OK and "by sys.remote_exec(); all threads paused for " in done.out, done
    assert probing(process.pid, "eval", "6 * 7").out == "42\n"
    assert "already loaded" in probing(process.pid, *BY).out
    assert pauses.nobody_traced(process.pid)
    # Nothing of it stays: not even a handle of the library.
    assert probing(process.pid, "eject").out.endswith("its library is unmapped\n")
    assert set(support.thread_ids(process.pid)) == before and not process.errors()


@pytest.mark.parametrize("interpreter", NEW, ids=repr)
def test_a_main_thread_that_sleeps(interpreter, target, probing):
    """The request is withdrawn, so that nothing is run when it wakes up."""
    process = target("evaluated.py", "idle", interpreter=interpreter)
    command = subprocess.Popen([support.BINARY, str(process.pid), *BY, "--timeout", "0.5"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    agent.wait_until(lambda: scripts_of(command.pid))
    err = command.communicate()[1]
    assert command.returncode == TIMEOUT and not scripts_of(command.pid), err
    assert "executed no Python code within 0.5 s, and the request was withdrawn" in err, err
    process.send(b"x")
    assert process.line() == "awake"
    assert "libprobing-agent" not in Path("/proc/%d/maps" % process.pid).read_text() and not process.errors()


@pytest.mark.parametrize("interpreter", NEW[:1], ids=repr)
@pytest.mark.parametrize("options, env", [(("-X", "disable-remote-debug"), {}), ((), {"PYTHON_DISABLE_REMOTE_DEBUG": "1"})],
                         ids=["option", "variable"])
def test_where_it_is_forbidden(interpreter, options, env, probing):
    with support.Target(interpreter, PROGRAMS / "evaluated.py", "busy", options=options, env=env) as process:
        process.line()
        done = probing(process.pid, *BY)
        assert done.code == UNSUPPORTED and "forbids sys.remote_exec()" in done.err, done
        assert "-X disable-remote-debug or PYTHON_DISABLE_REMOTE_DEBUG" in done.err
        assert probing(process.pid, "inject").code == OK


@pytest.mark.parametrize("interpreter", OLD, ids=repr)
def test_before_3_14(interpreter, target, probing):
    process = target("evaluated.py", "busy", interpreter=interpreter)
    done = probing(process.pid, *BY)
    assert done.code == UNSUPPORTED and "came with Python 3.14" in done.err, done


@pytest.mark.parametrize("interpreter", NEW[:1], ids=repr)
def test_an_audit_hook_that_refuses(interpreter, probing):
    with support.Program([interpreter.exe, "-c", REFUSES], env=interpreter.env) as process:
        process.line()
        done = probing(process.pid, *BY, "--timeout", "1")
        assert done.code == TIMEOUT and "cpython.remote_debugger_script" in done.err, done
        assert "no scripts here" in process.errors()
        assert process.alive() and "libprobing" not in Path("/proc/%d/maps" % process.pid).read_text()


@pytest.mark.parametrize("interpreter", NEW[:1], ids=repr)
def test_what_the_interpreter_lacks_is_said(interpreter, tmp_path, probing):
    (tmp_path / "ctypes.py").write_text("raise ImportError('no ctypes \\x1b[2J')\n")
    env = dict(interpreter.env, PYTHONPATH=str(tmp_path))
    with support.Program([interpreter.exe, PROGRAMS / "evaluated.py", "busy"], env=env) as process:
        process.line()
        done = probing(process.pid, *BY)
        assert done.code == FAILED and "cannot load the agent: ImportError: no ctypes \\x1b[2J" in done.err, done
        assert process.alive() and not process.errors()


@pytest.mark.parametrize("interpreter", NEW[:1], ids=repr)
def test_pdb_afterwards(interpreter, target, probing):
    process = target("evaluated.py", "busy", interpreter=interpreter)
    assert probing(process.pid, *BY).code == OK
    with Pdb(interpreter, process.pid) as pdb:
        pdb.type("p 'MARK', 40 + 2", "q")
        pdb.read_until("('MARK', 42)")
        pdb.process.wait(60)
    assert probing(process.pid, "eval", "6 * 7").out == "42\n"


@pytest.mark.parametrize("words, said", [(("--by", "magic"), "only 'remote-exec' is known"),
                                         (("--by", "remote-exec", "--library", "x.so"), "'--by' with '--library'")])
def test_usage(words, said, probing):
    done = probing(os.getpid(), "inject", *words)
    assert done.code == USAGE and said in done.err, done

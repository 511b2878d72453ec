# SPDX-License-Identifier: GPL-3.0-or-later
"""`pdb -p` (3.14) and Probing in one process."""
import os
import subprocess

import pytest

import agent
import pauses
import support
from environment import OK
from remote import listening_ports
from test_debug_prompt import FIRST, PROGRAM, clean, driven, places, typed  # noqa: F401 (fixtures)

VERSIONS = [each for each in support.one_per_version((3, 14)) if not each.free_threaded]


class Pdb:
    """A `python -m pdb -p`, with what it prints."""

    def __init__(self, interpreter, pid):
        self.process = subprocess.Popen([interpreter.exe, "-m", "pdb", "-p", str(pid)], env=dict(os.environ, **interpreter.env),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def type(self, *lines):
        self.process.stdin.write("\n".join(lines) + "\n")
        self.process.stdin.flush()

    def read_until(self, text):
        said = ""
        while text not in said:
            char = self.process.stdout.read(1)
            assert char, said
            said += char
        return said

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


@pytest.mark.parametrize("interpreter", VERSIONS, ids=repr)
def test_pdb_first(interpreter, driven, shared, clean, probing):
    """While it holds the program, what is read from outside and evaluated is right; then ours debugs it."""
    process = driven(interpreter)
    with Pdb(interpreter, process.pid) as pdb:
        pdb.type("b driven.py:%d" % FIRST, "c", "p 'MARK', 40 + 2")
        said = pdb.read_until("('MARK', 42)")
        assert "driven.py(%d)forward()" % FIRST in said, said
        text = probing("dump", process.pid).out
        assert "_PdbServer" in text and "driven.py:%d" % FIRST in text, text
        assert probing(process.pid, "eval", "6 * 7").out == "42\n"
        assert probing(process.pid, "print", "--function", "forward", "self.calls").code == OK
        pdb.type("p 'MORE', 41 + 2", "q")
        pdb.read_until("('MORE', 43)")
        pdb.process.wait(60)
    pauses.wait_until_runs(shared)
    text = typed(process.pid, "b driven.py:%d" % FIRST, "c", "n", "q")
    assert places(text)[1:] == [("Net.forward", FIRST), ("Net.forward", FIRST + 1)], text
    clean(interpreter, process.pid, shared)


@pytest.mark.parametrize("interpreter", VERSIONS, ids=repr)
def test_ours_first(interpreter, driven, shared, clean):
    """pdb waits as long as we hold the program paused, and then works."""
    process = driven(interpreter)
    with subprocess.Popen([support.BINARY, "-t", str(process.pid), "debug", "--within", "30s"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ours:
        ours.stdin.write("b driven.py:%d\nc\n" % FIRST)
        ours.stdin.flush()
        said = ""
        while "breakpoint 1: " not in said:
            said += ours.stdout.readline()
        with Pdb(interpreter, process.pid) as pdb:
            agent.wait_until(lambda: listening_ports(pdb.process.pid))
            ours.stdin.write("q\n")
            ours.stdin.close()
            ours.stdout.read()
            pdb.type("p 'MARK', 40 + 2", "q")
            pdb.read_until("('MARK', 42)")
            pdb.process.wait(60)
    clean(interpreter, process.pid, shared)


@pytest.mark.parametrize("interpreter", VERSIONS, ids=repr)
def test_remote_debugging_forbidden(interpreter, shared, probing):
    """`-X disable-remote-debug` keeps pdb out, and is no matter of injection."""
    with support.Target(interpreter, PROGRAM, shared.path, options=("-X", "disable-remote-debug")) as process:
        assert process.line() == "ready"
        with Pdb(interpreter, process.pid) as pdb:
            said = pdb.process.communicate(timeout=60)[0]
            assert "not enabled" in said or "Cannot attach" in said, said
        assert probing(process.pid, "eval", "6 * 7").out == "42\n"
        pauses.wait_until_runs(shared)

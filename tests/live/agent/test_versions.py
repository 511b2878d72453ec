# SPDX-License-Identifier: GPL-3.0-or-later
"""A process with the agent of another version: what both know works, what one lacks is refused, and both are named."""
import json
import os
import pathlib
import sys

import pytest

import support
from environment import OK, UNSUPPORTED

LATE = support.HERE / "programs" / "late_agent.py"
AGENT = pathlib.Path(support.BINARY).parent / "libprobing-agent.so"
OTHER = "0.9.9"


BUILD_ID = b"\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0"  # the note's head


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """The environment of a command whose agent says that it is of another version."""
    mine, name = AGENT.read_bytes(), (support.VERSION + "\0").encode()
    assert len(OTHER) + 1 == len(name) and mine.count(name) == 1
    path = tmp_path_factory.mktemp("other") / AGENT.name
    head, _, rest = mine.replace(name, (OTHER + "\0").encode()).partition(BUILD_ID)
    path.write_bytes(head + BUILD_ID + bytes(byte ^ 1 for byte in rest[:20]) + rest[20:])
    return dict(os.environ, PROBING_AGENT=str(path))


def note(pid, version):
    return ("probing: warning: process %d has the agent of probing %s, and this is probing %s: what one of them lacks "
            "is refused. 'probing %d eject' stops it\n" % (pid, version, support.VERSION, pid))


def test_either_way(other, target, probing):
    process = target("evaluated.py", "idle")
    assert probing(process.pid, "eval", "6 * 7", env=other).out == "42\n"
    done = probing(process.pid, "eval", "6 * 7")
    assert (done.code, done.out, done.err) == (OK, "42\n", note(process.pid, OTHER)), done
    done = probing(process.pid, "debug", "--pause", "--max", "100ms")
    assert done.code == OK and done.err.count(note(process.pid, OTHER)) == 1, done
    status = probing(process.pid, "agent", "status")
    assert OTHER in status.out and status.err == note(process.pid, OTHER), status
    assert probing(process.pid, "eject").code == OK
    done = probing(process.pid, "eval", "6 * 7")
    assert (done.out, done.err) == ("42\n", "")


def mapped(pid):
    return {line.split(None, 5)[5] for line in pathlib.Path("/proc/%d/maps" % pid).read_text().splitlines() if AGENT.name in line}


@pytest.mark.parametrize("has_own", [False, True], ids=["alone", "beside-ours"])
def test_what_eject_leaves(other, target, probing, has_own):
    """The library of the agent that was stopped is not of this build: it stays, and that is said."""
    process = target("evaluated.py", "idle")
    theirs = other["PROBING_AGENT"]
    if has_own:
        assert probing(process.pid, "inject").code == OK
        assert probing(process.pid, "agent", "stop").code == OK
    assert probing(process.pid, "inject", env=other).code == OK
    assert mapped(process.pid) == {theirs} | ({str(AGENT)} if has_own else set())
    done = probing(process.pid, "eject")
    assert mapped(process.pid) == {theirs}
    assert (done.code, done.out) == (OK, "the agent of process %d has stopped; its library stays mapped: %s is of another "
                                         "build than this program\n" % (process.pid, theirs)), done
    assert probing(process.pid, "inject").code == OK
    done = probing(process.pid, "eject", "--json")
    assert json.loads(done.out)["unmapped"] and mapped(process.pid) == {theirs}, done
    assert probing(process.pid, "inject", env=other).code == OK
    done = probing(process.pid, "eject", "--json", env=other)
    assert json.loads(done.out)["unmapped"] and not mapped(process.pid), done


ASK = {
    "pause it": ("debug", "--pause"),
    "step to lines": ("step",),
    "keep settings": ("config", "probing.sample_rate=1"),
    "sample allocations": ("memory", "--sites", "1s"),
    "record values at lines": ("trace", "a.py:1", "n"),
    "record calls": ("trace", "--calls", "f"),
    "run code in frames and on event loops": ("eval", "--loop", "1"),
    "time steps of torch": ("perf", "--torch", "--exact", "--duration", "1s"),
    "be a prompt": ("repl",),
}


def test_what_it_lacks(probing):
    """Its own agent would be reached by the same socket: this one knows nothing but eval."""
    folder = pathlib.Path("/tmp/probing-%d" % os.geteuid())
    folder.mkdir(mode=0o700, exist_ok=True)
    with support.Program([sys.executable, LATE, str(folder / "agent-%d.sock"), "0.001", "probing-agent"]) as process:
        assert process.line() == "ready"
        try:
            done = probing(process.pid, "eval", "1")
            assert (done.code, done.out, done.err) == (OK, "42\n", note(process.pid, "0")), done
            for what, words in ASK.items():
                done = probing(process.pid, *words)
                assert done.code == UNSUPPORTED and not done.out, done
                assert done.err.startswith(note(process.pid, "0") + "probing: ") and done.err.endswith(
                    "the agent of process %d is of probing 0 and cannot %s\n  'probing %d eject' stops it; then this "
                    "version's is loaded\n" % (process.pid, what, process.pid)), done
        finally:
            (folder / ("agent-%d.sock" % process.pid)).unlink()

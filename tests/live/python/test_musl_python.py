# SPDX-License-Identifier: GPL-3.0-or-later
"""A Python whose C library is musl, which `make check-long` builds: the reading, the agent in it, and the
eject."""
import json

import pytest

import agent
import pauses
import support
from environment import FAILED, OK
from pauses import Pause

pytestmark = pytest.mark.skipif(not support.ON_MUSL, reason="no Python on musl")
MUSL = pytest.mark.parametrize("interpreter", support.ON_MUSL, ids=repr)


@MUSL
@pytest.mark.parametrize("options", [(), ("--nonblocking",), ("--freeze",), ("--native",)])
def test_a_dump(interpreter, target, options):
    process = target("evaluated.py", "busy", interpreter=interpreter)
    main, = (thread for thread in support.dump(process.pid, "--locals", *options)["threads"]
             if thread["tid"] == process.pid)
    # musl has no unwind tables, which ends the native frames, and only these.
    assert not main["error"] or "--native" in options and (
        "no unwind information for code" in main["error"]), main
    frames = support.python_frames(main)
    assert frames[-1]["func"] == "<module>" and frames[-1]["file"].endswith("evaluated.py"), frames


@MUSL
@pytest.mark.parametrize("mode, thread", [("idle", "agent"), ("busy", "agent"), ("busy", "main")])
def test_code_is_evaluated(interpreter, target, probing, mode, thread):
    process = target("evaluated.py", mode, interpreter=interpreter)
    for i in range(support.count(10, 200)):
        done = probing(process.pid, "eval", "--thread", thread, "print(%d); numbers" % i)
        assert (done.code, done.out, done.err) == (OK, "%d\n[1, 2, 3]\n" % i, ""), done
    done = probing(process.pid, "eval", "--thread", thread, "1 / 0")
    assert done.code == FAILED and "ZeroDivisionError" in done.err, done


@MUSL
def test_it_comes_and_goes(interpreter, target, probing):
    """musl unmaps no library, so that it stays, and is taken again."""
    process = target("evaluated.py", "idle", interpreter=interpreter)
    for i in range(support.count(10, 50)):
        assert probing(process.pid, "eval", str(i)).out == "%d\n" % i
        done = probing(process.pid, "eject", "--json")
        assert json.loads(done.out) == {
            "pid": process.pid, "stopped": True, "unmapped": False,
            "reason": "this C library unmaps no library", "paused": None}, done
        assert not agent.ours(process.pid)
        assert agent.descriptors(process.pid) == [0, 1, 2]
    process.send(b"x")
    assert process.line() == "awake"
    assert process.wait()[0] == 0


@MUSL
def test_it_is_paused(interpreter, target, shared, probing):
    process = target("counting.py", shared.path, "4", interpreter=interpreter)
    with Pause(process.pid) as pause:
        before = pauses.total(shared)
        for _ in range(10):
            done = probing(process.pid, "eval", "len(counts)")
            assert done.code == OK and done.out == "4\n", done
            assert "could run while" in done.err or pauses.total(shared) == before, done
        done = probing(process.pid, "step", "--tid", support.thread_ids(process.pid)[1], "--json")
        assert done.code == OK and json.loads(done.out)["func"] == "work", done
        pause.interrupt()
    pauses.wait_until_runs(shared)
    assert pauses.nobody_traced(process.pid)

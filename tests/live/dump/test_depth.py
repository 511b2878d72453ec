# SPDX-License-Identifier: GPL-3.0-or-later
"""Deep recursion is shown in full."""
import time

import pytest

import support

DEPTH = 30000


def dump_deep(target, *options):
    started = time.monotonic()
    threads = support.dump(target.pid, *options)["threads"]
    took = time.monotonic() - started
    return [thread for thread in threads if thread["name"] == "deep"][0], took


def check(thread, expected):
    assert not thread["error"], thread["error"]
    frames = support.python_frames(thread)
    assert len(frames) == expected
    assert [frame["func"] for frame in frames[:DEPTH]] == ["recurse"] * DEPTH
    assert {frame["line"] for frame in frames[1:DEPTH]} == {10}


@pytest.mark.parametrize("interpreter", support.INTERPRETERS, ids=repr)
def test_30000_frames_in_full(interpreter):
    times, program = [], support.HERE / "programs" / "deep.py"
    for how, options, read in [("blocked", (), "idle"), ("blocked", ("--nonblocking",), "idle"),
                               ("blocked", ("--freeze",), "idle"), ("running", (), "stopped")]:
        with support.Target(interpreter, program, DEPTH, how) as target:
            expected = int(target.line().split()[1])
            support.wait_for_sleep(target.pid, "pipe_read") if how == "blocked" else None
            thread, took = dump_deep(target, *options)
            assert thread["read"] == read
            check(thread, expected)
            times.append((took, thread["pause_us"]))
    support.report("%s, 30,000 frames: whole command at most %.0f ms, pause at most %.1f ms" % (
        interpreter, 1e3 * max(took for took, _ in times), 1e-3 * max(pause for _, pause in times)))

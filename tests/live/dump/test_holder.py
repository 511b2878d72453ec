# SPDX-License-Identifier: GPL-3.0-or-later
"""The GIL holder, with threads that acquire and release the GIL all the time."""
import pytest

import support

# Three threads that sleep and compute by turns.
PROGRAM = """
import threading, time
def turns():
    while True:
        time.sleep(0.001)
        sum(range(200000))
for _ in range(2):
    threading.Thread(target=turns, daemon=True).start()
print("ready", flush=True)
turns()
"""


@pytest.mark.parametrize("options", [[], ["--freeze"]], ids=" ".join)
@pytest.mark.parametrize("interpreter", support.one_per_version((3, 6)), ids=repr)
def test_who_sleeps_does_not_hold_it(interpreter, options):
    """The holder is as of the moment at which the thread was read, not at which threads were listed."""
    held = 0
    with support.Program([interpreter.exe, "-c", PROGRAM], env=interpreter.env) as program:
        assert program.line() == "ready"
        for _ in range(support.count(60, 1000)):
            threads = support.dump(program.pid, *options)["threads"]
            holders = [thread for thread in threads if thread["gil"] == "holds"]
            assert len(holders) <= 1, threads
            held += len(holders)
            for thread in holders:
                assert "sleep" not in (thread["waits_for"] or ""), thread
    assert held

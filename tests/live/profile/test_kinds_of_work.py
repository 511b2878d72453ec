# SPDX-License-Identifier: GPL-3.0-or-later
"""Shares beside what programs of five kinds measure of their own functions, on each version."""
import pytest

import profiles
import support
from profiles import Recording

KINDS = ["python", "c", "sleeps", "tiny", "lockstep"]
RATE = 500
PLAIN = support.one_per_version((3, 8))
THREADED = {i.version: i for i in support.INTERPRETERS if i.free_threaded and not i.debug_build}
ALL = PLAIN + list(THREADED.values())
# In the short form each kind is tried on one interpreter.
CASES = [(kind, interpreter) for number, kind in enumerate(KINDS)
         for interpreter in (ALL if support.LONG else ALL[number % len(ALL):][:1])]
PROGRAM = support.HERE / "programs" / "kinds_of_work.py"


@pytest.mark.parametrize("kind, interpreter", CASES, ids=lambda each: str(each))
def test_shares(kind, interpreter):
    """In the long form within a point: four standard errors of its samples are less."""
    with support.Target(interpreter, PROGRAM, kind, RATE) as target:
        assert target.line() == "ready"
        support.wait_for_sleep(target.pid, "pipe_read")
        before = profiles.counted(target.pid)
        recording = Recording(target.pid, "--json", "-d", "900s", "-r", RATE)
        recording.samples()
        target.send(b"go %f\n" % support.count(1, 90))
        words = target.line(timeout=900).split()
        support.wait_for_sleep(target.pid, "pipe_read")
        recording.interrupt()
        result = recording.result()
        used = profiles.counted(target.pid) - before
    assert abs(result["weight_ns"] - used) < 0.001 * used + 1e6
    assert result["cost"]["unreadable"] == 0
    spent = {name: float(value) for name, value in zip(words[::2], words[1::2])}
    found, count, off = profiles.shares(result), result["independent_samples"], {}
    for name, milliseconds in spent.items():
        true = milliseconds / sum(spent.values())
        off[name] = found[name] - 100 * true
        assert abs(off[name]) < 400 * (true * (1 - true) / count) ** 0.5 + (0 if support.LONG else 1), (off, found, spent)
    if support.LONG:
        assert max(map(abs, off.values())) < 1, (off, count)
    support.report("%s, %s: %d independent samples, at most %.2f points off" % (
        kind, interpreter, count, max(map(abs, off.values()))))

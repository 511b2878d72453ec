# SPDX-License-Identifier: GPL-3.0-or-later
"""Shares compared with measurements of five kinds of programs, on each version."""
import json

import pytest

import profiles
import support
from profiles import Recording

KINDS = ["python", "c", "sleeps", "tiny", "lockstep"]
RATE = 500
# They count as half as many independent ones, as they are not of the same weight.
SAMPLES = support.count(150, 10000)
PLAIN = support.one_per_version((3, 8))
THREADED = {i.version: i for i in support.INTERPRETERS if i.free_threaded and not i.debug_build}
ALL = PLAIN + list(THREADED.values())
PROGRAM = support.HERE / "programs" / "kinds_of_work.py"


def recorded(probing, kind, interpreter, file):
    """(recording, each function's own measurement) of work until there are enough samples."""
    with support.Target(interpreter, PROGRAM, kind, RATE) as target:
        assert target.line() == "ready"
        support.wait_for_sleep(target.pid, "pipe_read")
        before = profiles.counted(target.pid)
        recording = Recording(target.pid, "-d", "3600s", "-r", RATE, "-o", file)
        recording.samples()
        while profiles.taken(file) < SAMPLES:
            target.send(b"go 1\n")
            words = target.line(timeout=900).split()
        support.wait_for_sleep(target.pid, "pipe_read")
        recording.interrupt()
        code, _, err = recording.end()
        assert code == 0 and not err, err
        used = profiles.counted(target.pid) - before
    result = json.loads(probing(file, "perf", "--json").out)
    assert abs(result["weight_ns"] - used) < 0.001 * used + 1e6
    assert profiles.readable(result)
    return result, {name: float(value) for name, value in zip(words[::2], words[1::2])}


def check_shares(result, spent, name):
    """The error of each share in points; none is over four standard errors."""
    found, count, off = profiles.shares(result), result["independent_samples"], {}
    whole = sum(found[function] for function in spent)
    assert whole > 90, found  # the rest reads the clock
    for function, milliseconds in spent.items():
        true = milliseconds / sum(spent.values())
        off[function] = 100 * (found[function] / whole - true)
        assert abs(off[function]) < 400 * (true * (1 - true) / count) ** 0.5 + support.count(1, 0), (off, found, spent)
    support.report("%s: %d independent samples, at most %.2f points off" % (
        name, count, max(map(abs, off.values()))))
    return off


@pytest.mark.parametrize("kind", KINDS)
def test_shares(probing, tmp_path, kind):
    """In the short form on one interpreter; in the long one on each, and together within one point."""
    number = KINDS.index(kind)
    off = []
    for interpreter in ALL if support.LONG else ALL[number % len(ALL):][:1]:
        name = "%s, %s" % (kind, interpreter)
        result, spent = recorded(probing, kind, interpreter, tmp_path / (name + ".profile"))
        off.append(check_shares(result, spent, name))
    if support.LONG:
        for function in off[0]:
            assert abs(sum(each[function] for each in off)) < len(off), (function, off)

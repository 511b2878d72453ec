# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that measure their own functions, compared with their recordings in each mode."""
import json

import pytest

import profiles
import support

OK = 0
SECONDS = support.count(3, 12)
MODES = ("cpu", "wall", "runqueue", "gil", "blocked")


def measured(target, interpreter, file):
    """Has it measured and recorded at the same time; the seconds that its functions say, by mode."""
    process = target("measures_itself.py", interpreter=interpreter)
    recording = profiles.Recording(process.pid, "-r", 500, "-d", "300s", "-o", file)
    recording.samples()
    process.send(b"%f\n" % SECONDS)
    spent = {mode: {} for mode in MODES}
    for mode, name, seconds in map(str.split, iter(lambda: process.line(timeout=300), "end")):
        spent[mode][name] = float(seconds)
    # The kernel counts the time of a thread that runs at its ticks only.
    support.wait_for_sleep(process.pid, "pipe_read")
    recording.interrupt()
    code, _, err = recording.end()
    assert code == OK and not err, err
    return spent


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 6)), ids=repr)
def test_each_mode(target, interpreter, probing, tmp_path):
    """Shares of the functions that measured themselves for a mode, among each other."""
    file = tmp_path / "run.profile"
    spent = measured(target, interpreter, file)
    assert spent["cpu"] and spent["wall"] and spent["blocked"]
    for mode in MODES:
        made = probing(file, "perf", "--json", "-m", mode)
        assert made.code == OK and not made.err, made
        result, true = json.loads(made.out), spent[mode]
        found = {row["func"]: row["total_ns"] for row in result["functions"] if row["func"] in true}
        whole, weight = sum(true.values()), sum(found.values())
        assert weight > 0 or not true, (mode, true)
        for name, seconds in true.items():
            share = seconds / whole
            # Of n samples, four times the standard error: once in 16,000 that is chance.
            samples = max(result["independent_samples"] * weight / result["weight_ns"], 1)
            error = 4 * (share * (1 - share) / samples) ** 0.5
            assert abs(found.get(name, 0) / weight - share) < error + 0.01, (mode, name, found, true)
        if mode == "cpu":
            assert abs(weight / 1e9 / whole - 1) < 0.1, (found, true)

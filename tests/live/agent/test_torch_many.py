# SPDX-License-Identifier: GPL-3.0-or-later
"""Many torch steps timed by the agent: their cost, their memory, and how exact the times are, compared
with the program's own and torch.profiler's times of the same calls."""
import json
import os
import signal
import statistics
import subprocess
from pathlib import Path

import pytest

import environment
import support
import training
from environment import OK

CLOSE = 0.03  # difference of two clocks for the same call
LEAST = 1e-6  # seconds: digits of torch.profiler's clock
# A step that left 22 bytes, or a sampled one 220, would be found out.
GROWTH, STEPS = 2 << 20, support.count(10_000, 100_000)


@pytest.fixture(params=training.TORCHES, ids=repr)
def torch(request):
    request.param.check()
    return request.param


def run(process, count):
    process.send(b"run %d\n" % count)
    assert process.line(timeout=1000) == "done"


def rows(probing, process, sql):
    done = probing(process.pid, "query", "-f", "json", sql)
    assert done.code == OK, done
    return json.loads(done.out)


def put(probing, process, setting):
    assert probing(process.pid, "config", setting).code == OK


def anonymous(process):
    """Rings are files, and bounded."""
    status = Path("/proc/%d/status" % process.pid).read_text()
    return int(status.split("RssAnon:")[1].split()[0]) << 10


def test_memory_stays_flat(probing, torch):
    with torch.start("many.py", 8) as process:
        assert process.line(timeout=400) == "ready"
        put(probing, process, "torch.profiling=0.1")
        run(process, STEPS // 5)
        before = anonymous(process)
        for _ in range(10):
            run(process, STEPS // 10)
            put(probing, process, "torch.profiling=off")
            put(probing, process, "torch.profiling=0.1")
        assert anonymous(process) - before < GROWTH
        kinds = {row["kind"]: row["n"] for row in rows(
            probing, process, "SELECT kind, count(*) AS n FROM python.torch_step_timing GROUP BY kind")}
        assert kinds["sampled"] > 100, kinds


def test_cost_at_the_default_rate(probing, torch):
    """Of steps that are not long: less than a percent of all of them together."""
    with torch.start("many.py", 256) as process:
        assert process.line(timeout=400) == "ready"
        put(probing, process, "torch.profiling=on")
        run(process, support.count(3000, 30_000))
        put(probing, process, "torch.profiling=off")
        found = {row["kind"]: row for row in rows(probing, process, "SELECT * FROM torch.overhead")}
        print(json.dumps(found, indent=1))
        assert found["sampled"]["pairs"] >= 10 and found["unsampled"]["pairs"] > 1000
        # Of few sampled steps, some of which another process interrupted, the median says little.
        assert found["all" if support.LONG else "unsampled"]["overhead"] < 1, found


def stored(process):
    """The rows of its steps stored by 'probing record'."""
    maps = Path("/proc/%d/maps" % process.pid).read_text().splitlines()
    ring, = {Path(line.split()[-1]) for line in maps if line.endswith("/python.torch_step_timing.ring")}
    return [each for each in ring.parent.iterdir() if "torch_step_timing" in each.name and each.suffix == ".cold"]


def test_stored_rows_count_once(probing, torch):
    """Also the rows that are both in the store and in the ring."""
    with torch.start("many.py", 8) as process:
        assert process.line(timeout=400) == "ready"
        put(probing, process, "torch.profiling=0.1")
        run(process, 2000)
        with subprocess.Popen([support.BINARY, "record", str(process.pid)], stdin=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as recorder:
            environment.wait_until(lambda: stored(process), 100)
            recorder.send_signal(signal.SIGINT)
            assert recorder.wait(timeout=100) == OK
        counts = rows(probing, process, "SELECT kind, count(*) AS n FROM python.torch_step_timing GROUP BY kind")
        expected = {row["kind"]: row["n"] for row in counts}
        found = {row["kind"]: row["steps"] for row in rows(probing, process, "SELECT * FROM torch.overhead")}
        assert found["sampled"] == expected["sampled"] and found["unsampled"] == expected["unsampled"], (found, expected)


def beside(probing, process, word):
    """By module, the durations of the same calls: (ours, the program's clock, profiler's)."""
    process.send(word.encode() + b"\n")
    done = probing(process.pid, "perf", "--torch", "--exact", "--json", "--steps", "10")
    process.send(b"\n")
    told = json.loads(process.line(timeout=400))
    assert process.line() == "[]"
    assert done.code == OK, done
    ours, found = {}, {}
    for row in rows(probing, process, "SELECT module, step, duration FROM python.torch_calls "
                                      "WHERE stage = 'forward' ORDER BY local_step, seq"):
        ours.setdefault((row["module"], row["step"]), []).append(row["duration"] / 1e3)
    for module, step, *theirs in told:
        if ours.get((module, step)):
            found.setdefault(module, []).append((ours[module, step].pop(0), *theirs))
    assert len(found["net"]) >= 10 and len(found["net.long"]) >= 20 <= len(found["net.short"]), found
    return found


def test_calls_beside_other_clocks(probing, torch):
    with torch.start("clocked.py") as process:
        assert process.line(timeout=400) == "ready"
        for word, which in (("clock", 1), ("profile", 2)):
            found = beside(probing, process, word)
            for module, calls in found.items():
                pairs = [(call[0], call[which]) for call in calls]
                print(torch, word, module, statistics.median(ours for ours, _ in pairs), statistics.median(
                    ours / theirs - 1 for ours, theirs in pairs))
                # The program reads its clock within the hooks' interval.
                if module != "net":
                    assert all(ours >= theirs - LEAST for ours, theirs in pairs), (module, pairs)
                if module != "net.short":
                    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
                    assert abs(ratio - 1) < CLOSE, (module, word, ratio)

# SPDX-License-Identifier: GPL-3.0-or-later
"""`perf --mode gil` and `--mode blocked`: holders and waiters, in all forms of output."""
import json
import subprocess
import time

import pytest

import profiles
import support

PROGRAM = support.HERE / "programs" / "modes.py"
FIGHT = support.HERE / "programs" / "gil_fight.py"


def perf(process, *options):
    result = subprocess.run([support.BINARY, str(process.pid), "perf", "--json", *options],
                            capture_output=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def query(path, sql):
    result = subprocess.run([support.BINARY, path, "query", "-f", "json", sql],
                            capture_output=True, check=True)
    return json.loads(result.stdout)


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 7)), ids=repr)
def test_gil(interpreter, tmp_path):
    path = str(tmp_path / "x.profile")
    with support.Target(interpreter, PROGRAM, 0, 2) as process:
        assert process.line() == "ready"
        recording = perf(process, "-d", "3s", "--mode", "gil", "-o", path)
    names = {thread["tid"]: thread["name"] for thread in recording["threads"]}
    held = {row["func"]: row["total_ns"] for row in recording["functions"]}
    assert recording["mode"] == "gil"
    assert held["hog"] > 0.6 * recording["weight_ns"]
    waits = {}
    for wait in recording["waits"]:
        assert wait["for"] == "gil"
        pair = names[wait["tid"]], names.get(wait["owner"])
        waits[pair] = waits.get(pair, 0) + wait["wall_ns"]
    of_wants = sum(ns for (waiter, _), ns in waits.items() if waiter == "wants")
    assert waits["wants", "hog"] > 0.5 * of_wants
    rows = query(path, "SELECT name, gil_ms, gil_wait_ms FROM profile.threads")
    threads = {row["name"]: row for row in rows}
    assert threads["hog"]["gil_ms"] > 2 * threads["wants"]["gil_ms"]
    assert abs(threads["wants"]["gil_wait_ms"] - of_wants / 1e6) < 1
    rows = query(path, "SELECT DISTINCT waits_for FROM profile.samples WHERE gil = 'waits' "
                               "AND thread = 'wants'")
    assert any(row["waits_for"].endswith(" hog") for row in rows)
    text = subprocess.run([support.BINARY, path, "perf", "--mode", "gil"], capture_output=True,
                          check=True).stdout.decode()
    assert "wants: the GIL, held by " in text and " of holding the GIL" in text


def check_fight(interpreter, tmp_path):
    """Holders and waiters, compared with the threads' own data, as shares of the elapsed time."""
    path = str(tmp_path / "x.profile")
    with support.Target(interpreter, FIGHT) as process:
        assert process.line() == "ready"
        recording = profiles.Recording(process.pid, "-d", "300s", "-r", 500, "--json", "-m", "gil", "-o", path)
        recording.samples()
        process.send(b"go 20\n")
        told = json.loads(process.line(timeout=300))
        recording.interrupt()
        result = recording.result()
    names = {thread["tid"]: thread["name"] for thread in result["threads"]}
    rows = query(path, "SELECT name, gil_ms, gil_wait_ms FROM profile.threads")
    counted = {row["name"]: row for row in rows}
    off = {}
    for name, of in told.items():
        # It never sleeps for anything but the GIL; while it waits for a processor, it may want that too.
        least, most = of["fought"] - of["ran"] - of["waited"], of["fought"] - of["ran"]
        waited = counted[name]["gil_wait_ms"]
        off["waits", name] = (waited - min(max(waited, least), most)) / of["fought"]
        if of["held"]:
            off["holds", name] = (counted[name]["gil_ms"] - of["held"]) / of["fought"]
    held, waits = {name: of["held"] for name, of in told.items()}, {}
    for wait in result["waits"]:
        pair = names[wait["tid"]], names.get(wait["owner"])
        waits[pair] = waits.get(pair, 0) + wait["wall_ns"]
    for waiter in ("one", "other"):
        known = sum(ns for (name, owner), ns in waits.items() if name == waiter and owner)
        # On a busy machine the GIL has no holder between two: the next one waits for a processor.
        whole = sum(ns for (name, _), ns in waits.items() if name == waiter)
        assert known / whole > sum(held.values()) / told[waiter]["fought"] - 0.15, (waits, told)
        for owner in held:
            off[waiter, owner] = waits.get((waiter, owner), 0) / known - held[owner] / sum(held.values())
    assert max(map(abs, off.values())) < 0.15, (off, told, waits)
    support.report("the GIL, %s: at most %.1f %% off" % (interpreter, 100 * max(map(abs, off.values()))))


if support.LONG:  # of some seconds on a busy machine, the samples are too few
    @pytest.mark.parametrize("interpreter", support.one_per_version((3, 7)), ids=repr)
    def test_fight(interpreter, tmp_path):
        check_fight(interpreter, tmp_path)


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 7)), ids=repr)
def test_blocked(interpreter, tmp_path):
    path = str(tmp_path / "x.profile")
    with support.Target(interpreter, PROGRAM, 2, 5) as process:
        assert process.line() == "ready"
        recording = perf(process, "-d", "1s", "--mode", "blocked", "-o", path)
    names = {thread["tid"]: thread["name"] for thread in recording["threads"]}
    by_name = {names[wait["tid"]]: wait for wait in recording["waits"] if wait["tid"]}
    assert recording["weight_ns"] > 0
    assert by_name["owner"]["for"] == "time"
    assert by_name["listens"]["for"] == "descriptor"
    assert "listening on 127.0.0.1:" in by_name["listens"]["what"]
    assert by_name["second"]["for"] == "lock"
    assert names[by_name["second"]["owner"]] == "owner"
    longest = max(recording["waits"], key=lambda wait: wait["wall_ns"])["wall_ns"]
    assert longest <= 1.2 * recording["duration_ns"]
    rows = query(path, "SELECT DISTINCT thread, waits_for FROM profile.samples "
                               "WHERE state = 'asleep'")
    assert any(row["thread"] == "second" and row["waits_for"].startswith("an RLock, held by ")
               and row["waits_for"].endswith(" owner") for row in rows)


def test_formats_that_do_not_have_it(tmp_path):
    result = subprocess.run([support.BINARY, "perf", "--mode", "gil", "-o",
                             str(tmp_path / "x.pb.gz"), "--", "true"], capture_output=True,
                            check=False)
    assert result.returncode == 2 and b"has no mode 'gil'" in result.stderr
    assert not list(tmp_path.iterdir())


def test_ring_and_last(tmp_path):
    """A ring is read while it is written; the store's tests cover the removal of older chunks."""
    path = str(tmp_path / "x.profile")
    with support.Target(support.one_per_version((3, 7))[-1], PROGRAM, 0, 2) as process:
        assert process.line() == "ready"
        recording = profiles.Recording(process.pid, "--ring", "5m", "-o", path)
        end = time.monotonic() + 60
        last = None
        while not last or last["samples"] < 10:
            assert time.monotonic() < end
            result = subprocess.run([support.BINARY, path, "perf", "--last", "2s", "--json",
                                     "--mode", "wall"], capture_output=True, check=False)
            last = json.loads(result.stdout) if not result.returncode else None
        assert last["duration_ns"] <= 2e9 and last["ended"] == "the recording was not finished"
        recording.interrupt()
        code, _, err = recording.end()
        assert code == 0, err
    whole = json.loads(subprocess.run([support.BINARY, path, "perf", "--json", "--mode", "wall"],
                                      capture_output=True, check=True).stdout)
    assert whole["ended"] == "interrupted" and whole["process_cpu_ns"]
    part = json.loads(subprocess.run([support.BINARY, path, "perf", "--json", "--mode", "wall",
                                      "--last", "500ms"], capture_output=True, check=True).stdout)
    assert part["duration_ns"] == 5e8
    assert part["weight_ns"] < whole["weight_ns"] and part["process_cpu_ns"] is None


def test_ring_needs_a_file():
    result = subprocess.run([support.BINARY, "perf", "--ring", "1m", "--", "true"],
                            capture_output=True, check=False)
    assert result.returncode == 2 and b"it is for '-o FILE.profile'" in result.stderr

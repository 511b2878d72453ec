# SPDX-License-Identifier: GPL-3.0-or-later
"""perf --rotate: a series of recordings, of which the last ones are kept."""
import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import time

import pytest

import profiles
import support
from terminal import Terminal

OK, FAILED, USAGE = range(3)


@pytest.fixture(name="busy")
def fixture_busy(target):
    return profiles.busy(target)


class Series:
    """The command, and what it says of each file when that is complete."""

    def __init__(self, pid, *options):
        self._process = subprocess.Popen(
            [support.BINARY, str(pid), "perf", *map(str, options)], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)

    def part(self):
        return json.loads(self._process.stdout.readline())

    def recorders(self):
        """The pids of the processes that record the parts."""
        pid = self._process.pid
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
            return [int(word) for word in file.read().split()]

    def samples(self):
        """Waits until one waits for the time of its next sample."""
        end = time.monotonic() + 60
        while not self.recorders():
            assert time.monotonic() < end
        support.wait_for_sleep(self.recorders()[0], "hrtimer_nanosleep")

    def interrupt(self):
        self._process.send_signal(signal.SIGINT)

    def kill(self):
        self._process.kill()

    def end(self):
        out, err = self._process.communicate(timeout=120)
        return self._process.returncode, [json.loads(line) for line in out.splitlines()], err


def test_a_series(busy, probing, tmp_path):
    series = Series(busy.pid, "--rotate", "0.5s", "--keep", 2, "--json", "-o", tmp_path / "run.profile")
    parts = [series.part() for _ in range(4)]
    series.interrupt()
    code, rest, err = series.end()
    assert code == OK and not err
    parts += rest
    assert parts[-1]["ended"] in ("interrupted", None) and not any(part["ended"] for part in parts[:-1])
    names = sorted(os.listdir(str(tmp_path)))
    assert names == sorted(os.path.basename(part["recording"]) for part in parts[-2:])
    assert all(re.fullmatch(r"run-\d{8}-\d{6}(-\d+)?\.profile", name) for name in names), names
    for before, after in zip(parts, parts[1:]):
        assert after["timestamp"] >= before["timestamp"] + before["duration_ns"] / 1e9 - 0.001
    kept = json.loads(probing(parts[-2]["recording"], "perf", "--json").out)
    assert "burn" in profiles.shares(kept) and kept["duration_ns"] == parts[-2]["duration_ns"]


def test_its_end(busy, probing, tmp_path):
    """By --duration, and with the process; all are kept."""
    code, parts, err = Series(busy.pid, "--rotate", "0.4s", "-d", "3s", "--json", "-o",
                              tmp_path / "a.profile").end()
    assert code == OK and not err and len(parts) >= 2
    assert len(os.listdir(str(tmp_path))) == len(parts)
    series = Series(busy.pid, "--rotate", "300s", "--json", "-o", tmp_path / "b.profile")
    series.samples()
    busy.kill()
    code, parts, err = series.end()
    assert code == OK and [part["ended"] for part in parts] == ["the process ended"], err


def test_another_file_of_the_name(busy, tmp_path):
    """Only what it has written itself is removed."""
    series = Series(busy.pid, "--rotate", "0.5s", "--keep", 1, "--json", "-o", tmp_path / "run.profile")
    first = series.part()["recording"]
    os.rename(first, str(tmp_path / "moved"))
    with open(first, "wb") as file:
        file.write(b"mine")
    for _ in range(2):
        series.part()
    series.interrupt()
    assert series.end()[0] == OK
    with open(first, "rb") as file:
        assert file.read() == b"mine"


def test_killed(busy, tmp_path):
    """What is being recorded then is made complete, and what was not begun leaves nothing."""
    series = Series(busy.pid, "--rotate", "300s", "--json", "-o", tmp_path / "run.profile")
    series.samples()
    series.kill()
    series.end()
    end = time.monotonic() + 60
    while len(os.listdir(str(tmp_path))) > 1:  # the file and its journal
        assert time.monotonic() < end
    name, = os.listdir(str(tmp_path))
    with contextlib.closing(sqlite3.connect(str(tmp_path / name))) as database:
        assert database.execute("SELECT ended FROM recording").fetchone() == ("interrupted",)
    assert busy.alive()


def test_a_recorder_that_is_killed(busy, tmp_path):
    series = Series(busy.pid, "--rotate", "300s", "--json", "-o", tmp_path / "run.profile")
    series.samples()
    os.kill(series.recorders()[0], signal.SIGKILL)
    code, parts, err = series.end()
    assert code == FAILED and not parts and "was ended by signal 9" in err, err
    assert busy.alive()


@pytest.mark.parametrize("words, says", [
    (["--keep", "3"], "--keep is for --rotate"),
    (["--rotate", "1s"], "--rotate writes .profile files"),
    (["--rotate", "1s", "-o", "x.html"], "--rotate writes .profile files"),
    (["--rotate", "1s", "-o", "x.profile", "--ring", "1m"], "does not go with"),
    (["--rotate", "1s", "-o", "x.profile", "-b"], "does not go with"),
    (["--rotate", "1s", "-o", "x.profile", "--", "true"], "of a process that runs")])
def test_refused(busy, probing, words, says):
    before = [] if "--" in words else [busy.pid]
    refused = probing(*before, "perf", *words)
    assert refused.code == USAGE and says in refused.err, refused


def test_what_a_terminal_is_told(busy, tmp_path):
    """Once, and not that it takes as long as other recordings do."""
    with Terminal(busy.pid, "perf", "--rotate", "400ms", "-o", tmp_path / "run.profile") as terminal:
        first = terminal.until("; Ctrl-C ends it")
        rest = terminal.until(" of %d" % busy.pid) + terminal.until(" of %d" % busy.pid)
        terminal.send("\x03")
        out, code = terminal.end()
    assert code == OK and first.endswith("sampling %d, to a new file after each 400 ms" % busy.pid), first
    assert "sampling" not in rest + out, (rest, out)


def test_what_has_no_end(busy, tmp_path):
    with Terminal(busy.pid, "perf", "--ring", "1m", "-o", tmp_path / "ring.profile") as terminal:
        assert terminal.until("; Ctrl-C ends it").endswith("sampling %d" % busy.pid)
        terminal.until(" samples · ")
        terminal.send("\x03")
        assert terminal.end()[1] == OK

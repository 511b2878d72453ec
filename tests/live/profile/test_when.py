# SPDX-License-Identifier: GPL-3.0-or-later
"""perf --when: only the time around moments at which a condition held is kept."""
import contextlib
import json
import os
import pathlib
import re
import sqlite3
import time

import pytest

import profiles
import support

OK, FAILED, USAGE = range(3)
EXAMPLES = re.findall(r'^\$ probing 4242 perf --when "(.*)" .*-o', (support.ROOT / "docs/profiling.md").read_text(),
                      re.M)
SLOW_STEPS = re.search(r'^probing -t run.profile -t 4242 query "(.*?)"$', (
    support.ROOT / "docs/cookbook.md").read_text(), re.S | re.M)[1]
WITH_GIL = [i for i in support.INTERPRETERS if i.version >= (3, 8) and not i.free_threaded]


def rows(file, sql):
    with contextlib.closing(sqlite3.connect(str(file))) as database:
        return database.execute(sql).fetchall()


def until(condition):
    end = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def order(process, line):
    process.send(line + b"\n")
    assert process.line() == "done"


@pytest.mark.parametrize("interpreter", WITH_GIL, ids=repr)
def test_a_wait_for_the_gil(target, interpreter, probing, tmp_path):
    """The example of the docs with less time."""
    assert "waiting = 'gil' AND waited_ms > 1000" in EXAMPLES
    process = target("stalls.py", interpreter=interpreter)
    file = tmp_path / "run.profile"
    recording = profiles.Recording(process.pid, "--when", "waiting = 'gil' AND waited_ms > 300", "-o", file)
    recording.samples()
    for _ in range(20):
        order(process, b"hog 60000000")
        if file.exists() and rows(file, "SELECT * FROM windows"):
            break
    until(lambda: rows(file, "SELECT * FROM windows"))
    recording.interrupt()
    code, out, err = recording.end()
    assert code == OK and not err and re.search(r"[1-9] windows? of it, ", out), (out, err)
    result = json.loads(probing(file, "perf", "--json", "-m", "gil").out)
    clock = re.search(r"^windows: (\S+ \S+)–(\d\d:\d\d:\d\d)(, |$)", out, re.M)
    begin = result["windows"][0]["timestamp"]
    assert clock[1] == time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(begin)), (clock, begin)
    assert abs(begin - result["timestamp"] - result["windows"][0]["begin_ns"] / 1e9) < 0.01
    covered = sum(window["end_ns"] - window["begin_ns"] for window in result["windows"])
    assert result["when"] == "waiting = 'gil' AND waited_ms > 300"
    assert "hog" in profiles.shares(result)
    assert result["weight_ns"] <= covered <= result["duration_ns"]
    assert "waiter: the GIL, held by" in probing(file, "perf", "-m", "gil").out
    inside = probing(file, "query", "-f", "json", "SELECT min(time) AS first FROM profile.samples")
    assert inside.code == OK
    assert json.loads(inside.out)[0]["first"] >= result["timestamp"] + result["windows"][0]["begin_ns"] / 1e9 - 0.01
    page = tmp_path / "run.html"
    assert probing(file, "flamegraph", "-o", page).code == OK and b"hog" in page.read_bytes()


def test_a_select(target, probing, tmp_path):
    """It begins and ends to hold; each time is a window, and together they are all that is there."""
    process = target("stalls.py")
    file = tmp_path / "run.profile"
    recording = profiles.Recording(process.pid, "--when", "SELECT sum(cpu_ms) > 100 FROM threads", "-o", file)
    recording.samples()
    for _ in range(2):
        before = len(rows(file, "SELECT * FROM windows") if file.exists() else [])
        while not file.exists() or len(rows(file, "SELECT * FROM windows")) == before:
            order(process, b"busy 0.3")
        until(lambda: rows(file, "SELECT duration_ns > 12000000000 + (SELECT max(end_ns) FROM windows) "
                                 "FROM recording")[0][0])
    recording.interrupt()
    assert recording.end()[0] == OK
    result = json.loads(probing(file, "perf", "--json", "-m", "wall").out)
    assert len(result["windows"]) >= 2 and "busy" in profiles.shares(result)
    covered = sum(window["end_ns"] - window["begin_ns"] for window in result["windows"])
    assert abs(result["weight_ns"] - covered) < 0.1 * covered + 1e8
    # Beside itself, it has the same windows.
    both = json.loads(probing("perf", "--diff", file, file, "--json").out)
    assert [(both[side]["when"], both[side]["windows"]) for side in ("before", "after")] == \
        2 * [(result["when"], result["windows"])]
    assert probing("perf", "--diff", file, file).out.count(" windows of it, ") == 2


def test_what_was_long_before(target, probing, tmp_path):
    """It is gone before the condition holds."""
    process = target("stalls.py")
    file = tmp_path / "run.profile"
    recording = profiles.Recording(process.pid, "--when", "name = 'waiter'", "-o", file)
    recording.samples()
    order(process, b"busy 0.5")
    until(lambda: file.exists() and rows(file, "SELECT 1 FROM functions WHERE name = 'busy'"))
    busy_until = rows(file, "SELECT duration_ns FROM recording")[0][0]
    until(lambda: rows(file, "SELECT min(begin_ns) > %d FROM chunks" % busy_until)[0][0])
    assert not rows(file, "SELECT * FROM windows")
    order(process, b"hog 60000000")
    until(lambda: rows(file, "SELECT * FROM windows"))
    recording.interrupt()
    assert recording.end()[0] == OK
    result = json.loads(probing(file, "perf", "--json", "-m", "wall").out)
    assert {"hog"} <= profiles.shares(result).keys() and "busy" not in profiles.shares(result), result
    assert result["weight_ns"] < result["duration_ns"]


def test_a_slow_step(target, probing, tmp_path):
    """The program says itself how long its steps take."""
    (tmp_path / "data").mkdir(mode=0o700)
    process = target("says_steps.py", support.ROOT / "package", env={
        "PROBING_DATA_DIR": str(tmp_path / "data"),
        "PROBING_AGENT": str(pathlib.Path(support.BINARY).with_name("libprobing-agent.so"))})
    file = tmp_path / "run.profile"
    recording = profiles.Recording(process.pid, "--when", "step_ms > 30000 AND step >= 1000", "-o", file)
    recording.samples()
    until(lambda: file.exists() and (1,) in rows(file, "SELECT duration_ns > 2000000000 FROM recording"))
    assert not rows(file, "SELECT * FROM windows")
    order(process, b"slow")
    until(lambda: rows(file, "SELECT * FROM windows"))
    recording.interrupt()
    code, out, err = recording.end()
    assert code == OK and not err and "1 window of it, " in out, (out, err)
    joined = probing("-t", file, "-t", process.pid, "query", "-f", "json", SLOW_STEPS)
    assert (1000, "slow") in {(row["step"], row["qualname"]) for row in json.loads(joined.out)}, joined
    assert process.alive()


def test_it_never_holds(target, probing, tmp_path):
    process = target("stalls.py")
    file = tmp_path / "run.profile"
    made = probing(process.pid, "perf", "--when", "name = 'nobody'", "-d", "3s", "-o", file)
    assert made.code == OK and "0 windows of it" in made.out, made
    assert rows(file, "SELECT count(*) FROM chunks") == [(0,)] == rows(file, "SELECT count(*) FROM totals")


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples(example, target, probing, tmp_path):
    process = target("stalls.py")
    made = probing(process.pid, "perf", "--when", example, "-d", "1.5s", "-o", tmp_path / "x.profile")
    assert made.code == OK and "0 windows of it" in made.out, made


@pytest.mark.parametrize("condition, says", [
    ("waited_ms >", "--when: "), ("nonsense = 1", "no such column: nonsense"), ("DELETE FROM threads", "--when: "),
    ("1; SELECT 1", "--when: "), ("SELECT 1; SELECT 2", "one expression or SELECT"),
    ("SELECT * FROM sqlite_master", "--when: "), ("1)) UNION SELECT load_extension('x') --", "--when: "),
    ("SELECT readfile('/etc/passwd')", "no such function"), (" ", "--when: ")])
def test_bad_conditions(condition, says, target, probing, tmp_path):
    """Before anything is recorded."""
    process = target("stalls.py")
    refused = probing(process.pid, "perf", "--when", condition, "-o", tmp_path / "x.profile")
    assert refused.code == USAGE and says in refused.err and not refused.out, refused
    assert os.listdir(str(tmp_path)) == []


def test_a_condition_that_never_ends(target, probing, tmp_path):
    process = target("stalls.py")
    refused = probing(process.pid, "perf", "--when", "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
                      "SELECT count(*) FROM n", "-d", "60s", "-o", tmp_path / "x.profile")
    assert refused.code == 5 and "takes too long" in refused.err, refused
    assert process.alive()


@pytest.mark.parametrize("words, says", [
    (["--when", "1"], "--when is not for a table\n  it is for '-o FILE.profile'"),
    (["--when", "1", "-o", "x.profile", "--ring", "1m"], "--ring is not for --when"),
    (["--when", "1", "-o", "x.profile", "--", "true"], "--when is not for a program to start"),
    (["--last", "5s", "--", "true"], "--last is not for a program to start"),
    (["--background", "--", "true"], "--background is not for a program to start"),
    (["--background", "--from", "1s"], "--from is not for --background"), (["-b", "-o", "x.html"], "it is for '-o FILE.profile'"),
    (["-o", "x.svg", "--annotate", "x.py"], "--annotate is not for '-o FILE' for a viewer"),
    (["--diff", "x.profile", "--annotate", "x.py"], "--annotate is not for --diff"),
    (["--stop", "--rate", "5"], "--rate is not for --stop"),
    (["--last", "5s", "--duration", "5s"], "--duration is not for --last"),
    (["--torch", "-o", "x.profile"], "--torch is not for '-o FILE.profile'")])
def test_refused(words, says, target, probing):
    before = [] if "--" in words else [target("stalls.py").pid]
    refused = probing(*before, "perf", *words)
    assert refused.code == USAGE and says in refused.err, refused


def test_in_the_background(target, probing, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    process = target("stalls.py")
    file = tmp_path / "x.profile"
    assert probing(process.pid, "perf", "-b", "--when", "cpu_ms > 50", "-o", file).code == OK
    while not rows(file, "SELECT * FROM windows"):
        order(process, b"busy 0.3")
    assert probing(process.pid, "perf", "--stop").code == OK
    assert "busy" in profiles.shares(json.loads(probing(file, "perf", "--json").out))

# SPDX-License-Identifier: GPL-3.0-or-later
"""Recordings in files: written while they are made, whole at any moment, and read back."""
import contextlib
import json
import os
import re
import resource
import signal
import sqlite3
import subprocess
import time

import pytest

import profiles
import support
from profiles import Recording

OK, FAILED, USAGE, UNSUPPORTED = range(4)
DOCUMENTED = re.findall("```sql\n(.*?)```",
                        (support.ROOT / "docs/profile-format.md").read_text(), re.S)
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]


@pytest.fixture(name="busy")
def fixture_busy():
    with support.Target(NEWEST, profiles.PROGRAM, 2) as target:
        assert target.line() == "ready"
        target.send(b"go 600\n")
        yield target


def rows(file, sql):
    with contextlib.closing(sqlite3.connect(str(file))) as database:
        return database.execute(sql).fetchall()


def wait_for_chunk(file, runs=1):
    """Until so many runs are in the file, as any program that knows SQLite sees it."""
    end = time.monotonic() + 60
    while not file.exists() or (rows(file, "SELECT sum(runs) FROM chunks")[0][0] or 0) < runs:
        assert time.monotonic() < end
        time.sleep(0.05)


def whole(file):
    assert rows(file, "PRAGMA integrity_check") == [("ok",)]


def test_there_and_back(probing, busy, tmp_path):
    """The file's output equals the recording's."""
    file = tmp_path / "run.profile"
    made = probing(busy.pid, "perf", "-d", "2s", "-o", file)
    assert made.code == OK and not made.err, made
    table, said = made.out.rsplit("\n", 2)[:2]
    assert said == "%s: the samples; 'probing FILE perf' shows them again" % file
    again = probing(file, "perf")
    assert again.code == OK and again.out == table + "\n" and "burn" in again.out
    wall = json.loads(probing(file, "perf", "--mode", "wall", "--json").out)
    names = profiles.shares(wall)
    assert wall["pid"] == busy.pid and "wait" in names and "burn" in names
    assert abs(wall["weight_ns"] - 3 * wall["duration_ns"]) < 0.02 * wall["weight_ns"]
    idle = json.loads(probing(file, "perf", "--json", "-m", "wall", "--threads", "idle-0").out)
    assert abs(idle["weight_ns"] - idle["duration_ns"]) < 0.02 * idle["weight_ns"]
    lines = json.loads(probing(file, "perf", "--json", "--lines", "--tid", busy.pid).out)
    assert {row["line"] for row in lines["functions"] if row["func"] == "burn"}
    assert oct(file.stat().st_mode)[-3:] == "600"
    assert os.listdir(tmp_path) == ["run.profile"]


def test_c_frames(probing, busy, tmp_path):
    """They get names when the recording is over, which are stored after the samples."""
    file, page = tmp_path / "run.profile", tmp_path / "run.html"
    made = probing(busy.pid, "perf", "--cc", "-d", "2s", "-o", file)
    assert made.code == OK and not made.err, made
    whole(file)
    assert probing(file, "perf").out == made.out.rsplit("\n", 2)[0] + "\n"
    result = json.loads(probing(file, "perf", "--json").out)
    assert result["native"]
    native = {row["func"]: row["module"] for row in result["functions"] if row["kind"] == "native"}
    # The interpreter is in the program, or in a library beside it.
    assert "python3" in native["_start"] and "python3" in native["PyEval_EvalCode"], native
    assert sum(row["self_ns"] for row in result["functions"]) == result["weight_ns"] == \
        rows(file, "SELECT sum(cpu_ns) FROM totals")[0][0]
    found = json.loads(probing(file, "query", "--format", "json", "SELECT func, module "
                               "FROM profile.functions WHERE kind = 'native'").out)
    assert {row["func"]: row["module"] for row in found}.items() >= native.items()
    assert probing(file, "flamegraph", "-o", page).code == OK and page.stat().st_size > 10000


def test_c_frames_of_a_killed_recording(probing, busy, tmp_path):
    """Nobody has named them: they are places in files."""
    file = tmp_path / "run.profile"
    recording = Recording(busy.pid, "--cc", "--duration", "300s", "-o", file)
    wait_for_chunk(file, 20)
    recording.kill()
    recording.end()
    result = json.loads(probing(file, "perf", "--json").out)
    names = {row["func"] for row in result["functions"]}
    assert "burn" in names and any(re.search(r"\+0x[0-9a-f]+$", name) for name in names), names


def test_what_a_part_has_cost(probing, busy, tmp_path):
    """Nobody knows: the cost is that of the whole recording, and says so."""
    file, page = tmp_path / "run.profile", tmp_path / "run.html"
    made = probing(busy.pid, "perf", "-d", "2s", "-r", 1000, "-o", file)
    assert made.code == OK and not made.err, made
    cost = re.compile(r"cost( of the whole recording, \d.*?s)?: (.*)$", re.M)
    part = probing(file, "perf", "--from", "1900ms")
    words, text = cost.search(part.out).groups()
    assert re.match(r" of the whole recording, \d[\d.]* s$", words), part.out
    assert cost.search(made.out).groups() == (None, text)
    whole_cost = json.loads(probing(file, "perf", "--json").out)["cost"]
    result = json.loads(probing(file, "perf", "--json", "--last", "100ms").out)
    assert result["cost"] == whole_cost and result["duration_ns"] <= 1e8
    assert 1.9e9 < whole_cost["duration_ns"] < 60e9
    assert probing(file, "perf", "--last", "100ms", "-o", page).code == OK
    assert '"cost":{"duration":%d,' % whole_cost["duration_ns"] in page.read_text().replace(" ", "")


def test_other_formats_from_it(probing, busy, tmp_path):
    file, viewer = tmp_path / "run.profile", tmp_path / "run.speedscope.json"
    assert probing(busy.pid, "perf", "-d", "1s", "-o", file).code == OK
    made = probing(file, "perf", "-o", viewer)
    assert made.code == OK and made.out.startswith("%s: " % viewer), made
    data = json.loads(viewer.read_text())
    weight = json.loads(probing(file, "perf", "--json").out)["weight_ns"]
    assert sum(sum(each["weights"]) for each in data["profiles"]) == weight


def test_the_documented_tables(probing, busy, tmp_path):
    """By any program that knows SQLite, without us."""
    file = tmp_path / "run.profile"
    assert probing(busy.pid, "perf", "-d", "2s", "-o", file).code == OK
    whole(file)
    result = json.loads(probing(file, "perf", "--json").out)
    own, total = [rows(file, query) for query in DOCUMENTED]
    states = rows(file, "SELECT part * totals_s, name, sum(wall_ns) / 1e9 FROM totals JOIN states USING (state), recording "
                        "GROUP BY part, state")
    for found, key in ((own, "self_ns"), (total, "total_ns")):
        assert {name: round(1e9 * seconds) for name, seconds in found if seconds} == {
            row["func"]: row[key] for row in result["functions"] if row[key]}
    wall = json.loads(probing(file, "perf", "--json", "-m", "wall").out)
    assert {name: round(1e9 * seconds) for _, name, seconds in states} == {
        name: weight for name, weight in wall["states"].items() if weight}
    threads = rows(file, "SELECT tid, name, cpu_ns FROM threads ORDER BY thread")
    assert threads == [(t["tid"], t["name"], t["cpu_ns"]) for t in result["threads"]]
    assert rows(file, "SELECT pid, cpu_ns FROM processes") == [
        (busy.pid, result["process_cpu_ns"])]
    assert rows(file, "SELECT rate, ended FROM recording") == [(100.0, "time over")]


def query(probing, target, sql):
    done = probing(target, "query", "-f", "json", sql)
    assert done.code == OK, done
    return json.loads(done.out)


def test_tables(probing, busy, tmp_path):
    """Each has the same data as the table that perf prints."""
    file = tmp_path / "run.profile"
    assert probing(busy.pid, "perf", "-d", "2s", "-o", file).code == OK
    cpu = json.loads(probing(file, "perf", "--json").out)
    wall = json.loads(probing(file, "perf", "--json", "-m", "wall", "--lines").out)
    functions = query(probing, file, "SELECT * FROM profile.functions")
    assert {row["qualname"]: round(1e6 * row["total_cpu_ms"]) for row in functions
            if row["total_cpu_ms"]} == {
                row["func"]: row["total_ns"] for row in cpu["functions"] if row["total_ns"]}
    lines = query(probing, file, "SELECT * FROM profile.lines WHERE self_wall_ms > 0")
    assert {(row["qualname"], row["lineno"]): round(1e6 * row["self_wall_ms"])
            for row in lines} == {(row["func"], row.get("line")): row["self_ns"]
                                  for row in wall["functions"] if row["self_ns"]}
    samples = query(probing, file, """
        SELECT qualname, sum(cpu_ns) AS ns FROM profile.samples JOIN profile.stacks USING (stack)
        WHERE depth = 0 GROUP BY 1 HAVING ns > 0""")
    assert {row["qualname"]: row["ns"] for row in samples} == {
        row["func"]: row["self_ns"] for row in cpu["functions"] if row["self_ns"]}
    threads = query(probing, file, "SELECT * FROM profile.threads")
    assert [(row["tid"], round(1e6 * row["cpu_ms"])) for row in threads] == [
        (thread["tid"], thread["cpu_ns"]) for thread in cpu["threads"]]
    assert round(1e6 * sum(row["wall_ms"] for row in threads)) == wall["weight_ns"]
    process, = query(probing, file, "SELECT * FROM profile.processes")
    recording, = query(probing, file, "SELECT * FROM profile.recording")
    assert process["pid"] == busy.pid and recording["stops"] == cpu["cost"]["stops"]
    assert recording["ended"] is None and recording["probing"] in probing("--version").out
    both = probing("-t", file, "-t", busy.pid, "query", "-f", "json",
                   "SELECT _target, count(*) AS n FROM profile.threads GROUP BY 1")
    assert json.loads(both.out) == [{"_target": str(file), "n": 3}], both
    assert "of recordings, and this is a process" in both.err
    nothing = probing(file, "query", "SELECT * FROM python.threads")
    assert nothing.code == UNSUPPORTED and "a recording holds samples" in nothing.err, nothing


# What the page does not show: nested joins of stacks, groups of files, threads.
MORE = ("SELECT thread, sum(cpu_ns), sum(runqueue_ns), sum(wall_ns) FROM profile.samples GROUP BY tid, thread",
        "SELECT callee.qualname, sum(cpu_ns) FROM profile.samples s JOIN profile.stacks f USING (stack) "
        "JOIN profile.stacks callee ON callee.stack = s.stack AND callee.depth = f.depth - 1 "
        "WHERE f.func = 'work' GROUP BY 1",
        "SELECT file, round(100 * sum(self_cpu_ms) / (SELECT sum(self_cpu_ms) FROM profile.functions), 1) "
        "FROM profile.functions WHERE file IS NOT NULL GROUP BY file",
        "SELECT duration, times, late, missed, unreadable, pause_p99_us, own_cpu_ms FROM profile.recording")


def test_the_cookbook(probing, busy, tmp_path):
    file = tmp_path / "run.profile"
    assert probing(busy.pid, "perf", "-d", "1s", "-o", file).code == OK
    page = (support.ROOT / "docs/cookbook.md").read_text()
    queries = re.findall(r'^\$ probing monday.profile query "(.*?)"$', page, re.S | re.M)
    assert len(queries) == page.count("probing monday.profile query") >= 5
    for sql in (*queries, *MORE):
        found = query(probing, file, sql.replace("\n> ", "\n").replace("'decode'", "'burn'")
                      .replace("'train_step'", "'work'"))
        assert found and all(value is not None for row in found for value in row.values()), sql


def test_a_query_that_records(probing, busy):
    rows_ = query(probing, busy.pid, "SELECT thread, func, sum(cpu_ms) AS cpu, sum(wall_ms) AS wall "
                  "FROM profile('1s', 200) GROUP BY 1, 2 ORDER BY 3 DESC")
    assert rows_[0]["func"] == "burn" and rows_[0]["cpu"] > 0
    assert {row["thread"] for row in rows_} == {"MainThread", "idle-0", "idle-1"}
    joined = query(probing, busy.pid, "SELECT sum(samples) AS n FROM python.threads "
                   "JOIN profile(1) USING (tid)")
    assert joined[0]["n"] > 10
    for sql, says in (("profile", "how long to record"), ("profile('x')", "no interval"),
                      ("profile('1s', 0)", "the rate of profile()"),
                      ("profile(1), profile(2)", "a statement records once")):
        failed = probing(busy.pid, "query", "SELECT 1 FROM " + sql)
        assert failed.code == USAGE and says in failed.err, failed


def test_a_query_that_records_can_be_ended(busy):
    process = subprocess.Popen([support.BINARY, str(busy.pid), "query",
                                "SELECT count(*) FROM profile('300s')"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.monotonic() + 20
    while "hrtimer_nanosleep" not in open("/proc/%d/wchan" % process.pid, encoding="ascii").read():
        assert time.monotonic() < end and process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT


def test_killed(probing, busy, tmp_path):
    """SIGKILL at any moment: the part written until then is a complete recording."""
    for number in range(support.count(5, 100)):
        file = tmp_path / ("run-%d.profile" % number)
        recording = Recording(busy.pid, "-d", "300s", "-r", 2000, "-o", file)
        wait_for_chunk(file)
        while profiles.taken(file) < 20:  # a chunk may have only sleeping threads
            time.sleep(0.01)
        time.sleep(number % 10 / 1000)
        recording.kill()
        recording.end()
        shown = probing(file, "perf")
        assert shown.code == OK and "the recording was not finished" in shown.out, shown
        assert "burn" in shown.out
        whole(file)
        assert "burn" in probing(file, "perf").out
    made = probing(busy.pid, "perf", "-d", "500ms", "-o", file)
    assert made.code == OK and not os.path.exists("%s-journal" % file), made


def test_while_it_is_written(probing, busy, tmp_path):
    """A reader sees one moment of it, and the writer continues."""
    file = tmp_path / "run.profile"
    recording = Recording(busy.pid, "-d", "300s", "-r", 1000, "-o", file)
    wait_for_chunk(file)
    with contextlib.closing(sqlite3.connect(str(file), isolation_level=None)) as reader:
        reader.execute("BEGIN")
        before = reader.execute("SELECT sum(samples) FROM totals").fetchone()
        for _ in range(5):
            shown = probing(file, "perf")
            assert shown.code == OK and "the recording was not finished" in shown.out, shown
            assert reader.execute("SELECT sum(samples) FROM totals").fetchone() == before
            time.sleep(0.3)
        reader.execute("ROLLBACK")
    other = probing(busy.pid, "perf", "-d", "1s", "-o", file)
    assert other.code == USAGE and "another recording" in other.err, other
    assert sorted(os.listdir(tmp_path)) == ["run.profile", "run.profile-journal"]
    wait_for_chunk(file, 1 + rows(file, "SELECT sum(runs) FROM chunks")[0][0])
    recording.interrupt()
    code, out, err = recording.end()
    assert code == OK and " · interrupted" in out and not err, (out, err)
    assert "interrupted" in probing(file, "perf").out


def test_target_ends(probing, busy, tmp_path):
    file = tmp_path / "run.profile"
    recording = Recording(busy.pid, "-d", "300s", "-o", file)
    wait_for_chunk(file)
    busy.kill()
    code, out, err = recording.end()
    assert code == OK and "the process ended" in out and not err, (out, err)
    assert "the process ended" in probing(file, "perf").out
    whole(file)


def too_large():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))


def test_no_more_room(probing, busy, tmp_path):
    """The recording ends, and the part written before is complete."""
    file = tmp_path / "run.profile"
    done = subprocess.run([support.BINARY, str(busy.pid), "perf", "-d", "300s", "-r", "5000", "-o",
                           str(file)], preexec_fn=too_large, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, check=False)
    assert done.returncode == FAILED and b"cannot write" in done.stderr, done
    assert b"perf' shows what it holds" in done.stderr, done
    shown = probing(file, "perf")
    assert shown.code == OK and "the recording was not finished" in shown.out, shown
    whole(file)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_full_disk(probing, busy, tmp_path):
    folder, file = tmp_path / "disk", tmp_path / "disk" / "run.profile"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", str(folder)], check=True)
    try:
        recording = Recording(busy.pid, "-d", "300s", "-r", 5000, "-o", file)
        code, _, err = recording.end()
        assert code == FAILED and "the disk is full" in err, err
        shown = probing(file, "perf")
        assert shown.code == OK and "burn" in shown.out, shown
        whole(file)
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_nothing_is_made_when_there_is_nothing_to_record(probing, tmp_path):
    before = tmp_path / "run.profile"
    before.write_text("something else")
    with support.Program(["sh", "-c", "echo ready; read line"]) as target:
        assert target.line() == "ready"
        assert probing(target.pid, "perf", "-o", before).code == UNSUPPORTED
    assert before.read_text() == "something else" and os.listdir(tmp_path) == ["run.profile"]


def test_what_makes_no_sense(probing, busy, tmp_path):
    file = tmp_path / "run.profile"
    assert probing(busy.pid, "perf", "-d", "200ms", "-o", file).code == OK
    for words, says in ((["-d", "5s"], "--duration is not for a recording"),
                        (["-r", "5"], "--rate is not for a recording"),
                        (["-o", tmp_path / "b.profile"], "a recording already")):
        result = probing(file, "perf", *words)
        assert result.code == USAGE and says in result.err, result
    for command in ("dump", "backtrace", "snapshot"):
        result = probing(file, command)
        assert result.code == UNSUPPORTED and "a recording holds samples" in result.err, result
    missing = probing(tmp_path / "none.profile", "perf")
    assert missing.code != OK and "there is no file" in missing.err, missing

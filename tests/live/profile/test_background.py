# SPDX-License-Identifier: GPL-3.0-or-later
"""Recordings in the background: started, found by the process that they are of, and ended."""
import json
import os
import re
import signal
import sqlite3
import subprocess
import tempfile
import time

import pytest

import profiles
import support

OK, FAILED, USAGE = range(3)
NO_PROCESS = 6


@pytest.fixture(name="runs", autouse=True)
def fixture_runs(monkeypatch):
    """A folder of recorders of this test alone."""
    with tempfile.TemporaryDirectory(prefix="probing-runs-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield folder


@pytest.fixture(name="busy")
def fixture_busy(target):
    return profiles.busy(target)


def begin(probing, pid, *words):
    """The recorder's pid, and its recording."""
    made = probing(pid, *(words or ("inject", "-P")), "--json")
    assert made.code == OK and not made.err, made
    said = json.loads(made.out)
    assert said["pid"] == pid
    return said["recorder"], said["recording"]


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_alive(pid):
    try:
        return support.thread_status(pid)["State"][0] not in "ZX"
    except OSError:
        return False


def samples(recording):
    with sqlite3.connect(recording) as database:
        return database.execute("SELECT sum(runs) FROM chunks").fetchone()[0] or 0


def last(probing, pid, *options):
    return probing(pid, "perf", "--last", "300s", "--json", *options)


def ends(recorder):
    until(lambda: not is_alive(recorder))


def test_a_recorder(target, interpreter, probing, tmp_path):
    """It is started, viewed from anywhere, and ended, with the printed commands."""
    process = target("profiled.py", 2, interpreter=interpreter)
    process.send(b"go 600\n")
    made = probing(process.pid, "inject", "-P")
    assert made.code == OK and not made.err, made
    recorder = int(re.search(r"by process (\d+); the last 10 m", made.out)[1])
    recording = re.search(r"^file: +(.*)$", made.out, re.M)[1]
    assert os.getsid(recorder) != os.getsid(0) and support.thread_status(recorder)["PPid"] != str(os.getpid())
    until(lambda: samples(recording) > 10)
    look, graph, stop = re.findall(r"probing (%d .*)" % process.pid, made.out)
    shown = probing(*look.split())
    assert shown.code == OK and "burn" in shown.out and not shown.err, shown
    assert "not finished" not in shown.out
    page = tmp_path / "x.html"
    assert probing(*graph.split(), "-o", page).code == OK and b"burn" in page.read_bytes()
    stopped = probing(*stop.split())
    assert stopped.code == OK and stopped.out.startswith(recording + ": "), stopped
    assert not is_alive(recorder) and process.alive()
    assert json.loads(probing(recording, "perf", "--json").out)["ended"] == "interrupted"
    again = probing(*stop.split())
    assert again.code == FAILED and "in the background" in again.err, again


def test_nothing_is_loaded(busy, probing):
    begin(probing, busy.pid)
    with open("/proc/%d/maps" % busy.pid, encoding="ascii") as maps:
        assert "libprobing" not in maps.read()
    assert probing(busy.pid, "perf", "--stop").code == OK


def test_a_second_one(busy, probing):
    recorder, recording = begin(probing, busy.pid)
    second = probing(busy.pid, "inject", "-P")
    assert second.code == FAILED and not second.out, second
    assert "process %d writes %s" % (recorder, recording) in second.err, second
    assert "perf --stop" in second.err, second
    assert probing(busy.pid, "perf", "--stop").code == OK


def test_perf_reads_the_samples_of_a_recorder(busy, probing, tmp_path):
    """A thread has one tracer: two would take samples from each other."""
    _, recording = begin(probing, busy.pid)
    until(lambda: samples(recording))
    before = profiles.counted(busy.pid)
    done = probing(busy.pid, "perf", "-d", "2s", "--json")
    used = profiles.counted(busy.pid) - before
    assert done.code == OK and "records this process already" in done.err, done
    found = json.loads(done.out)
    assert 1.9e9 < found["duration_ns"] < 2.1e9 and 0 < found["weight_ns"] <= used, (found, used)
    assert profiles.shares(found)["burn"] > 50, found
    page, file = tmp_path / "run.html", tmp_path / "run.profile"
    for output in page, file:
        done = probing(busy.pid, "perf", "-d", "1s", "-o", output)
        assert done.code == OK and "records this process already" in done.err, done
    assert "def burn(seconds)" in page.read_text()
    kept = json.loads(probing(file, "perf", "--json").out)
    assert 0.9e9 < kept["duration_ns"] < 1.1e9 and profiles.shares(kept)["burn"] > 50, kept
    assert "<unreadable: another tracer>" not in profiles.shares(json.loads(last(probing, busy.pid).out))
    # What the recorder does not sample is sampled.
    for options in ["--rate", "50"], ["--cc"]:
        own = probing(busy.pid, "perf", "-d", "500ms", "--json", *options)
        assert own.code == OK and "records this process" not in own.err, own


def test_many_at_once(busy, probing):
    """Exactly one of them records."""
    started = [subprocess.Popen([support.BINARY, str(busy.pid), "inject", "-P", "--json"],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(6)]
    done = [process.communicate() + (process.returncode,) for process in started]
    assert sorted(code for _, _, code in done) == [OK] + [FAILED] * 5, done
    assert all(b"recorded already" in err for _, err, code in done if code), done
    assert probing(busy.pid, "perf", "--stop").code == OK


def test_the_process_ends(busy, probing):
    """So does the recorder; the last minutes are found by the number of the process."""
    recorder, recording = begin(probing, busy.pid)
    until(lambda: samples(recording) > 10)
    busy.kill()
    ends(recorder)
    until(lambda: "its recording has ended" in last(probing, busy.pid).err)
    result = json.loads(last(probing, busy.pid).out)
    assert result["ended"] == "the process ended" and "burn" in profiles.shares(result)
    again = probing(busy.pid, "inject", "-P")
    assert again.code == NO_PROCESS, again


@pytest.mark.parametrize("number, end", [(signal.SIGTERM, "interrupted"), (signal.SIGHUP, "interrupted"),
                                         (signal.SIGKILL, "the recording was not finished")])
def test_signals(busy, probing, number, end):
    """The process runs on, the recording is complete, and another recorder can follow."""
    recorder, recording = begin(probing, busy.pid)
    until(lambda: samples(recording) > 10)
    os.kill(recorder, number)
    ends(recorder)
    until(lambda: "its recording has ended" in last(probing, busy.pid).err)
    result = json.loads(last(probing, busy.pid).out)
    assert result["ended"] in (end, "the recording was not finished") and "burn" in profiles.shares(result)
    assert busy.alive()
    begin(probing, busy.pid)
    assert probing(busy.pid, "perf", "--stop").code == OK


def test_options(busy, probing, tmp_path):
    """perf --background takes the options of a recording; its file is in the folder where it was named."""
    made = probing(busy.pid, "perf", "-b", "--cc", "--rate", 50, "-o", "own.profile", cwd=tmp_path)
    assert made.code == OK and str(tmp_path / "own.profile") in made.out, made
    until(lambda: samples(tmp_path / "own.profile") > 10)
    result = json.loads(last(probing, busy.pid).out)
    assert result["native"] and result["rate"] == 50
    assert probing(busy.pid, "perf", "--stop").code == OK
    result = json.loads(probing(tmp_path / "own.profile", "perf", "--json").out)
    assert {"burn", "PyEval_EvalCode"} <= {row["func"] for row in result["functions"]}


def test_a_ring_in_the_foreground(busy, probing, tmp_path):
    ring = tmp_path / "own.profile"
    recording = profiles.Recording(busy.pid, "--ring", "5m", "-o", ring)
    until(lambda: ring.exists() and samples(ring) > 10)
    assert "burn" in profiles.shares(json.loads(last(probing, busy.pid).out))
    assert probing(busy.pid, "perf", "--stop").code == FAILED
    recording.interrupt()
    assert recording.end()[0] == OK


def test_none_is_kept(busy, probing, runs):
    done = last(probing, busy.pid)
    assert done.code == FAILED and "no recording of process %d" % busy.pid in done.err, done
    assert "inject -P" in done.err, done
    for words in (["inject", "-P", "-e", "1"], ["inject", "-P", "-L", "x.so"], ["inject", "-P", "-c", "-j"],
                  ["perf", "-b", "-o", "x.html"]):
        refused = probing(busy.pid, *words)
        assert refused.code == USAGE and not refused.out, refused
    assert not os.path.exists(os.path.join(runs, "probing"))


def test_another_process_with_the_number(busy, probing, runs):
    """A note about the pid's former process is not about this one."""
    begin(probing, busy.pid)
    assert probing(busy.pid, "perf", "--stop").code == OK
    folder = os.path.join(runs, "probing")
    name, = (name for name in os.listdir(folder) if not name.endswith(".profile"))
    note = os.path.join(folder, name)
    with open(note, encoding="utf-8") as file:
        text = file.read()
    with open(note, "w", encoding="utf-8") as file:
        file.write("1" + text)
    assert "no recording of process" in last(probing, busy.pid).err
    os.utime(note, (1, 1))
    begin(probing, busy.pid)
    assert name not in os.listdir(folder), "old notes are removed"
    assert probing(busy.pid, "perf", "--stop").code == OK

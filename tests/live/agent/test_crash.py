# SPDX-License-Identifier: GPL-3.0-or-later
"""Crash records: written by the dying process, read like a core; its exit status stays its own."""

import json
import os
import re
import signal
import stat
import time

import pytest

import support
from environment import USAGE

WHERE = 'die crashing.py'


@pytest.fixture
def crashing(target, probing, tmp_path):
    """crashing(*words, interpreter=…): the program with crash records, which go to .records."""

    def start(*words, interpreter, options=()):
        process = target("crashing.py", *words, interpreter=interpreter)
        process.records = tmp_path / "records"
        done = probing(process.pid, "inject", "-c", "-D", "crash.folder=%s" % process.records,
                       *options)
        assert done.code == 0, done
        assert "crash records of process %d go to" % process.pid in done.out, done
        return process

    return start


def die(process, where, how):
    """Its exit status, stderr, and crash record."""
    process.send(("%s %s\n" % (where, how)).encode())
    assert process.line() == "dying"
    code, _ = process.wait()
    return code, process.errors(1 << 20)


def records(process):
    return sorted(process.records.glob("crash-*.core"))


def dump(probing, path, *options):
    done = probing(path, "debug", "--dump", "--json", "--locals", *options)
    assert done.code == 0, done
    return json.loads(done.out)


def dying_frames(report, marker):
    """Frames of the threads that are in die() for this marker."""
    return [frame for thread in report["threads"] for frame in thread["frames"]
            if frame["func"] == "die" and
            any((v["name"], v["value"]) == ("marker", str(marker)) for v in frame["locals"])]


STATES = [("main", "segv_gil", "SIGSEGV"), ("main", "segv", "SIGSEGV"), ("main", "bus", "SIGBUS"),
          ("main", "abort", "SIGABRT"), ("main", "ill", "SIGILL"), ("main", "fpe", "SIGFPE"),
          ("main", "overflow", "SIGSEGV"), ("main", "free", None), ("main", "SIGFPE", "SIGFPE"),
          ("thread", "segv_gil", "SIGSEGV"), ("thread", "abort", "SIGABRT"),
          ("thread", "overflow", "SIGSEGV"),
          ("two_threads", "segv", "SIGSEGV")]
STACK_OF_THREAD = ("thread", "overflow")


def matrix():
    """All states on all interpreters; in the short form each state on one, another one each time."""
    versions = support.one_per_version((3, 6))
    for number, state in enumerate(STATES):
        able = [each for each in versions if each.version >= (3, 8) or state[:2] != STACK_OF_THREAD]
        chosen = able if support.LONG else [able[number % len(able)]]
        yield from ((each, *state) for each in chosen)


@pytest.mark.parametrize("interpreter, where, how, name", matrix(), ids=str)
@pytest.mark.every_interpreter
def test_each_way_to_die(crashing, probing, interpreter, where, how, name):
    if how in ("segv", "segv_gil", "bus", "ill", "fpe", "overflow", "free") and \
            not interpreter.has_ctypes:
        pytest.skip("no ctypes")
    if os.uname().machine != "x86_64" and how in ("ill", "fpe", "overflow"):
        pytest.skip("the code is for x86_64")
    process = crashing("faulthandler", "sleeper", "spinner", interpreter=interpreter)
    code, errors = die(process, where, how)
    numbers = [signal.SIGABRT, signal.SIGSEGV] if name is None else [getattr(signal, name)]
    assert -code in numbers, (code, errors)
    name = signal.Signals(-code).name
    found = records(process)
    assert len(found) == 1, (found, errors)
    assert "crash record %s" % found[0] in errors and "Fatal Python error: " in errors, errors
    assert errors.index("crash record") < errors.index("Fatal Python error"), errors
    assert stat.S_IMODE(found[0].stat().st_mode) == 0o600
    assert stat.S_IMODE(process.records.stat().st_mode) == 0o700
    assert os.listdir(process.records) == [found[0].name]
    report = dump(probing, found[0])
    assert (report["target"]["pid"], report["target"]["signal"]["name"]) == (process.pid, name)
    frames = dying_frames(report, 41)
    assert len(frames) == 1, report
    functions = [frame["func"] for thread in report["threads"] for frame in thread["frames"]]
    assert "sleeper" in functions and "spinner" in functions, functions
    local = [v["value"] for t in report["threads"] for f in t["frames"] if f["func"] == "sleeper"
             for v in f["locals"]]
    assert local == ["'sleeps'"]


def test_uncaught_exceptions(crashing, probing, interpreter):
    process = crashing("sleeper", interpreter=interpreter)
    code, errors = die(process, "main", "raise")
    assert code == 1 and errors.rstrip().endswith("ValueError: no luck at 41"), errors
    path, = records(process)
    report = dump(probing, path)
    assert report["target"]["signal"] is None
    assert report["target"]["exception"].rstrip().endswith("ValueError: no luck at 41")
    assert "in die" in report["target"]["exception"]
    listed = json.loads(probing("crashes", process.records, "--json").out)
    assert [(one["pid"], one["reason"], one["readable"]) for one in listed] == [
        (process.pid, "ValueError: no luck at 41", True)]
    assert listed[0]["where"].startswith(WHERE)
    assert "ValueError: no luck at 41" in probing(path, "bt").out


def test_threads_and_exits_that_are_no_crashes(crashing, newest):
    process = crashing(interpreter=newest)
    process.send(b"thread raise\n")
    assert process.line() == "dying"
    while not records(process):
        assert process.alive()
        time.sleep(0.01)
    code, _ = process.wait()  # its stdin ends
    assert code == 0 and len(records(process)) == 1


def test_forked_child(crashing, probing, interpreter):
    process = crashing("sleeper", interpreter=interpreter)
    process.send(b"child SIGSEGV\n")
    assert process.line() == "dying"
    child, number = map(int, process.line().split())
    assert number == signal.SIGSEGV
    path, = records(process)
    report = dump(probing, path)
    assert report["target"]["pid"] == child and len(dying_frames(report, 41)) == 1
    assert process.alive()


def test_native_stack_values_and_sql(crashing, probing, newest):
    process = crashing("sleeper", interpreter=newest)
    die(process, "main", "segv_gil")
    path, = records(process)
    threads = dump(probing, path, "--native")["threads"]
    frames = threads[0]["frames"]
    assert frames[0]["kind"] == "native" and "libc" in frames[0]["module"], frames[0]
    assert "die" in [frame["func"] for frame in frames]
    assert "'sleeper'" in probing(path, "print", "sys.argv").out
    rows = json.loads(probing(path, "query", "SELECT func FROM python.stacks WHERE func IN "
                              "('die', 'sleeper') ORDER BY func", "-f", "json").out)
    assert [row["func"] for row in rows] == ["die", "sleeper"]
    table = probing("crashes", process.records)
    assert "SIGSEGV at 0x8" in table.out and str(path) in table.out, table


def test_number_and_size_are_bounded(crashing, probing, newest):
    options = ["-D", "crash.count=2", "-D", "crash.size=16M"]
    for round in range(3):
        process = crashing("sleeper", "hoard", interpreter=newest, options=options)
        die(process, "main", "SIGABRT")
        # Names have whole seconds: one more for each.
        for path in records(process):
            path.rename(path.with_name(re.sub(r"-(\d+)-", lambda m: "-%d-" % (
                int(m.group(1)) - 10), path.name)))
    assert len(records(process)) == 2
    assert all(path.stat().st_size < 20 << 20 for path in records(process))
    report = dump(probing, records(process)[-1])
    assert len(dying_frames(report, 41)) == 1


def test_hold_keeps_it_for_a_look(crashing, probing, newest):
    process = crashing("sleeper", interpreter=newest, options=["--hold", "60s"])
    process.send(b"main SIGSEGV\n")
    assert process.line() == "dying"
    while "is held for 60 s" not in process.errors():
        assert process.alive()
        time.sleep(0.01)
    report = support.dump(process.pid)
    assert any(frame["func"] == "die" for frame in report["threads"][0]["frames"])
    process.kill()
    assert len(records(process)) == 1


def test_handlers_are_gone_after_stop(crashing, probing, newest):
    process = crashing(interpreter=newest)
    assert probing(process.pid, "agent", "stop").code == 0
    code, errors = die(process, "main", "SIGSEGV")
    assert code == -signal.SIGSEGV and not records(process) and "probing" not in errors


@pytest.mark.parametrize("words, text", [
    (["-D", "crash.size=1"], "it must be from 16M to 1G"),
    (["-D", "crash.colour=1M"], "there is no setting 'crash.colour'"),
    (["-D", "crash.folder=here"], "an absolute path"), (["-D", "crash.count"], "no KEY=VALUE")])
def test_wrong_settings(target, probing, newest, words, text):
    process = target("crashing.py", interpreter=newest)
    done = probing(process.pid, "inject", "-c", *words)
    assert done.code == USAGE and text in done.err, done
    assert probing(process.pid, "inject", "--hold", "1s").code == USAGE


def test_the_last_events_of_a_crash(target, probing, newest, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    code = "import sys; sys.path.insert(0, %r)\nimport probing, ctypes\nprint('ready', flush=True)\n" \
        "sys.stdin.readline()\nprobing.event('almost', number=1)\nprobing.event('last', number=2)\n" \
        "ctypes.string_at(8)\n" % str(support.HERE.parents[1] / "package")
    agent = os.path.join(os.path.dirname(support.BINARY), "libprobing-agent.so")
    with support.Program([newest.exe, "-c", code], env=dict(
            newest.env, PROBING_DATA_DIR=str(folder), PROBING_AGENT=agent)) as process:
        assert process.line() == "ready"
        done = probing(process.pid, "inject", "-c", "-D", "crash.folder=%s" % (tmp_path / "records"))
        assert done.code == 0, done
        process.send(b"\n")
        assert process.wait()[0] == -signal.SIGSEGV
    record, = (tmp_path / "records").glob("crash-*.core")
    sql = "SELECT name, pid FROM python.trace_event ORDER BY timestamp DESC LIMIT 1"
    done = probing(record, "query", "-f", "json", sql)
    assert json.loads(done.out) == [{"name": "last", "pid": process.pid}], done
    # Without the folder those rows are missing, and the rest is there.
    os.rename(str(folder), str(tmp_path / "moved"))
    assert "no such table" in probing(record, "query", sql).err
    assert probing(record, "query", "SELECT 1").code == 0

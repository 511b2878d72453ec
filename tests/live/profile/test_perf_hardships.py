# SPDX-License-Identifier: GPL-3.0-or-later
"""Events in a process while it is recorded: it is unharmed, and so is the recording."""
import contextlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

import pauses
import profiles
import support
from profiles import Recording, told

OK = 0
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
BUSY = "import threading\nprint('ready', flush=True)\nwhile True: sum(range(100))\n"
FORKS = """
import os, sys, time
print("ready", flush=True)
for line in sys.stdin:
    count = int(line)
    for number in range(count):
        if not os.fork():
            sum(range(100000))
            os._exit(number % 7)
        sum(range(100000))
    codes = sorted(os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(count))
    print(codes == sorted(number % 7 for number in range(count)), flush=True)
"""
THREADS = """
import sys, threading, time
def brief():
    sum(range(3000))
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        threads = [threading.Thread(target=brief) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print("done", flush=True)
"""


@contextlib.contextmanager
def running(text=BUSY, interpreter=NEWEST):
    with support.Program([interpreter.exe, "-c", text], env=interpreter.env) as target:
        assert target.line() == "ready"
        yield target


def goes_on(target):
    """It runs, untraced."""
    assert pauses.nobody_traced(target.pid), support.thread_status(target.pid)
    before, end = profiles.counted(target.pid), os.times().elapsed + 60
    while profiles.counted(target.pid) == before:
        assert os.times().elapsed < end, support.thread_status(target.pid)


def counted_for(target, seconds):
    """Waits until it has had a processor for so long."""
    until, end = profiles.counted(target.pid) + seconds * 1e9, os.times().elapsed + 120
    while profiles.counted(target.pid) < until:
        assert os.times().elapsed < end


def whole(file):
    with contextlib.closing(sqlite3.connect(str(file))) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_killed_at_any_moment(probing, tmp_path):
    """Nothing is left stopped, and the file is no file yet or a whole one."""
    file, chance, shown = tmp_path / "run.profile", random.Random(1), 0
    with running() as target:
        for number in range(support.count(20, 1000)):
            options = ["--cc"] * (number % 3 == 0)
            recording = Recording(target.pid, "-d", "300s", "-r", 5000, "-o", file, *options)
            if number % 4:
                recording.samples()
            # Anywhere in the start, between two samples, in one, or in a write.
            time.sleep(chance.random() * (0.2 if number % 4 else 0.05))
            recording.kill()
            recording.end()
            goes_on(target)
            if not file.exists():
                continue
            whole(file)
            result = probing(file, "perf")
            assert result.code == OK or "cut off before anything was recorded" in result.err, result
            shown += "the recording was not finished" in result.out
            file.unlink()
    assert shown > 0


def test_many_recorders_at_once(tmp_path):
    """A thread has one tracer at a time: they take turns, and none gives up."""
    with running() as target:
        before = profiles.counted(target.pid)
        recordings = [Recording(target.pid, "-d", "4s", "--json",
                                *(["-o", tmp_path / ("%d.profile" % number)] if number % 2 else []))
                      for number in range(support.count(8, 64))]
        ended = [recording.end(timeout=300) for recording in recordings]
        most = profiles.counted(target.pid) - before
        goes_on(target)
    for number, (code, out, err) in enumerate(ended):
        assert code == OK, err
        result = json.loads(out)
        assert 0 < result["weight_ns"] <= most and "<module>" in profiles.shares(result), result
        assert result["cost"]["stops"] > 0
        if number % 2:
            whole(tmp_path / ("%d.profile" % number))


def test_target_forks():
    """The children end normally, and only their parent waits for them."""
    with running(FORKS) as target:
        recording = Recording(target.pid, "-d", "300s", "-r", 1000, "--json")
        recording.samples()
        for _ in range(5):  # its work in one may be over before a starved recorder samples
            target.send(b"%d\n" % support.count(40, 400))
            assert target.line(timeout=300) == "True"
        recording.interrupt()
        result = recording.result()
    assert "<module>" in profiles.shares(result) and result["ended"] == "interrupted", result


def test_threads_come_and_go(probing, tmp_path):
    """A thousand of them in a second, where the machine is fast."""
    file, rounds = tmp_path / "run.profile", support.count(500, 20000)
    end = os.times().elapsed + 300
    with running(THREADS) as target:
        recording = Recording(target.pid, "-d", "300s", "-r", 1000, "-o", file)
        recording.samples()
        while not told(file, "SELECT count(*) > 10 FROM threads"):
            assert os.times().elapsed < end
            target.send(b"%d\n" % rounds)
            assert target.line(timeout=600) == "done"
        recording.interrupt()
        code, _, err = recording.end()
        goes_on_idle = pauses.nobody_traced(target.pid)
    assert code == OK and not err and goes_on_idle
    whole(file)
    result = json.loads(probing(file, "perf", "--json").out)
    assert result["weight_ns"] <= result["process_cpu_ns"] * 1.001
    assert len(result["threads"]) > 10


def test_the_machine_is_overloaded(probing, tmp_path):
    """Eight programs compete for the recorder's processor: missed samples are reported, and sums stay
    exact."""
    file, processor = tmp_path / "run.profile", min(os.sched_getaffinity(0))
    with contextlib.ExitStack() as stack:
        programs = [stack.enter_context(running()) for _ in range(8)]
        for each in programs:
            os.sched_setaffinity(each.pid, [processor])
        target, before = programs[0], profiles.counted(programs[0].pid)
        recording = Recording(target.pid, "-d", "300s", "-r", 5000, "-o", file)
        os.sched_setaffinity(recording.pid, [processor])
        counted_for(target, 0.1)
        while not told(file, "SELECT count(*) FROM totals"):
            counted_for(target, 0.1)
        counted_for(target, 0.5)
        recording.interrupt()
        code, out, err = recording.end()
        most = profiles.counted(target.pid) - before
        goes_on(target)
    assert code == OK and not err, err
    whole(file)
    result = json.loads(probing(file, "perf", "--json").out)
    assert 0.4e9 < result["weight_ns"] <= most and profiles.shares(result)["<module>"] > 90, result
    told_of = [int(number) for number in re.search(r"(\d+) missed, (\d+) late", out).groups()]
    cost = result["cost"]
    assert told_of == [cost["missed"], cost["late"]] and sum(told_of) > 0, cost
    assert ("too busy for this rate" in out) == (cost["missed"] > (cost["times"] + cost["missed"]) // 10), out


def state_of(target):
    return support.thread_status(target.pid)["State"][0]


def test_target_is_stopped(tmp_path):
    """It stays stopped, is shown as stopped, and its recording continues when it does."""
    file = tmp_path / "run.profile"
    with running() as target:
        recording = Recording(target.pid, "-d", "300s", "-o", file)
        recording.samples()
        os.kill(target.pid, signal.SIGSTOP)
        end = os.times().elapsed + 60
        while state_of(target) != "T" or not told(
                file, "SELECT 1 FROM totals JOIN states USING (state) WHERE name = 'stopped'"):
            assert os.times().elapsed < end
        # Both while it is stopped, and when a recording ends or is killed meanwhile.
        other = Recording(target.pid, "-d", "200ms", "--json")
        result = other.result()
        assert result["weight_ns"] == 0 and state_of(target) == "T", result
        killed = Recording(target.pid, "-d", "300s")
        killed.samples()
        killed.kill()
        killed.end()
        assert state_of(target) == "T"
        os.kill(target.pid, signal.SIGCONT)
        counted_for(target, 0.5)
        recording.interrupt()
        code, _, err = recording.end()
        goes_on(target)
    assert code == OK and not err
    with contextlib.closing(sqlite3.connect(str(file))) as database:
        states = dict(database.execute("SELECT name, sum(wall_ns) FROM totals "
                                       "JOIN states USING (state) GROUP BY 1"))
        cpu, = database.execute("SELECT sum(cpu_ns) FROM totals").fetchone()
    assert states["stopped"] > 0 and cpu > 0.4e9, states


def test_target_is_paused_by_us():
    with running() as target:
        recording = Recording(target.pid, "-d", "300s", "--json")
        recording.samples()
        with pauses.Pause(target.pid) as pause:
            other = Recording(target.pid, "-d", "500ms", "--json")
            code, out, err = other.end()
            assert code == OK, err
            assert json.loads(out)["weight_ns"] < 0.4e9
            pause.interrupt()
        counted_for(target, 0.5)
        recording.interrupt()
        result = recording.result()
        goes_on(target)
    assert result["weight_ns"] > 0.4e9 and "<module>" in profiles.shares(result)


def attach_gdb(pid):
    return subprocess.run(["gdb", "-batch", "-nx", "-p", str(pid), "-ex", "shell sleep 0.3", "-ex",
                           "detach"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False).stdout


@pytest.mark.skipif(not shutil.which("gdb"), reason="gdb is not installed")
def test_gdb_comes_and_goes():
    """Meanwhile its running threads cannot be read, and the recording says so."""
    with running() as target:
        recording = Recording(target.pid, "-d", "300s", "--json")
        recording.samples()
        counted_for(target, 0.3)
        # It may ask just when we have the thread.
        while b"already traced" in attach_gdb(target.pid):
            pass
        counted_for(target, 0.3)
        recording.interrupt()
        result = recording.result()
        goes_on(target)
    assert result["weight_ns"] > 0.5e9 and profiles.shares(result)["<module>"] > 50, result


def test_what_cannot_be_read_is_kept(probing, tmp_path):
    """While another tool traces it, samples are `<unreadable: another tracer>`, with its CPU time as weight; the
    result says which part."""
    file = tmp_path / "run.profile"
    with running() as target:
        before = profiles.counted(target.pid)
        recording = Recording(target.pid, "-d", "300s", "-r", 500, "--json", "-o", file)
        recording.samples()
        counted_for(target, 0.6)
        begin = profiles.counted(target.pid)
        with profiles.tracer_of(target.pid):
            counted_for(target, 1.5)
        end = profiles.counted(target.pid)
        counted_for(target, 0.6)
        recording.interrupt()
        result = recording.result()
        most = profiles.counted(target.pid) - before
        goes_on(target)
    weights = {row["func"]: row["self_ns"] for row in result["functions"]}
    # Its time between two samples, which may be far apart, belongs to the second one.
    assert 1e9 < weights["<unreadable: another tracer>"] < end - begin + 0.5e9, (weights, end - begin)
    assert result["cost"]["unreadable"] > 0 and "<module>" in weights
    assert sum(weights.values()) == result["weight_ns"] and 2.5e9 < result["weight_ns"] <= most, (weights, most)
    told = probing(file, "perf").out
    samples = {row["func"]: row["samples"] for row in result["functions"]}
    assert "%.0f %% of the samples could not be read: another tracer" % (
        100 * samples["<unreadable: another tracer>"] / sum(samples.values())) in told, (told, samples)


def test_the_clock_jumps(tmp_path):
    """Only the time of day may: the recording's own clock does not."""
    source, shim = tmp_path / "jumps.c", tmp_path / "jumps.so"
    source.write_text("#define _GNU_SOURCE\n#include <time.h>\n#include <sys/syscall.h>\n"
                      "#include <unistd.h>\n"
                      "int clock_gettime(clockid_t clock, struct timespec *t) {\n"
                      "\tstatic int calls;\n"
                      "\tint rc = syscall(SYS_clock_gettime, clock, t);\n"
                      "\tif (clock == CLOCK_REALTIME) t->tv_sec += calls++ % 2 ? 86400 : -86400;\n"
                      "\treturn rc;\n}\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(shim), str(source)], check=True)
    with running() as target:
        before = profiles.counted(target.pid)
        done = subprocess.run([support.BINARY, str(target.pid), "perf", "-d", "1s", "--json"],
                              env=dict(os.environ, LD_PRELOAD=str(shim)), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        most = profiles.counted(target.pid) - before
        goes_on(target)
    assert done.returncode == OK, done.stderr
    result = json.loads(done.stdout.decode())
    assert 1e9 <= result["duration_ns"] < 60e9 and 0 < result["weight_ns"] <= most


MANY_THREADS = """
import sys, threading
def busy():
    print("ready", flush=True)
    while True: sum(range(100))
for _ in range(60):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
threading.Thread(target=busy, daemon=True).start()
threading.Event().wait()
"""


@pytest.mark.parametrize("cc", [[], ["--cc"]], ids=["python", "cc"])
def test_fewer_descriptors_than_threads(tmp_path, cc):
    """The last threads are reported as well as the first ones."""
    file = tmp_path / "run.profile"
    with running(MANY_THREADS) as target:
        done = subprocess.run(
            ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", support.BINARY, str(target.pid), "perf",
             "-d", "2s", "-o", file, *cc], capture_output=True, check=False)
        goes_on_idle = pauses.nobody_traced(target.pid)
    assert done.returncode == OK and not done.stderr, done.stderr
    assert goes_on_idle
    result = json.loads(subprocess.run([support.BINARY, file, "perf", "--json"], capture_output=True,
                                       check=True).stdout)
    assert len(result["threads"]) == 62
    assert profiles.shares(result)["busy"] > 90, profiles.shares(result)
    assert result["weight_ns"] > 0.5 * result["process_cpu_ns"] > 0, result


def test_descriptors_of_a_program(tmp_path):
    """The recorder may take more of them; the program that it starts has as many as without it."""
    told = tmp_path / "told"
    words = ["sh", "-c", 'ulimit -Sn 77; exec "$@"', "sh", support.BINARY, "perf", "--", "sh", "-c",
             'ulimit -Sn > "$1"', "sh", str(told)]
    assert subprocess.run(words, capture_output=True, check=False).returncode == OK
    assert told.read_text() == "77\n"


# The first thread used more than the thread that calls exec, or less.
RUNS_ANOTHER = """
import os, sys, threading, time
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
def other():
    burn(float(sys.argv[2]))
    print("ready", flush=True)
    sys.stdin.readline()
    os.execv(sys.executable, [sys.executable, "-c", "import time\\nwhile time.process_time() < %s: pass\\n"
                              "print('done', flush=True)\\ninput()" % sys.argv[3]])
burn(float(sys.argv[1]))
threading.Thread(target=other).start()
threading.Event().wait()
"""


@pytest.mark.parametrize("first, other", [(1.5, 0.1), (0.1, 1.5)], ids=["less", "more"])
@pytest.mark.parametrize("options", [[], ["--subprocesses"]], ids=["ends", "follows"])
def test_another_thread_runs_another_program(tmp_path, first, other, options):
    """It has the counters that it had, under the number of the first thread."""
    file = tmp_path / "run.profile"
    with support.Program([NEWEST.exe, "-c", RUNS_ANOTHER, str(first), str(other), "2"],
                         env=NEWEST.env) as target:
        assert target.line() == "ready"
        recording = Recording(target.pid, "-d", "300s", "-o", file, *options)
        recording.samples()
        target.send(b"\n")
        assert target.line() == "done"
        recording.interrupt()
        code, out, err = recording.end()
    assert code == OK, err
    shown = subprocess.run([support.BINARY, file, "perf", "--json"], capture_output=True, check=False)
    assert shown.returncode == OK, shown.stderr
    result = json.loads(shown.stdout)
    assert all(thread["cpu_ns"] >= 0 for thread in result["threads"]), result["threads"]
    assert result["weight_ns"] <= result["process_cpu_ns"] + 0.05e9, (result["weight_ns"], result["process_cpu_ns"])
    if options:
        assert result["weight_ns"] > 0.7 * result["process_cpu_ns"], out

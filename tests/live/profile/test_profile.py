# SPDX-License-Identifier: GPL-3.0-or-later
"""Recordings of real processes: shares, sums, costs, and their ends."""
import json
import os
import re
import sys
import time

import pytest

import pauses
import profiles
import support
import test_churn
from profiles import Recording, profile
from terminal import Terminal

OK, FAILED, USAGE, UNSUPPORTED, PERMISSION, TIMEOUT, NO_PROCESS = range(7)
SECONDS = support.count(4, 10)
# Number of samples checked for impossible stacks: of each kind of churn on each version.
SAMPLES, RATE = support.count(500, 25000), support.count(1000, 4000)
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
CHURNED = support.one_per_version((3, 6)) + [
    each for each in support.INTERPRETERS if each.free_threaded and not each.debug_build]


def started(interpreter, *arguments):
    return support.Target(interpreter, profiles.PROGRAM, *arguments)


def work(target, seconds):
    """Makes it use a processor; each function's own measurement, in milliseconds."""
    target.send(b"go %f\n" % seconds)
    words = target.line(timeout=300).split()
    return {name: float(spent) for name, spent in zip(words[::2], words[1::2])}


def recorded_work(target, seconds, *options):
    """(recording, the functions' own measurements) of that much work, from before to after it."""
    recording = Recording(target.pid, "--json", "--duration", "300s", *options)
    recording.samples()
    spent = work(target, seconds)
    # The kernel counts the time of a thread that runs at its ticks only.
    support.wait_for_sleep(target.pid, "pipe_read")
    recording.interrupt()
    return recording.result(), spent


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 6)), ids=repr)
def test_shares_and_sums(interpreter):
    with started(interpreter) as target:
        assert target.line() == "ready"
        support.wait_for_sleep(target.pid, "pipe_read")
        before = profiles.counted(target.pid)
        result, spent = recorded_work(target, SECONDS, "--rate", 250)
        support.wait_for_sleep(target.pid, "pipe_read")
        used = profiles.counted(target.pid) - before
    assert result["mode"] == "cpu" and result["ended"] == "interrupted"
    assert abs(result["weight_ns"] - used) < 0.001 * used + 1e6
    whole, found = sum(spent.values()), profiles.shares(result)
    # Of n samples, four times the standard error: once in 16,000 that is chance.
    for name, milliseconds in spent.items():
        true = milliseconds / whole
        error = 4 * (true * (1 - true) / result["independent_samples"]) ** 0.5
        assert abs(found[name] / 100 - true) < error + 0.01, (name, found, spent)
    self_times = sum(row["self_ns"] for row in result["functions"])
    assert self_times == result["weight_ns"] == sum(t["cpu_ns"] for t in result["threads"])
    assert profiles.readable(result)


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 6)), ids=repr)
def test_idle_threads_cost_no_stops(interpreter):
    with started(interpreter, 150) as target:
        assert target.line() == "ready"
        support.wait_for_rest(target.pid)  # the last threads may just have begun
        result = profile(target.pid, "--duration", "1s")
    assert len(result["threads"]) == 151
    assert result["cost"]["stops"] == 0 and result["cost"]["pause_total_us"] == 0
    assert result["weight_ns"] < 20e6
    names = {thread["name"] for thread in result["threads"]}
    assert "idle-0" in names and "MainThread" in names


def test_text(probing):
    with started(NEWEST) as target:
        assert target.line() == "ready"
        target.send(b"go 60\n")
        result = profiles.repeated(lambda: probing(target.pid, "perf", "--duration", "500ms"),
                                   lambda found: " burn " in found.out)
        again = profiles.repeated(lambda: probing(target.pid, "p", "-d", "200ms"), lambda found: "burn" in found.out)
    assert result.code == OK and not result.err
    assert result.out.startswith("%d  " % target.pid) and "profiled.py" in result.out
    assert re.search(r"^ +\d+\.\d %  +\d+–\d+ %  +\d+\.\d %  burn +profiled\.py:\d+$", result.out,
                     re.M), result.out
    assert re.search(r"^cost: \d+ stops? of \d+ µs .* own CPU \d+\.\d % · \d+ missed, \d+ late, "
                     r"[0-2] unreadable$", result.out, re.M), result.out
    assert again.code == OK and "burn" in again.out


@pytest.mark.parametrize("extension", ["collapsed", "txt", "speedscope.json"])
def test_files(probing, tmp_path, extension):
    file = tmp_path / ("run." + extension)
    with started(NEWEST) as target:
        assert target.line() == "ready"
        target.send(b"go 60\n")
        result = profiles.repeated(lambda: probing(target.pid, "perf", "--duration", "500ms", "-o", file),
                                   lambda _: file.exists() and "burn" in file.read_text())
    assert result.code == OK and not result.err
    assert result.out.startswith("%s: " % file) and "\ncost: " in result.out
    text = file.read_text()
    assert "burn" in text and str(profiles.PROGRAM) in text
    if extension != "speedscope.json":
        lines = [line.rpartition(" ") for line in text.splitlines()]
        assert all(int(weight) > 0 and stack.startswith("<module> (") for stack, _, weight in lines)
        return
    data = json.loads(text)
    assert data["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = len(data["shared"]["frames"])
    for each in data["profiles"]:
        assert each["type"] == "sampled" and len(each["samples"]) == len(each["weights"])
        assert sum(each["weights"]) == each["endValue"] - each["startValue"]
        assert all(0 <= frame < frames for sample in each["samples"] for frame in sample)


def test_wall(probing, tmp_path):
    """Time that passed: an idle thread has all of it, wherever it waits."""
    file = tmp_path / "run.profile"
    with started(NEWEST, 3) as target:
        assert target.line() == "ready"
        target.send(b"go 60\n")
        result = profile(target.pid, "--duration", "2s", "--mode", "wall", "-o", file)
        one = profile(target.pid, "--duration", "500ms", "-m", "wall", "--threads", "^idle-[01]$")
    assert result["mode"] == "wall" and sum(result["states"].values()) == result["weight_ns"]
    assert abs(result["weight_ns"] - 4 * result["duration_ns"]) < 0.02 * result["duration_ns"]
    assert result["states"]["asleep"] >= 0.74 * result["weight_ns"]
    rows = json.loads(probing(file, "query", "-f", "json", "SELECT tid, sum(wall_ns) AS ns FROM profile.samples "
                              "GROUP BY tid").out)
    assert len(rows) == 4
    assert all(abs(row["ns"] - result["duration_ns"]) < 0.005 * result["duration_ns"] for row in rows), rows
    found = profiles.shares(result)
    assert abs(found["wait"] - 75) < 1 and abs(found["main"] - 25) < 1
    assert abs(one["weight_ns"] - 2 * one["duration_ns"]) < 0.02 * one["duration_ns"]
    assert "main" not in profiles.shares(one)


def test_runqueue():
    """Two programs on one processor: each waits for it while the other has it."""
    processor = min(os.sched_getaffinity(0))
    with started(NEWEST) as target, started(NEWEST) as other:
        for each in target, other:
            assert each.line() == "ready"
            os.sched_setaffinity(each.pid, [processor])
            support.wait_for_sleep(each.pid, "pipe_read")
        other.send(b"go 600\n")
        before = profiles.counted(target.pid, what=1)
        result, _ = recorded_work(target, 1, "--mode", "runqueue")
        waited = profiles.counted(target.pid, what=1) - before
    assert result["mode"] == "runqueue" and "burn" in profiles.shares(result)
    assert waited > 3e8 and abs(result["weight_ns"] - waited) < 0.01 * waited + 5e6


def test_one_thread(probing):
    with started(NEWEST, 1) as target:
        assert target.line() == "ready"
        target.send(b"go 60\n")
        other = next(tid for tid in support.thread_ids(target.pid) if tid != target.pid)
        busy = profiles.repeated(lambda: profile(target.pid, "--duration", "500ms", "--tid", target.pid),
                                 lambda found: "burn" in profiles.shares(found))
        idle = profile(target.pid, "--duration", "500ms", "--tid", other, "-m", "wall")
        missing = probing(target.pid, "perf", "--duration", "500ms", "--tid", "1")
        unnamed = probing(target.pid, "perf", "--duration", "100ms", "--threads", "nobody")
    assert "burn" in profiles.shares(busy)
    assert idle["cost"]["stops"] == 0 and "wait" in profiles.shares(idle)
    assert missing.code == NO_PROCESS and "has no thread 1" in missing.err
    assert unnamed.code == NO_PROCESS and "idle-0" in unnamed.err


def test_lines(probing):
    with started(NEWEST) as target:
        assert target.line() == "ready"
        target.send(b"go 60\n")
        result = profile(target.pid, "--duration", "1s", "--lines")
    text = profiles.PROGRAM.read_text().splitlines()
    lines = {text[row["line"] - 1].strip() for row in result["functions"] if row["func"] == "burn"}
    assert lines <= {"while clock() < end:", "sum(range(100))", "end = clock() + seconds"}
    assert "sum(range(100))" in lines


@pytest.mark.parametrize("words, says", [
    (["--mode", "nosuch"], "there is no mode 'nosuch'"), (["--threads", "("], "bad regular expression"),
    (["--rate", "20001"], "at most 20000")])
def test_usage(probing, words, says):
    result = probing("1", "perf", *words)
    assert result.code == USAGE and says in result.err


def in_chains(stack):
    """A stack of a collapsed file, innermost first, as test_churn.py takes frames."""
    frames = []
    for label in reversed(stack.split(";")):
        name, file, line = re.fullmatch(r"(.*) \((.*?)(?::(\d+))?\)", label).groups()
        frames.append({"func": name.rpartition(".")[2], "file": file,
                       "line": int(line) if line else None, "ip": 0})
    return frames


def lines_of(probing, file):
    """The lines of all stacks of a recording, with the lines of their functions."""
    collapsed = file.with_suffix(".collapsed")
    shown = probing(file, "perf", "--lines", "-o", collapsed)
    assert shown.code == OK, shown
    return collapsed.read_text().splitlines()


@pytest.mark.parametrize("variant", ["functions", "generators", "methods", "lines"])
@pytest.mark.parametrize("interpreter", CHURNED, ids=repr)
def test_no_impossible_stacks(probing, tmp_path, interpreter, variant):
    file = tmp_path / "churn.profile"
    with support.Target(interpreter, support.HERE / "programs" / "churn.py", variant, 1) as target:
        assert target.line() == "ready"
        Recording(target.pid, "-d", "3600s", "-r", RATE, "-o", file).until_taken(file, SAMPLES)
    assert profiles.readable(json.loads(probing(file, "perf", "--json").out))
    stacks = [line.rpartition(" ")[0] for line in lines_of(probing, file)]
    assert len(stacks) > 20
    for stack in stacks:
        if stack in ("<not in Python>", "<unreadable>"):
            continue
        assert not test_churn.impossible(in_chains(stack)), stack
    support.report("perf, churn of %s, %s: 0 of %d samples impossible, %d different stacks" % (
        variant, interpreter, profiles.taken(file), len(stacks)))


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 6)), ids=repr)
def test_dead_functions_are_never_named(probing, tmp_path, interpreter):
    """Each set of functions lies where the one before it did; their names belong together."""
    file = tmp_path / "reused.profile"
    shared = support.Shared()
    program = support.HERE / "programs" / "reused_codes.py"
    with support.Target(interpreter, program, shared.path) as target:
        assert target.line() == "ready"
        before = shared[0]
        Recording(target.pid, "-d", "3600s", "-r", RATE, "-o", file).until_taken(file, SAMPLES)
        after = shared[0]
    shared.close()
    seen = 0
    for line in lines_of(probing, file):
        names = re.findall(r"gen_(\d{8})_([abc]) \(<gen_(\d{8})>:(\d)\)", line)
        serials = set(re.findall(r"gen_(\d{8})", line))
        assert len(serials) < 2 and all(before <= int(n) <= after for n in serials), line
        assert [name[1] for name in names] == ["a", "b", "c"][:len(names)], line
        assert all(number in {"a": "12", "b": "34", "c": "5678"}[letter]
                   for _, letter, _, number in names), line
        seen += bool(names)
    assert seen > 10


def test_nothing_to_weigh(probing):
    """An empty table says why it is empty."""
    with started(NEWEST) as target:
        assert target.line() == "ready"
        support.wait_for_sleep(target.pid, "pipe_read")
        perf = probing(target.pid, "perf", "-d", "200ms")
        top = probing(target.pid, "top", "-b", "-n", 1, "-i", "200ms")
    assert perf.code == top.code == OK
    assert "\n(no thread used a processor; --mode wall shows where threads wait)\n" in perf.out, perf
    assert "(no thread used a processor)\n" in top.out, top


def test_threads_that_wait_for_a_processor(probing):
    """Three threads that compute in C, on one processor."""
    program = ("import hashlib, os, threading\n"
               "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
               "def burn():\n    while True: hashlib.sha256(data).digest()\n"
               "data = bytes(1 << 24)\n"
               "for _ in range(3): threading.Thread(target=burn, daemon=True).start()\n"
               "print('ready', flush=True)\n"
               "input()\n")
    with support.Program([sys.executable, "-c", program]) as target:
        assert target.line() == "ready"
        page = profiles.repeated(lambda: probing(target.pid, "top", "-b", "-n", 1, "-i", "500ms"),
                                 lambda found: re.search(r"[2-9] waits? for a processor", found.out))
    assert re.search(r": .*[2-9] wait for a processor", page.out), page


def test_unknown_ending(probing, tmp_path):
    result = probing("1", "perf", "-o", tmp_path / "run.jpeg")
    assert result.code == USAGE and ".speedscope.json" in result.err


@pytest.mark.parametrize("how", ["killed", "ended", "exec"])
def test_target_ends(how):
    program = ("import os, select, sys\n"
               "print('ready', flush=True)\n"
               "while not select.select([0], [], [], 0)[0]: sum(range(1000))\n"
               "if sys.argv[1] == 'exec': os.execv(sys.executable, [sys.executable, '-c', sys.argv[2]])\n")
    # What it has used before remains its own.
    other = ("import time\nbegun = time.process_time()\n"
             "def after():\n    while time.process_time() < begun + 1: sum(range(1000))\nafter()\n")
    with support.Program([sys.executable, "-c", program, how, other]) as target:
        assert target.line() == "ready"
        recording = Recording(target.pid, "--json", "--duration", "300s")
        recording.samples()
        before = profiles.counted(target.pid)
        while profiles.counted(target.pid) < before + 3e8:
            time.sleep(0.01)
        if how == "killed":
            target.kill()
        else:
            target.send(b"\n")
        result = recording.result()
    assert result["ended"] == "the process ended"
    names = {row["func"] for row in result["functions"]}
    assert ("after" in names) == (how == "exec"), names  # the recording follows it
    assert "<module>" in names, names
    assert how == "exec" or names <= {"<module>", "<not in Python>", "<unreadable>"}, names


def test_killed_recording_leaves_nothing_stopped():
    with started(NEWEST) as target:
        assert target.line() == "ready"
        target.send(b"go 600\n")
        for _ in range(support.count(10, 200)):
            recording = Recording(target.pid, "--duration", "300s", "--rate", 5000)
            recording.samples()
            recording.kill()
            recording.end()
            assert pauses.nobody_traced(target.pid), support.thread_status(target.pid)
            before = profiles.counted(target.pid)
            end = os.times().elapsed + 20
            while profiles.counted(target.pid) == before:
                assert os.times().elapsed < end


def test_not_python(probing):
    with support.Program(["sh", "-c", "echo ready; read line"]) as target:
        assert target.line() == "ready"
        result = probing(target.pid, "perf", "--duration", "1s")
    assert result.code == UNSUPPORTED and "this is not a Python process" in result.err
    assert "probing list" in result.err


def test_what_does_not_run(probing, tmp_path):
    file = tmp_path / "one.snapshot"
    with started(NEWEST) as target:
        assert target.line() == "ready"
        assert probing(target.pid, "snapshot", "-o", file).code == OK
    result = probing(file, "perf")
    assert result.code == UNSUPPORTED and "a snapshot does not run" in result.err


def test_traced_by_somebody_else(probing):
    with started(NEWEST) as target:
        assert target.line() == "ready"
        target.send(b"go 60\n")
        with profiles.tracer_of(target.pid) as tracer:
            result = probing(target.pid, "perf", "--duration", "1s")
    assert result.code == PERMISSION and "traced by process %d" % tracer in result.err


def test_a_line_on_the_terminal_meanwhile():
    with started(NEWEST) as target:
        assert target.line() == "ready"
        target.send(b"go 600\n")
        with Terminal(target.pid, "perf", "-d", "600s") as terminal:
            terminal.until("; Ctrl-C ends it")
            for _ in range(2):
                assert re.search(r"\x1b\[K9 m \d+ s left · \d+$", terminal.until(" samples · "))
            assert re.search(r"/s · \d+ missed · stopped \d+\.\d % · own CPU \d+\.\d %", terminal.until("\x1b[K"))
            terminal.send("\x03")
            out, code = terminal.end()
    assert code == 0 and "\x1b[K%d  " % target.pid in out and "burn" in out, out


def test_a_terminal_is_told_no_end_of_what_has_none(target, tmp_path):
    busy = profiles.busy(target)
    with Terminal(busy.pid, "perf", "--ring", "1m", "-o", tmp_path / "ring.profile") as terminal:
        assert terminal.until("; Ctrl-C ends it").endswith("sampling %d" % busy.pid)
        terminal.until(" samples · ")
        terminal.send("\x03")
        assert terminal.end()[1] == OK

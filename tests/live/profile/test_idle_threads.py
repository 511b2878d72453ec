# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that mostly sleep: samples do not read each of them, and yet miss none of their activity."""
import contextlib
import json
import sqlite3

import pytest

import profiles
import support
from profiles import Recording

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
THREADS = 150
PROGRAM = """
import random, signal, sys, threading, time
clock, chance = time.thread_time, random.Random(1)
ready, done = threading.Semaphore(0), threading.Semaphore(0)
orders = [threading.Semaphore(0) for _ in range(int(sys.argv[1]))]
rounds, seconds = 0, 0.0

def burst(seconds):
    end = clock() + seconds
    while clock() < end:
        sum(range(100))

def serve(order):
    ready.release()
    while True:
        order.acquire()
        for _ in range(rounds):
            time.sleep(chance.random() / 5)
            burst(seconds)
        done.release()

for order in orders:
    threading.Thread(target=serve, args=(order,), daemon=True).start()
for _ in orders:
    ready.acquire()
print("ready", flush=True)
for line in sys.stdin:
    count, rounds, seconds, born = (float(word) if "." in word else int(word) for word in line.split())
    for order in orders[:count]:
        order.release()
    for number in range(born):
        signal.setitimer(signal.ITIMER_PROF, 1000 * (number % 2))
        thread = threading.Thread(target=burst, args=(0.001,))
        thread.start()
        thread.join()
    for _ in range(count):
        done.acquire()
    print("done", flush=True)
"""


def times(pid):
    """{tid: nanoseconds} of all threads; one may be about to end."""
    found = {}
    for tid in support.thread_ids(pid):
        with contextlib.suppress(OSError):
            found[tid] = profiles.counted(pid, tid)
    return found


@contextlib.contextmanager
def recorded(tmp_path, order, *options):
    """(recording, its file, each thread's CPU time: least and most), of a program with that many threads,
    each this often, this long, and that many other threads one after another."""
    file = tmp_path / "run.profile"
    with support.Program([NEWEST.exe, "-c", PROGRAM, THREADS], env=NEWEST.env) as target:
        assert target.line() == "ready"
        before = times(target.pid)
        recording = Recording(target.pid, "-d", "300s", "-o", file, *options)
        recording.samples()
        begun = times(target.pid)
        target.send(order)
        assert target.line(timeout=300) == "done"
        support.wait_for_sleep(target.pid, "pipe_read", target.pid)
        ended = times(target.pid)
        recording.interrupt()
        code, _, err = recording.end()
        after = times(target.pid)
    assert code == 0, err
    used = {tid: (ended[tid] - begun[tid], after[tid] - before[tid]) for tid in before}
    with contextlib.closing(sqlite3.connect(str(file))) as database:
        yield database, file, used


def check_sums(database, used):
    counted = dict(database.execute("SELECT tid, cpu_ns FROM threads"))
    for tid, (least, most) in used.items():
        assert least <= counted[tid] <= most, (tid, counted[tid], least, most)
    # Bounds that are equal for nearly all: they slept when the recording began and ended.
    assert sum(least == most for least, most in used.values()) > len(used) / 2
    return counted


@pytest.mark.parametrize("options", ((), ("--cc",)), ids=("python", "cc"))
def test_sums_of_short_bursts(probing, tmp_path, options):
    """Each thread's CPU time equals the scheduler's, to the nanosecond, and each is in all samples."""
    with recorded(tmp_path, b"150 4 0.001 0\n", "-r", 200, *options) as (database, file, used):
        counted = check_sums(database, used)
        assert sum(counted.values()) > THREADS * 4 * 1e6
        (all_samples,), = database.execute("SELECT times FROM recording")
    result = json.loads(probing(file, "query", "-f", "json", "SELECT tid, samples, wall_ms "
                                "FROM profile.threads").out)
    assert len(result) == THREADS + 1
    assert {row["samples"] for row in result} == {all_samples}, result
    walls = [row["wall_ms"] for row in result]
    assert min(walls) > 0.9 * max(walls), walls


def test_threads_that_begin_and_end(probing, tmp_path):
    """Beside sleeping threads others start and exit, which changes the sums that show who slept; so do
    timers of the process's CPU time, with which the kernel sums up in another way."""
    with recorded(tmp_path, b"150 4 0.001 200\n", "-r", 1000) as (database, file, used):
        check_sums(database, used)
    result = json.loads(probing(file, "perf", "--json").out)
    assert result["weight_ns"] <= result["process_cpu_ns"] * 1.001
    assert "burst" in profiles.shares(result), result


def test_one_wakes_after_long_sleep(probing, tmp_path):
    """Its stack is that of its work, not that of its sleep."""
    with recorded(tmp_path, b"1 1 0.5 0\n", "-r", 200) as (_, file, used):
        tid = max(used, key=lambda each: used[each][0])
    result = json.loads(probing(file, "perf", "--json", "--tid", tid).out)
    shares = profiles.shares(result)
    assert shares["burst"] > 95, (shares, used[tid])

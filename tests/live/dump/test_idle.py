# SPDX-License-Identifier: GPL-3.0-or-later
"""Idle times of threads: correct by the program's own clock, or missing."""
import contextlib
import json
import os
import subprocess
import time

import pytest

import support
from environment import PROGRAMS, wait_until

CPUS = sorted(os.sched_getaffinity(0))
AT_LEAST = 2  # seconds that threads sleep before they are read
TICK = 0.02   # difference of clocks when a thread notes its own

needs_sched = pytest.mark.skipif(
    not os.path.exists("/proc/self/sched"), reason="the kernel has no /proc/PID/sched")


@contextlib.contextmanager
def sleepers(interpreter):
    """The program, and for each of its threads: CPU and when it went to sleep, by tid."""
    with support.Program([interpreter.exe, PROGRAMS / "idle_since.py", *map(str, CPUS)],
                         env=interpreter.env) as program:
        threads = {}
        while True:
            line = program.line()
            if line == "ready":
                break
            cpu, tid, since = line.split()
            threads[int(tid)] = (int(cpu), float(since))
        wait_until(lambda: time.monotonic() - max(s for _, s in threads.values()) > AT_LEAST)
        yield program, threads


def on_cpus(*cpus):
    return lambda: os.sched_setaffinity(0, cpus)


def idle_times(pid, *cpus):
    """idle_seconds by tid, and the moments before and after, read on these CPUs."""
    before = time.monotonic()
    done = subprocess.run(
        [support.BINARY, "-t", str(pid), "debug", "--dump", "--json"], check=True, timeout=120,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, preexec_fn=on_cpus(*cpus))
    after = time.monotonic()
    times = {t["tid"]: t["idle_seconds"] for t in json.loads(done.stdout.decode())["threads"]}
    return times, before, after


def assert_true(idle, since, before, after):
    """Not longer than the thread has slept; and not much shorter, apart from the CPU clock's loss."""
    assert (before - since) / 2 <= idle <= after - since + TICK, (idle, since, before, after)


@needs_sched
@pytest.mark.parametrize("cpu", CPUS)
def test_idle_by_the_clock_of_the_same_cpu(cpu, newest):
    """Where probing may only use one CPU, threads that slept on another have no idle time."""
    with sleepers(newest) as (program, threads):
        def read():
            times, before, after = idle_times(program.pid, cpu)
            for tid, (theirs, since) in threads.items():
                if theirs != cpu:
                    assert times[tid] is None, (times, threads)
                elif times[tid] is not None:  # its CPU may be too busy for us
                    assert_true(times[tid], since, before, after)
            return [t for t, (theirs, _) in threads.items() if theirs == cpu and times[t]]
        wait_until(read, 60)


@needs_sched
def test_idle_of_threads_on_all_cpus(newest):
    with sleepers(newest) as (program, threads):
        seen = set()

        def read():
            times, before, after = idle_times(program.pid, *CPUS)
            for tid, (_, since) in threads.items():
                if times[tid] is not None:
                    assert_true(times[tid], since, before, after)
                    seen.add(tid)
            return seen == set(threads)
        wait_until(read, 60)


@needs_sched
def test_idle_in_sql_and_snapshots(newest, probing, tmp_path):
    """The same in SQL; a snapshot keeps the times of its making."""
    path = tmp_path / "idle.snapshot"
    query = "SELECT tid, idle_seconds FROM python.threads WHERE idle_seconds > 0"
    with sleepers(newest) as (program, threads):
        def read(target):
            before = time.monotonic()
            result = probing("-t", target, "query", "--format", "json", query)
            after = time.monotonic()
            times = {row["tid"]: row["idle_seconds"] for row in json.loads(result.out)}
            return {tid: times[tid] for tid in threads if tid in times}, before, after

        def live():
            times, before, after = read(program.pid)
            for tid, idle in times.items():
                assert_true(idle, threads[tid][1], before, after)
            return len(times) == len(threads)
        wait_until(live, 60)

        def kept():
            before = time.monotonic()
            path.unlink(missing_ok=True)
            assert probing("-t", program.pid, "snapshot", "-o", path).code == 0
            after = time.monotonic()
            times, _, _ = read(path)
            for tid, idle in times.items():
                assert_true(idle, threads[tid][1], before, after)
            return len(times) == len(threads)
        wait_until(kept, 60)

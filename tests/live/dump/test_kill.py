# SPDX-License-Identifier: GPL-3.0-or-later
"""Effects of a dump on its target, also of a killed dump: nothing that the target could notice."""
import random
import subprocess
import time

import pytest

import support

KILLS = support.count(10, 250)  # with each of the four options
DUMPS = support.count(40, 1000)
OPTIONS = [(), ("--freeze",), ("--native",), ("--locals", "--freeze")]
COUNTERS = range(4)  # the numbers of the shared file that grow all the time


def chosen():
    """The oldest and the newest with ctypes, and one free-threaded."""
    able = [i for i in support.one_per_version((3, 6)) if i.has_ctypes]
    free = [i for i in support.INTERPRETERS if i.free_threaded and i.has_ctypes]
    return able[:1] + able[-1:] + free[:1]


class Interruptible:
    """programs/interruptible.py as a target."""

    def __init__(self, interpreter):
        self.shared = support.Shared()
        self.target = support.Target(
            interpreter, support.HERE / "programs" / "interruptible.py", self.shared.path)
        self.pid = self.target.pid
        self.calls = self.target.line().split()[1:]

    def __enter__(self):
        self.wait_for_progress()
        return self

    def __exit__(self, *error):
        self.target.__exit__(*error)
        self.shared.close()

    def wait_for_progress(self):
        """Every counter moves within a minute: no thread was left stopped."""
        indexes = list(COUNTERS) + [8 + 2 * i for i in range(len(self.calls))]
        before = {index: self.shared[index] for index in indexes}
        end = time.monotonic() + 60
        while stuck := [index for index in indexes if self.shared[index] == before[index]]:
            assert self.target.alive() and time.monotonic() < end, "no progress: %r" % stuck
            time.sleep(0.002)

    def interrupted(self):
        """Which calls were ended by EINTR, and how often."""
        counts = {name: self.shared[9 + 2 * i] for i, name in enumerate(self.calls)}
        return {name: count for name, count in counts.items() if count}


def left_behind(pid):
    """The threads that are traced or stopped."""
    wrong = []
    for tid in support.thread_ids(pid):
        status = support.thread_status(pid, tid)
        if status["TracerPid"] != "0" or status["State"][0] in "Tt":
            wrong.append((tid, status["State"], status["TracerPid"]))
    return wrong


def wait_until_left(pid):
    """A dying tracer releases its threads, but a stopped thread needs a moment to run again."""
    end = time.monotonic() + 30
    while (wrong := left_behind(pid)) and time.monotonic() < end:
        time.sleep(0.001)
    assert not wrong, wrong


def start_dump(pid, options):
    return subprocess.Popen(
        [support.BINARY, "-p", str(pid), "debug", "--dump", "--json"] + list(options),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
@pytest.mark.parametrize("interpreter", chosen(), ids=repr)
def test_killed_at_any_moment(interpreter, options):
    rng = random.Random(1)
    killed = tried = 0
    with Interruptible(interpreter) as program:
        started = time.monotonic()
        for _ in range(3):
            start_dump(program.pid, options).wait()
        takes = (time.monotonic() - started) / 3
        # Some end by themselves, at moments that are of no use; until enough were killed.
        while killed < KILLS and tried < 50 * KILLS:
            dump = start_dump(program.pid, options)
            time.sleep(rng.uniform(0, 1.2 * takes))
            dump.kill()
            killed += dump.wait() < 0
            tried += 1
            wait_until_left(program.pid)
            program.wait_for_progress()
        # A thread that --freeze meets on its way to sleep may be stopped in a call that the kernel
        # does not repeat by itself. Only its tracer can put that right, so one that is killed then
        # leaves EINTR there. In the other modes no such stop happens to a thread that sleeps.
        assert "--freeze" in options or not program.interrupted()
    assert killed == KILLS, "only %d of %d dumps were killed before their end" % (killed, tried)
    support.report("%s: %d of %d dumps %s killed, nothing left stopped" % (
        interpreter, killed, tried, " ".join(options)))


@pytest.mark.parametrize("options", OPTIONS + [("--nonblocking",)], ids=" ".join)
@pytest.mark.parametrize("interpreter", chosen(), ids=repr)
def test_no_call_is_interrupted(interpreter, options):
    with Interruptible(interpreter) as program:
        for _ in range(DUMPS):
            support.dump(program.pid, *options)
        program.wait_for_progress()
        assert not program.interrupted()


def counters(pid, tid):
    """All that changes when a thread runs."""
    status = support.thread_status(pid, tid)
    with open("/proc/%d/task/%d/schedstat" % (pid, tid), encoding="ascii") as file:
        return (status["voluntary_ctxt_switches"], status["nonvoluntary_ctxt_switches"],
                file.read())


@pytest.mark.parametrize("options", [(), ("--nonblocking",), ("--locals",), ("--native",)],
                         ids=" ".join)
def test_sleeping_threads_are_never_stopped(interpreter, options):
    with support.Target(interpreter, support.HERE / "programs" / "asleep.py", 8) as target:
        assert target.line() == "ready"
        support.wait_for_all_asleep(target.pid, 9)
        before = {tid: counters(target.pid, tid) for tid in support.thread_ids(target.pid)}
        for _ in range(support.count(10, 50)):
            dump = support.dump(target.pid, *options)
            assert [thread["read"] for thread in dump["threads"]] == ["idle"] * 9
            assert dump["pause_us"] == 0 and dump["paused_threads"] == 0
        after = {tid: counters(target.pid, tid) for tid in support.thread_ids(target.pid)}
        assert after == before

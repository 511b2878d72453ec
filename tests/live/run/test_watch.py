# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing watch`: reports what gets stuck, and saves it; nobody is reported who only waits."""
import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import time

import psutil
import pytest

import hangs
import support
from environment import wait_until

PYTHON = "/usr/bin/python3"
USAGE, NO_PROCESS, DEADLOCK, STILL = 2, 6, 10, 21
QUICK = ("--hang", "1s", "--every", "0.2s")


class Started:
    """Programs, each in a session of its own, with a stdin that somebody may write to."""

    def __init__(self, folder, sources):
        self.processes = []
        for number, source in enumerate(sources):
            place = folder / ("program%d" % number)
            place.mkdir()
            path, _ = hangs.write(place, source)
            self.processes.append(subprocess.Popen(
                [PYTHON, str(path)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env=hangs.environment(), start_new_session=True))

    def pids(self):
        return [process.pid for process in self.processes]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


class Watch(hangs.Background):
    """The command in the background."""

    def __init__(self, folder, *words, options=QUICK):
        super().__init__(support.BINARY, "watch", *options, *map(str, words), cwd=folder)


def used(pid):
    """Seconds of processor time."""
    return time.clock_gettime_ns(~pid << 3 | 2) / 1e9


@pytest.mark.parametrize("kind, code", [
    ("two locks in both orders", DEADLOCK), ("a pipe that is read", STILL), ("Process.join", STILL),
    ("a lock beside a monitor that runs", DEADLOCK)])
def test_one_that_hangs(kind, code, tmp_path):
    source = {name: source for name, (source, _) in hangs.KINDS.items()}[kind]
    with Started(tmp_path, [source]) as started, Watch(
            tmp_path, *started.pids(), options=(*QUICK, "--once", "--json", "-o", "saved")) as watch:
        answer, later = json.loads(watch.line()), json.loads(watch.line())
        assert watch.end() == (code, "", "")
        assert (later["pid"], later["verdict"]) == (answer["pid"], answer["verdict"])
        answer["saved"] = later["saved"]
        assert answer["pid"] == started.pids()[0] and answer["exit_code"] == code and "hung.py:" in answer["sentence"]
        assert answer["saved"] == "saved/probing-watch-%d-1.probing" % answer["pid"]
        assert sorted(os.listdir(tmp_path / "saved")) == ["probing-watch-%d-1.%s" % (answer["pid"], end)
                                                          for end in ("probing", "txt")]
        shown = subprocess.run([support.BINARY, answer["saved"], "dump"], cwd=tmp_path, stdout=subprocess.PIPE, check=True)
        text = (tmp_path / answer["saved"].replace(".probing", ".txt")).read_text()
        assert b"hung.py" in shown.stdout and text.startswith(answer["verdict"] + ": ") and "hung.py:" in text


def test_each_verdict_once(tmp_path):
    """Of those that hang; those that wait are beside them all the time."""
    hung = [hangs.LOCKS["two locks in both orders"], hangs.LOCKS["Event.wait"], hangs.QUEUES["Queue.get"]]
    idle = [hangs.IDLE[kind] for kind in ("a server", "input", "a loop with a sleep", "a server in a thread")]
    with Started(tmp_path, hung + idle) as started, Watch(tmp_path, *started.pids(), options=(*QUICK, "--json")) as watch:
        answers = [json.loads(watch.line()) for _ in 2 * hung]
        saved = [answer for answer in answers if "saved" in answer]
        answers = [answer for answer in answers if "saved" not in answer]
        assert len(saved) == len(hung)
        before = used(watch.process.pid)
        end = time.monotonic() + 2
        while time.monotonic() < end:
            assert not select.select([watch.process.stdout], [], [], 0.2)[0], watch.line()
        assert used(watch.process.pid) - before < 0.2
        watch.process.send_signal(signal.SIGTERM)
        assert watch.end() == (0, "", "")
        assert sorted(answer["pid"] for answer in answers) == sorted(started.pids()[:len(hung)])


def test_each_is_named_before_one_is_saved(tmp_path):
    """They are as old as the command is: none waits for the files of another."""
    hung = [hangs.LOCKS["two locks in both orders"], hangs.LOCKS["Event.wait"], hangs.QUEUES["Queue.get"]]
    with Started(tmp_path, hung) as started:
        for pid in started.pids():
            wait_until(lambda pid=pid: not checked(pid).startswith("ok: "))
        with Watch(tmp_path, *started.pids(), options=(*QUICK, "--json")) as watch:
            answers = [json.loads(watch.line()) for _ in 2 * hung]
            assert ["saved" in answer for answer in answers] == [False] * len(hung) + [True] * len(hung), answers
            for answer in answers[len(hung):]:
                assert (tmp_path / answer["saved"]).exists()


POOL = """
import threading
source = '''
class QueuePool:
    def __init__(self):
        self._max_overflow, self.lock, self.free = 0, threading.Condition(), []
    def _do_get(self):
        with self.lock:
            while not self.free:
                self.lock.wait(100000)
QueuePool()._do_get()
'''
exec(compile(source, "/lib/sqlalchemy/pool/impl.py", "exec"))
"""


@pytest.mark.parametrize("verdict", ["tasks", "pool"])
def test_it_says_what_why_says(verdict, tmp_path):
    """A wait that `why` names: not only that nothing runs, and also where the wait has a limit of time."""
    source = {"tasks": hangs.ASYNC["asyncio.Lock"], "pool": POOL}[verdict]
    with Started(tmp_path, [source]) as started, Watch(tmp_path, *started.pids(), options=(*QUICK, "--json")) as watch:
        assert json.loads(watch.line())["verdict"] == verdict


def test_a_look_reads_one_clock(tmp_path):
    """Of a process that has not run since it was read; no file is opened."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    kinds = ("a server", "input", "a server in a thread")
    log = tmp_path / "log"

    def quiet():
        rounds = log.read_text().split("poll(NULL, 0") if log.exists() else []
        return sum("openat" not in text and text.count("clock_gettime(") == len(kinds) for text in rounds) >= 5

    with Started(tmp_path, [hangs.IDLE[kind] for kind in kinds]) as started, hangs.Background(
            "strace", "-o", log, support.BINARY, "watch", *QUICK, *map(str, started.pids())) as strace:
        wait_until(quiet)
        psutil.Process(strace.process.pid).children()[0].terminate()
        assert strace.end()[0] == 0


def test_all_that_only_wait(tmp_path):
    with Started(tmp_path, hangs.IDLE.values()) as started, Watch(tmp_path, *started.pids()) as watch:
        end = time.monotonic() + 8
        while time.monotonic() < end:
            assert not select.select([watch.process.stdout], [], [], 0.5)[0], watch.line()
        watch.process.send_signal(signal.SIGTERM)
        assert watch.end() == (0, "", "")


def test_all_that_wait_for_others(tmp_path):
    """One that hangs is reported after them all: it is read last, and they are as old."""
    with contextlib.ExitStack() as stack:
        sources = [stack.enter_context(hangs.outsiders(source)) for source in hangs.FOR_OTHERS.values()]
        started = stack.enter_context(Started(tmp_path, [*sources, hangs.LOCKS["Event.wait"]]))
        pids = started.pids()
        for pid in pids:
            wait_until(lambda pid=pid: "it waits for something" in checked(pid) or checked(pid).startswith("still: "))
        watch = stack.enter_context(Watch(tmp_path, *pids, options=(*QUICK, "--json")))
        assert json.loads(watch.line())["pid"] == pids[-1]
        assert "saved" in json.loads(watch.line())
        watch.process.send_signal(signal.SIGTERM)
        assert watch.end() == (0, "", "")


def checked(pid):
    return subprocess.run([support.BINARY, "check", "--still", "0.1s", str(pid)], stdout=subprocess.PIPE, timeout=60,
                          check=False).stdout.decode()


def test_it_costs_next_to_nothing(tmp_path):
    """Of twenty processes that were read and are as they were: below 0.1 % of a processor, with the usual pause."""
    with Started(tmp_path, hangs.IDLE.values()) as started, Watch(
            tmp_path, *started.pids(), options=("--hang", "1s")) as watch:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            select.select([watch.process.stdout], [], [], 0.5)
        before, began = used(watch.process.pid), time.monotonic()
        while time.monotonic() < began + 10:
            select.select([watch.process.stdout], [], [], 0.5)
        share = (used(watch.process.pid) - before) / (time.monotonic() - began)
        support.report("probing watch of %d processes: %.3f %% of a processor" % (len(started.pids()), share * 100))
        assert share < 0.005


def test_conditions(tmp_path):
    sources = [hangs.LOCKS["Event.wait"], hangs.LOCKS["two locks in both orders"]]
    with Started(tmp_path, sources) as started, Watch(
            tmp_path, *started.pids(), options=(*QUICK, "--for", "why = deadlock", "--once")) as watch:
        assert watch.end()[0] == DEADLOCK
    for condition in ("why", "why =", "why != a b", "cpu > 5", ""):
        done = subprocess.run([support.BINARY, "watch", "--for", condition, str(os.getpid())], stderr=subprocess.PIPE,
                              timeout=60, check=False)
        assert done.returncode == USAGE and b"is no condition of 'watch'" in done.stderr, condition
    done = subprocess.run([support.BINARY, "watch", "--for", "why = deadlok", str(os.getpid())], stderr=subprocess.PIPE,
                          timeout=60, check=False)
    assert done.returncode == USAGE and b"'deadlok' is no rule" in done.stderr
    assert all(word in done.stderr for word in (b"deadlock, ", b"still, ", b"memory, none"))


def test_it_ends_with_its_targets(tmp_path):
    with Started(tmp_path, [hangs.IDLE["input"]]) as started, Watch(tmp_path, *started.pids()) as watch:
        # Its targets are known then.
        wait_until(lambda: support.catches(watch.process.pid, signal.SIGTERM))
        started.processes[0].stdin.close()
        code, out, text = watch.end()
        assert (code, out, text) == (0, "", "probing: %d has ended\n" % started.pids()[0])


def test_no_target():
    assert subprocess.run([support.BINARY, "watch"], stderr=subprocess.PIPE, check=False).returncode == USAGE
    assert subprocess.run([support.BINARY, "watch", str(2 ** 22 + 1)], stderr=subprocess.PIPE,
                          check=False).returncode == NO_PROCESS

# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing check`: the exit code tells whether a process goes on."""
import json
import os
import subprocess
import time
from pathlib import Path

import pytest

import hangs
import support
from environment import wait_until

OK, UNSUPPORTED, NO_PROCESS, DEADLOCK, ORPHAN, STOPPED, STILL = 0, 3, 6, 10, 11, 12, 21
PYTHON = "/usr/bin/python3"
# Exit codes of programs of tests/live/hangs.py.
HUNG = {
    "two locks in both orders": DEADLOCK, "a lock twice": STILL, "an RLock of a thread that ended": ORPHAN,
    "Event.wait": STILL, "a pool that waits for itself": STILL, "a pipe that is read": STILL, "Process.join": STILL,
    "a child": STILL, "asyncio.Event": STILL, "a lock beside a monitor that runs": DEADLOCK, "a fifo that nobody writes": STILL,
}
IDLE = list(hangs.IDLE)
IDLE_SOURCE = "input()"


class Started:
    """A program of those, with a stdin that somebody may write to, and its children."""

    def __init__(self, folder, source):
        path, _ = hangs.write(folder, source)
        self.process = subprocess.Popen([PYTHON, str(path)], stdin=subprocess.PIPE, env=hangs.environment(),
                                        stdout=subprocess.DEVNULL, start_new_session=True)

    def __enter__(self):
        return self.process.pid

    def __exit__(self, *_):
        # Its session is its own.
        os.killpg(self.process.pid, 9)
        self.process.communicate()


def check(*words):
    done = subprocess.run([support.BINARY, "check", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def until(pid, code, *words):
    """A thread that has just begun to wait has run a moment ago."""
    end = time.monotonic() + 60
    while True:
        done = check("--still", "0.5s", *words, pid)
        if done[0] == code or time.monotonic() > end:
            return done


@pytest.mark.parametrize("kind", HUNG)
def test_hung(kind, tmp_path):
    source = {name: source for name, (source, _) in hangs.KINDS.items()}[kind]
    with Started(tmp_path, source) as pid:
        code, text, errors = until(pid, HUNG[kind])
        assert code == HUNG[kind] and text.count("\n") == 1 and not errors, (code, text, errors)
        # It has been so for less than the default.
        assert check(pid)[0] == OK


def test_idle(tmp_path):
    """Any of those that only wait, at any moment."""
    for number, kind in enumerate(IDLE):
        folder = tmp_path / str(number)
        folder.mkdir()
        with Started(folder, hangs.IDLE[kind]) as pid:
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                code, text, errors = check("--still", "0.1s", pid)
                # A process that has just begun is no Python yet.
                assert code == OK and text.startswith("ok: %d: " % pid), (kind, code, text, errors)


def why(pid):
    done = subprocess.run([support.BINARY, "why", "--json", str(pid)], stdout=subprocess.PIPE, timeout=60, check=False)
    return done.stdout.decode()


@pytest.mark.parametrize("kind", hangs.FOR_OTHERS)
def test_it_waits_for_others(kind, tmp_path, monkeypatch):
    """Long enough to count, and `why` says the same."""
    monkeypatch.setenv("PROBING_LIMITS", "still=0.5")
    with hangs.outsiders(hangs.FOR_OTHERS[kind]) as source, Started(tmp_path, source) as pid:
        words = "it waits for something from outside: "
        end, text = time.monotonic() + 60, ""
        while words not in text and time.monotonic() < end:
            code, text, errors = check("--still", "0.5s", pid)
        assert code == OK and words in text and not errors, (code, text, errors)
        assert '"still"' not in why(pid)


@pytest.mark.parametrize("source", ["while True: pass", "import time\nwhile True: time.sleep(0.01)"])
def test_it_runs(source, tmp_path):
    with Started(tmp_path, source) as pid:
        for _ in range(5):
            assert check("--still", "0.5s", pid)[0] == OK


def test_json(tmp_path):
    with Started(tmp_path, hangs.LOCKS["Event.wait"]) as pid:
        code, text, _ = until(pid, STILL, "--json")
        answer = json.loads(text)
        assert code == STILL and answer["exit_code"] == STILL and answer["pid"] == pid
        assert answer["state"] == "still" and "hung.py:2" in answer["sentence"]


def test_what_cannot_be_checked(tmp_path, probing, target):
    assert check(2 ** 22 + 1)[0] == NO_PROCESS
    process = target("asleep.py", 1)
    made = tmp_path / "made.snapshot"
    assert probing(process.pid, "snapshot", "-o", made).code == OK
    assert check(made)[0] == UNSUPPORTED


def test_it_is_not_stopped(tmp_path):
    """Reading threads that sleep stops none."""
    with Started(tmp_path, hangs.LOCKS["Event.wait"]) as pid:
        until(pid, STILL)
        before = support.thread_status(pid)["voluntary_ctxt_switches"]
        for _ in range(20):
            assert check("--still", "0.5s", pid)[0] == STILL
        assert support.thread_status(pid)["voluntary_ctxt_switches"] == before


def test_a_stopped_process(tmp_path):
    """It does not go on: at first that is said, and after a while it counts."""
    with Started(tmp_path, IDLE_SOURCE) as pid:
        wait_until(lambda: "it waits for something from outside" in check("--still", "0.1s", pid)[1])
        os.kill(pid, 19)
        code, text, errors = until(pid, STOPPED)
        assert code == STOPPED and text.startswith("stopped: %d: " % pid) and "SIGSTOP" in text and not errors, (text, errors)
        code, text, errors = check(pid)
        assert code == OK and text.startswith("ok: %d: " % pid) and "SIGSTOP" in text, text
        os.kill(pid, 18)
        assert check("--still", "0.1s", pid)[0] == OK


def test_a_paused_process(tmp_path):
    """The agent's thread runs meanwhile: that is no progress of the program."""
    with Started(tmp_path, "import time\nwhile True: time.sleep(0.01)") as pid:
        wait_until(lambda: subprocess.run([support.BINARY, str(pid), "dump"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                          check=False).returncode == 0)
        with subprocess.Popen([support.BINARY, str(pid), "debug", "--pause", "--max", "60s"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as pause:
            try:
                assert b"is paused" in pause.stdout.readline()
                done = until(pid, STOPPED)
                assert done[0] == STOPPED and "the process is paused by probing" in done[1] and done[1].rstrip()[-1] in "sm", done
            finally:
                pause.kill()


WAITS_FOR = {
    "an event that a signal sets": "import signal, threading\ndone = threading.Event()\n"
                                   "signal.signal(signal.SIGTERM, lambda *_: done.set())\ndone.wait()",
    "work from its parent": "import multiprocessing, os, time\nqueue = multiprocessing.get_context('fork').Queue()\n"
                            "child = multiprocessing.get_context('fork').Process(target=queue.get)\nchild.start()\n"
                            "child2 = multiprocessing.get_context('fork').Process(target=queue.get)\nchild2.start()\n"
                            "while True: time.sleep(0.1)",
}


@pytest.mark.parametrize("kind", sorted(WAITS_FOR))
def test_who_waits_for_others_is_healthy(kind, tmp_path):
    with Started(tmp_path, WAITS_FOR[kind]) as pid:
        end = time.monotonic() + 3
        while time.monotonic() < end:
            children = Path("/proc/%d/task/%d/children" % (pid, pid)).read_text().split()
            for each in [pid, *children]:
                code, text, errors = check("--still", "0.5s", each)
                assert code == OK and text.startswith("ok: "), (kind, code, text, errors)

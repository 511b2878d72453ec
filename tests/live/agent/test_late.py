# SPDX-License-Identifier: GPL-3.0-or-later
"""A late agent, as on a busy machine, is waited for; the reason why an agent does not answer is reported."""
import os
import signal
import subprocess
import sys
import time

import pytest

import support
from agent import wait_until
from environment import OK, TIMEOUT

LATE = support.HERE / "programs" / "late_agent.py"


@pytest.fixture
def stand_in():
    """Starts late_agent.py where an agent's socket would be."""
    folder, started = "/tmp/probing-%d" % os.geteuid(), []
    path = os.path.join(folder, "agent-%d.sock")
    os.makedirs(folder, 0o700, exist_ok=True)

    def start(seconds, name="probing-agent"):
        process = support.Program([sys.executable, LATE, path, str(seconds), name])
        started.append(process)
        assert process.line() == "ready"
        return process

    yield start
    for process in started:
        process.__exit__()
        os.unlink(path % process.pid)


@pytest.fixture
def starve():
    """Leaves a process next to nothing of a processor."""
    busy = []

    def start(process):
        processor = {min(os.sched_getaffinity(0))}
        busy.append(support.Program([sys.executable, "-c", "print('ready', flush=True)\nwhile True: pass"]))
        assert busy[-1].line() == "ready"
        os.sched_setaffinity(busy[-1].pid, processor)
        for tid in support.thread_ids(process.pid):
            os.sched_setaffinity(tid, processor)
            os.setpriority(os.PRIO_PROCESS, tid, 19)

    yield start
    for process in busy:
        process.kill()
        process.__exit__()


def test_late_agent_is_waited_for(stand_in, starve, probing):
    """It gets hardly any processor time: its answers come long after its time is over."""
    process = stand_in(0.05)
    starve(process)
    began = time.monotonic()
    done = probing(process.pid, "eval", "--timeout", "0.1", "6 * 7")
    assert (done.code, done.out) == (OK, "42\n"), done
    assert time.monotonic() - began > 3, "it was not starved"


def test_an_agent_that_computes_is_not_late(stand_in, probing):
    """It has a processor, and does something else: a deadline is one."""
    process = stand_in(30)

    def is_told():
        done = probing(process.pid, "eval", "--timeout", "0.1", "6 * 7")
        assert done.code == TIMEOUT and "does not answer\n  it " in done.err, done
        return "\n  it runs" in done.err
    wait_until(is_told)  # a busy machine gives it hardly any processor time, which is said


def test_silent_agent_is_not_waited_for(stand_in, probing):
    process = stand_in(0)
    done = probing(process.pid, "eval", "--timeout", "0.1", "6 * 7")
    assert done.code == TIMEOUT and "does not answer\n  it sleeps" in done.err, done


def test_other_threads_do_not_make_an_agent_late(stand_in, probing):
    """That some thread of the process works says nothing of its agent."""
    process = stand_in(60, "another-thread")
    done = probing(process.pid, "eval", "--timeout", "0.1", "6 * 7")
    assert done.code == TIMEOUT and "does not answer\n  it sleeps" in done.err, done


@pytest.mark.parametrize("mode", ["idle", "busy"])
def test_stopped_while_code_runs(mode, target, probing, newest):
    """The reason is reported, and the program is unharmed afterwards."""
    process = target("evaluated.py", mode, interpreter=newest)
    assert probing(process.pid, "eval", "1").out == "1\n"
    with subprocess.Popen([support.BINARY, str(process.pid), "eval", "--timeout", "1",
                           "print('begun')\nwhile True: pass"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as client:
        try:
            assert client.stdout.readline() == b"begun\n"
            os.kill(process.pid, signal.SIGSTOP)
            _, err = client.communicate(timeout=60)
            assert support.thread_status(process.pid)["State"][0] == "T"
        finally:
            os.kill(process.pid, signal.SIGCONT)
    if b"ran for over" not in err:  # else it was stopped too late
        assert client.returncode == TIMEOUT and b"kill -CONT %d" % process.pid in err, err
    wait_until(lambda: probing(process.pid, "eval", "1").out == "1\n")


def test_busy_machine(target, probing, newest):
    """Whatever happens to the code, the command never claims that the agent does not answer."""
    process = target("evaluated.py", "busy", interpreter=newest)
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
                for _ in range(2 * os.cpu_count())]
    try:
        for _ in range(5):
            done = probing(process.pid, "eval", "--timeout", "0.2", "while True: pass")
            assert done.code == TIMEOUT and "does not answer" not in done.err, done
            done = probing(process.pid, "eval", "count > 0")
            assert (done.code, done.out) == (OK, "True\n"), done
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()

# SPDX-License-Identifier: GPL-3.0-or-later
"""libprobing pauses a process: it is read, stepped and always runs again."""

import json
import os
import signal
import subprocess
import sys

import agent
import pauses
import pytest
import support
from library import FAILED, OUT, OVER, TIME, TIMEOUT, UNSUPPORTED, USAGE, Error, Session

ALL = [each for each in support.INTERPRETERS if pauses.agent_holds(each)]
HOLDER = """
import library, os, signal, sys
session = library.Session(sys.argv[1])
session.pause()
print("paused", flush=True)
signal.pause()
"""


@pytest.fixture
def counting(target, shared, newest):
    """A program whose threads never rest."""
    return target("counting.py", shared.path, "4")


def listed(probing, pid):
    return next(each["paused"] for each in json.loads(probing("list", "--json").out)
                if each["pid"] == pid)


@pytest.mark.parametrize("interpreter", ALL, ids=repr)
def test_pause_read_step_resume(interpreter, target, shared, probing):
    process = target("counting.py", shared.path, "4", interpreter=interpreter)
    with Session(process.pid) as session:
        session.pause()
        before = pauses.total(shared)
        assert listed(probing, process.pid)["pid"] == os.getpid()
        assert session.query("SELECT count(*) > 4 FROM python.stacks") == [(1,)]
        assert pauses.total(shared) == before
        assert session.eval("6 * 7")["value"] == "42"
        assert all("could run while" in text for text in session.warnings), session.warnings
        stopped = pauses.total(shared)
        session.step(TIME, seconds=0.02)
        assert pauses.total(shared) > stopped
        worker = session.query("SELECT tid FROM python.stacks WHERE func = 'work' LIMIT 1")[0][0]
        session.step(OVER, tid=worker)
        stopped = pauses.total(shared)
        assert listed(probing, process.pid) and pauses.total(shared) == stopped
        assert session.resume() > 0
        pauses.wait_until_runs(shared)
        assert listed(probing, process.pid) is None and pauses.nobody_traced(process.pid)


def test_a_session_that_ends(counting, shared):
    for _ in range(support.count(3, 30)):
        with Session(counting.pid) as session:
            session.pause()
        pauses.wait_until_runs(shared)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_caller_that_is_killed(how, counting, shared):
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(counting.pid)], text=True,
                          stdout=subprocess.PIPE, env=dict(
                              os.environ, PYTHONPATH=str(support.HERE))) as holder:
        assert holder.stdout.readline() == "paused\n"
        before = pauses.total(shared)
        assert pauses.total(shared) == before
        holder.send_signal(how)
    pauses.wait_until_runs(shared)


def test_only_one_pauses(counting, shared):
    with Session(counting.pid) as session, Session(counting.pid) as other:
        session.pause()
        with pytest.raises(Error, match="paused its target already") as caught:
            session.pause()
        assert caught.value.code == USAGE
        with pytest.raises(Error, match="paused (already, )?by process") as caught:
            other.pause()
        assert caught.value.code == FAILED
        with pytest.raises(Error, match="has not paused") as caught:
            other.resume()
        assert caught.value.code == USAGE
        session.resume()
        other.pause()
        other.resume()
    pauses.wait_until_runs(shared)


def test_the_time_limit(counting, shared):
    with Session(counting.pid) as session:
        session.pause(longest=0.3)
        pauses.wait_until_runs(shared)
        with pytest.raises(Error, match="limit of 0.3 s was reached") as caught:
            session.resume()
        assert caught.value.code == TIMEOUT
        session.pause()
        session.resume()


def test_resume_from_elsewhere(counting, shared, probing):
    with Session(counting.pid) as session:
        session.pause()
        assert probing(counting.pid, "resume").code == 0
        pauses.wait_until_runs(shared)
        session.resume()


def test_what_cannot_be_paused_or_stepped(counting, tmp_path, probing):
    with Session(counting.pid) as session:
        for arguments in ({"stride": 7}, {"tid": -1}, {"seconds": -1}, {"seconds": 1e9},
                          {"stride": TIME}, {"stride": TIME, "tid": 5, "seconds": 1}):
            with pytest.raises(Error) as caught:
                session.step(**arguments)
            assert caught.value.code == USAGE, arguments
        with pytest.raises(Error, match="is not paused"):
            session.step(OUT)
        with pytest.raises(Error) as caught:
            session.pause(longest=1e9)
        assert caught.value.code == USAGE
        path = tmp_path / "saved.snapshot"
        assert probing(counting.pid, "snapshot", "-o", str(path)).code == 0
    with Session(path) as session, pytest.raises(Error, match="nothing runs in it") as caught:
        session.pause()
    assert caught.value.code == UNSUPPORTED


def test_a_pause_that_cannot_begin(target):
    """A call in C holds the GIL."""
    process = target("evaluated.py", "gil")
    process.send(b"x")
    assert process.line() == "holds"
    support.wait_for_sleep(process.pid, "pipe_read")
    with Session(process.pid) as session:
        with pytest.raises(Error) as caught:
            session.pause(within=0.3)
        assert caught.value.code == TIMEOUT and "within 0.3 s" in str(caught.value)
        process.send(b"x")
        assert process.line() == "held"
        session.pause(within=60)
        session.resume()
    agent.wait_until(process.alive, 10)

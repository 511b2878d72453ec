# SPDX-License-Identifier: GPL-3.0-or-later
"""The reported state of a pause is true, however it ended: by a client that gave up, was killed, or paused
from elsewhere."""
import contextlib
import json
import os
import re

import pytest

import agent
import pauses
import remote
import test_remote_debug
from environment import FAILED, OK, PERMISSION, TIMEOUT
from pauses import Pause

SINCE = r"since [0-9]{2}:[0-9]{2}:[0-9]{2}"


@pytest.fixture
def counting(target, shared, newest):
    return target("counting.py", shared.path, "2")


def status(probing, pid):
    done = probing(pid, "agent", "status", "--json")
    assert done.code == OK, done
    return json.loads(done.out)


@contextlib.contextmanager
def code_runs(process, path):
    """Code of a client of ours runs, without the GIL, until this ends."""
    with agent.Client(path) as client:
        client.send(agent.evaluation("ends = os.pipe()\nprint(ends[1])\nos.read(ends[0], 1)"))
        kind, text = client.receive()
        assert kind == agent.STDOUT, (kind, text)
        with open("/proc/%d/fd/%d" % (process.pid, int(text)), "wb", buffering=0) as end:
            yield
            end.write(b"x")
        assert client.until(agent.DONE)[-1][0] == agent.DONE


def refused(pid, *options):
    """Exit status and message of a pause that does not begin."""
    with Pause(pid, *options, wait=False) as pause:
        err = pause.process.communicate(timeout=120)[1].decode()
        return pause.process.returncode, err


def test_a_request_that_was_given_up_is_replaced(counting, shared, probing):
    path = agent.load(probing, counting.pid)
    with agent.Client(path) as keeper:
        with pauses.gil_kept(counting, keeper):
            for _ in range(3):
                code, err = refused(counting.pid, "--within", "200ms")
                assert code == TIMEOUT and "was not free" in err, err
            busy = status(probing, counting.pid)["running"]
            second = Pause(counting.pid, "--within", "60s", wait=False)
            agent.wait_until(lambda: status(probing, counting.pid)["running"] > busy, 60)
            assert second.process.poll() is None
        with second:
            second.event("paused")
            before = pauses.total(shared)
            assert probing(counting.pid, "eval", "6 * 7").out == "42\n"
            assert pauses.total(shared) == before
            second.interrupt()
        assert keeper.until(agent.DONE)[-1][0] == agent.DONE
    pauses.wait_until_runs(shared)


def test_killed_while_code_of_another_client_runs(counting, shared, probing):
    path = agent.load(probing, counting.pid)
    with Pause(counting.pid) as pause:
        with code_runs(counting, path):
            known = status(probing, counting.pid)
            assert known["paused_by"] == pause.process.pid and known["paused_us"] > 0, known
            pause.kill()
            agent.wait_until(lambda: status(probing, counting.pid)["paused_us"] is None, 60)
            pauses.wait_until_runs(shared)
            assert "paused_by" not in status(probing, counting.pid)
            assert "paused" not in probing(counting.pid, "agent", "status").out
            for _ in range(2):
                done = probing(counting.pid, "resume")
                assert (done.code, done.out) == (FAILED, ""), done
                assert done.err == "probing: process %d is not paused\n" % counting.pid, done
                done = probing(counting.pid, "step")
                assert done.code == FAILED and "is not paused" in done.err, done
            busy = status(probing, counting.pid)["running"]
            code, err = refused(counting.pid, "--within", "300ms")
            assert code == TIMEOUT, err
            assert "was not paused within 0.3 s: code of process %d is running" % os.getpid() in err, err
            late = Pause(counting.pid, "--within", "60s", wait=False)
            agent.wait_until(lambda: status(probing, counting.pid)["running"] > busy, 60)
        with late:
            late.event("paused")
            assert status(probing, counting.pid)["paused_by"] == late.process.pid
            late.interrupt()
    pauses.wait_until_runs(shared)
    assert pauses.nobody_traced(counting.pid)


@pytest.mark.parametrize("options", [[], ["--hard"]], ids=["agent", "hard"])
def test_who_has_paused_it_is_said(options, counting):
    with Pause(counting.pid, *options) as first:
        code, err = refused(counting.pid)
        assert code == FAILED, err
        assert re.search("is paused already, by process %d( \\(from [^)]*\\))? %s" % (first.process.pid, SINCE), err), err
        assert "'probing %d resume'" % counting.pid in err, err
        first.interrupt()


def test_where_a_client_elsewhere_is_is_said(counting, probing):
    with remote.Service(counting.pid) as service:
        with test_remote_debug.Pause(service) as elsewhere:
            code, err = refused(counting.pid)
            assert code == FAILED, err
            assert re.search(r"by process [0-9]+ \(from 127\.0\.0\.1:[0-9]+\) " + SINCE, err), err
            assert probing(counting.pid, "resume").code == OK
            elsewhere.end()


def test_code_that_runs_in_a_pause_limits_what_waits_for_it(counting, shared, probing):
    path = agent.load(probing, counting.pid)
    running = "code of process %d is running" % os.getpid()
    with Pause(counting.pid) as pause:
        with code_runs(counting, path):
            before = pauses.total(shared)
            for words in (["step", "--timeout", "200ms"], ["eval", "--timeout", "200ms", "1"]):
                done = probing(counting.pid, *words)
                assert done.code == TIMEOUT and "within 0.2 s: " + running in done.err, done
            done = probing(counting.pid, "step", "--time", "1ms")
            assert done.code == TIMEOUT and "within 5 s: " + running in done.err, done
            assert pauses.total(shared) == before
        done = probing(counting.pid, "step", "--time", "1ms")
        assert done.code == OK, done
        assert probing(counting.pid, "eval", "6 * 7").out == "42\n"
        pause.interrupt()
    pauses.wait_until_runs(shared)


@pytest.mark.parametrize("options", [[], ["--hard"]], ids=["agent", "hard"])
def test_everybody_sees_the_pause(options, counting, probing):
    def row_of(pid):
        row, = (each for each in probing("list").out.splitlines() if each.split()[0] == str(pid))
        return row

    agent.load(probing, counting.pid)
    with Pause(counting.pid, *options) as pause:
        line = "paused by process %d( \\(from [^)]*\\))? %s; 'probing %d resume' ends that" % (
            pause.process.pid, SINCE, counting.pid)
        row = row_of(counting.pid)
        assert re.search(r"\(%s\)$" % line, row), row
        assert row.split()[3] == ("yes" if options else "paused"), row
        known, = (each["paused"] for each in json.loads(probing("list", "--json").out)
                  if each["pid"] == counting.pid)
        assert known["pid"] == pause.process.pid, known
        assert known["by"] == ("ptrace" if options else "agent"), known
        for words in (["debug", "--dump"], ["backtrace"]):
            head = probing(counting.pid, *words).out.splitlines()[:3]
            assert re.match(line + "$", head[2]), head
        pause.interrupt()
    assert "(paused" not in row_of(counting.pid)
    assert "paused by" not in probing(counting.pid, "debug", "--dump").out


def test_eject_says_whose_pause_it_ends(counting, shared, probing):
    with Pause(counting.pid) as pause:
        done = probing(counting.pid, "eject")
        assert done.code == OK, done
        assert re.search("this ended a pause by process %d" % pause.process.pid, done.out), done
        pause.process.communicate(timeout=60)
    pauses.wait_until_runs(shared)
    assert probing(counting.pid, "inject").code == OK
    assert "pause" not in probing(counting.pid, "eject").out


def test_a_hard_pause_is_the_reason(counting, probing):
    with Pause(counting.pid, "--hard") as pause:
        for words in (["eval", "1"], ["inject"], ["eject"]):
            done = probing(counting.pid, *words)
            assert done.code == PERMISSION, done
            assert "is paused with --hard, by process %d" % pause.process.pid in done.err, done
            assert "'probing %d resume'" % counting.pid in done.err, done
        pause.interrupt()
    agent.wait_until(lambda: probing(counting.pid, "inject").code == OK, 60)
    with Pause(counting.pid, "--hard") as pause:
        done = probing(counting.pid, "eval", "1")
        assert done.code == TIMEOUT, done
        assert "it is paused with --hard, by process %d" % pause.process.pid in done.err, done
        pause.interrupt()

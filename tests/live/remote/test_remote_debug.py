# SPDX-License-Identifier: GPL-3.0-or-later
"""Pausing a served process, and debugpy in it: by clients with the token, and only while they are
connected."""
import json
import os
import signal
import subprocess

import pytest

import pauses
import remote
import support
from agent import wait_until
from conftest import PROGRAMS
from environment import OK, UNSUPPORTED, USAGE
from remote import Service, run
from test_dap import ANY_PORT, PACKAGES, SYSTEM, debug


class Pause(pauses.Pause):
    """`debug --pause` at the other end."""

    def __init__(self, service, *options):
        self.pid = service.pid
        self.process = subprocess.Popen(
            [support.BINARY, "-t", service.address, *pauses.OPTIONS, "--within", "30s", *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=dict(os.environ, PROBING_AUTH_TOKEN=remote.TOKEN))
        self.begun = self.event("paused")


@pytest.fixture
def service(target, shared, newest):
    with Service(target("counting.py", shared.path, "4").pid) as served:
        yield served


def runs_undisturbed(service, shared):
    pauses.wait_until_runs(shared)
    wait_until(lambda: not support.children(service.server), 60)
    return pauses.nobody_traced(service.pid)


@pytest.mark.parametrize("options, by", [((), "agent"), (("--hard",), "ptrace")])
def test_pause(service, shared, options, by):
    with Pause(service, *options) as pause:
        assert pause.begun["by"] == by and pause.begun["address"] is None
        before = pauses.total(shared)
        dump = json.loads(service.run("debug", "--dump", "--json").stdout.decode())
        assert len(dump["threads"]) >= 5, dump
        if not options:
            assert service.run("eval", "sum(shared[:16])").stdout == b"%d\n" % before
            assert service.run("step", "--time", "10ms").returncode == OK
            before = pauses.total(shared)
        assert pauses.total(shared) == before
        ended = pause.interrupt()
    assert ended["reason"] == "interrupted" and ended["held_us"] > 0, ended
    assert runs_undisturbed(service, shared)


@pytest.mark.parametrize("options", [(), ("--hard",)])
@pytest.mark.parametrize("who", ["client", "server", "command"])
def test_whoever_dies_it_runs_again(service, shared, options, who):
    with Pause(service, *options) as pause:
        child, = support.children(service.server)
        os.kill({"client": pause.process.pid, "server": service.server, "command": child}[who],
                signal.SIGKILL)
        pauses.wait_until_runs(shared)
        wait_until(lambda: not os.path.exists("/proc/%d" % child), 60)
    assert pauses.nobody_traced(service.pid)


def test_limit_and_resume(service, shared):
    with Pause(service, "--max", "300ms") as pause:
        assert pause.end()["reason"] == "deadline"
    pauses.wait_until_runs(shared)
    with Pause(service) as pause:
        assert service.run("resume").returncode == OK
        assert pause.end()["reason"] == "resume"
    assert runs_undisturbed(service, shared)


def test_names_are_explained(service):
    done = service.run("debug", "--pause", "--max", "10ms", "--within", "30s")
    assert done.returncode == OK and (
        "Pids and addresses are named as they are at the other end; the process is -t %s here.\n" %
        service.address).encode() in done.stderr, done


def test_what_stays_there(service, tmp_path):
    """Files of the other end cannot be named from here; the message gives an alternative."""
    for words, code, says in [
            (("inject", "--library", "/lib/x.so"), UNSUPPORTED, "run it there, or with an ssh://"),
            (("debug", "--dap", "--debugpy", tmp_path), UNSUPPORTED, "or with an ssh://"),
            (("debug", "--pause", "--address=:0"), USAGE, "or with an ssh://")]:
        done = service.run(*words)
        assert done.returncode == code and says.encode() in done.stderr, done


@pytest.mark.skipif(not os.path.isdir(PACKAGES + "/debugpy"),
                    reason="python3-debugpy is not installed")
def test_dap(probing):
    """A breakpoint of an editor that connects through a client."""
    with support.Program([SYSTEM, PROGRAMS / "debugged.py"]) as program:
        assert program.line() == "ready"
        with Service(program.pid) as service:
            done = service.run("debug", ANY_PORT)
            assert done.returncode == OK and b"can run code as its user" in done.stderr, done
            debug(probing, program.pid, json.loads(done.stdout.decode()))
            again = service.run("debug", ANY_PORT)
            assert b"already" in again.stderr and again.stdout == done.stdout, again
        assert run(program.pid, "eval", "rounds >= 0").stdout == b"True\n"

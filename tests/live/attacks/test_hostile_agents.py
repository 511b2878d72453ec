# SPDX-License-Identifier: GPL-3.0-or-later
"""A process of another user answers for its agent itself, and wants to harm root's command."""
import json
import os
import resource
import signal
import subprocess
import time

import pytest

import support
from environment import FAILED, OK, TIMEOUT
from sockets_support import SYSTEM_PYTHON, as_attacker

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not SYSTEM_PYTHON,
                                reason="needs root, and the system's Python for the other user")
SCRIPT = (support.HERE / "programs" / "hostile_agent.py").read_text("utf-8")
MEMORY = 1 << 30  # bytes that a command may have; with all of an answer it would need far more


class HostileAgent(support.Program):
    def __init__(self, kind):
        super().__init__([SYSTEM_PYTHON, "-c", SCRIPT, kind], cwd="/",
                         env={"PATH": os.environ["PATH"]}, preexec_fn=as_attacker)
        assert self.line() == "ready"

    def __exit__(self, *about):
        if self.alive():
            self.send(b"x")
            self.wait()
        super().__exit__(*about)


COMMANDS = [("eval", "1"), ("agent", "status"), ("eject",), ("inject",)]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("kind", ["full", "silent", "huge"])
def test_no_connection(probing, kind, words):
    """No command waits for ever; inject loads the agent where it is not mapped yet."""
    with HostileAgent(kind) as target:
        done = probing(target.pid, *words)
        assert done.code == OK and words == ("inject",) or done.err.strip(), done
        assert done.code in (OK, FAILED, TIMEOUT), done


@pytest.mark.parametrize("words", [
    ("eval", "--timeout", "1", "1"), ("agent", "status"), ("eject",), ("resume",)], ids=" ".join)
def test_other_frames_all_the_time(probing, words):
    """A deadline is one of the request, and not of each frame."""
    with HostileAgent("drip") as target:
        done = probing(target.pid, *words)
        assert done.code == TIMEOUT and done.err.strip(), done


@pytest.mark.parametrize("words, limit", [
    (("eval", "--timeout", "1", "1"), 1), (("agent", "status"), 5), (("eject",), 10), (("resume",), 5),
    (("debug", "--pause", "--max", "1s", "--within", "1s"), 2),
    (("debug", "--pause", "--max", "1s"), 6)], ids=lambda word: " ".join(word) if isinstance(word, tuple) else "")
def test_one_byte_at_a_time(probing, words, limit):
    """What comes in time is not all that has to. The command says so itself, and is not killed."""
    with HostileAgent("trickle") as target:
        began = time.monotonic()
        done = probing(target.pid, *words)
        assert done.code == TIMEOUT and done.err.strip(), done
        # The greeting may take two seconds, a look at what the agent does one.
        assert time.monotonic() - began < limit + 6, done


def test_a_request_that_is_not_read(probing, tmp_path):
    code = tmp_path / "code.py"
    code.write_text("# much\n" * 500000)
    with HostileAgent("deaf") as target:
        done = probing(target.pid, "eval", "-f", code)
        assert done.code == TIMEOUT and "does not answer" in done.err, done


def test_an_endless_answer_is_not_collected(probing):
    with HostileAgent("flood") as target:
        done = probing(target.pid, "eval", "--json", "1", preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_AS, (MEMORY, MEMORY)))
        assert done.code == FAILED and "over 64 MiB" in done.err and not done.out, done


def test_ctrl_c_ends_an_endless_answer():
    """The first one is for the code, which an honest agent would interrupt; the next one ends it."""
    with HostileAgent("flood") as target:
        command = subprocess.Popen([support.BINARY, str(target.pid), "eval", "1"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        try:
            assert command.stdout.read(1 << 20)
            for _ in range(2):
                command.send_signal(signal.SIGINT)
                command.stdout.read(1 << 20)
            err = command.communicate(timeout=60)[1].decode()
            assert command.returncode == -signal.SIGINT or "interrupted" in err, err
        finally:
            command.kill()
            command.communicate()


@pytest.mark.parametrize("options", [(), ("--cc",)], ids=["python", "cc"])
@pytest.mark.parametrize("kind", ["wild", "random", "endless"])
def test_samples_of_allocations(probing, kind, options):
    """Whatever the buffer holds, the command ends, and says what it could not use."""
    with HostileAgent(kind) as target:
        done = probing(target.pid, "memory", "--sites", "1s", "--json", *options,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)))
        assert done.code in (OK, FAILED), done
        if done.code == OK:
            assert kind != "wild" and (json.loads(done.out)["lost_bytes"] or done.err), done
        else:
            assert done.err.strip() and not done.out, done

# SPDX-License-Identifier: GPL-3.0-or-later
"""The first moments of an interpreter: either it is read as it is, or it is said that it is not there yet."""
import json
import os
import random
import subprocess
import time

import pytest

import support
from environment import FAILED, OK, UNSUPPORTED, wait_until

ROUNDS = int(os.environ.get("PROBING_EARLY_ROUNDS", "15"))
MOMENTS = (0.005, 0.05)  # most happens in the first of them
# Runs itself again, for ever; each time as the same process.
AGAIN = "import os, sys; os.execv(sys.argv[1], [sys.argv[1], '-S', '-c', sys.argv[2]] + sys.argv[1:])"


def start(interpreter, *arguments):
    return subprocess.Popen([interpreter.exe, *arguments], env=interpreter.env,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def look(probing, process):
    """A good dump, or other permitted results, by the exit code."""
    done = probing(process.pid, "debug", "--dump", "--json")
    assert process.poll() is None
    if done.code == OK:
        thread, = json.loads(done.out)["threads"]
        assert not thread["error"] and thread["tid"] == process.pid, done
    else:
        assert done.code == FAILED and "began to run another program" in done.err or \
            done.code == UNSUPPORTED and "not initialised (yet)" in done.err, done
    return done.code


def test_first_moments(interpreter, probing):
    exe = os.path.realpath(interpreter.exe)
    for number in range(ROUNDS):
        with start(interpreter, "-c", "import threading, json; input()") as process:
            try:
                time.sleep(random.uniform(0, MOMENTS[number % len(MOMENTS)]))
                # It may be met in its exec, and only there.
                if look(probing, process) == FAILED:
                    wait_until(lambda: os.readlink("/proc/%d/exe" % process.pid) == exe)
                    assert look(probing, process) != FAILED
            finally:
                process.kill()


def test_program_that_runs_others(interpreter, probing):
    """It may call exec at any moment of the reading."""
    found = []
    with start(interpreter, "-S", "-c", AGAIN, interpreter.exe, AGAIN) as process:
        try:
            for _ in range(2 * ROUNDS):
                time.sleep(random.uniform(0, 0.03))
                found.append(look(probing, process))
        finally:
            process.kill()
    support.report("%r that executes itself: %d of %d looks found it" % (
        interpreter, found.count(OK), len(found)))


@pytest.mark.parametrize("command", [("debug", "--dump"), ("query", "SELECT * FROM python.threads"),
                                     ("eval", "1")], ids=" ".join)
def test_runtime_that_leads_nowhere(command, tmp_path, probing):
    """As far as can be seen, it may still become a runtime."""
    program = tmp_path / "python3.9"
    subprocess.run(["cc", "-rdynamic", "-o", program,
                    support.HERE / "programs" / "env_damaged.c"], check=True)
    with support.Program([program]) as process:
        assert process.line() == "ready"
        done = probing(process.pid, *command)
        assert done.code == UNSUPPORTED, done
        assert "not initialised (yet), or cannot be read: " in done.err, done
        assert process.alive()

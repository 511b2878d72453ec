# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a rank that the others wait for has ended. The ranks need no torch: its module's names are enough."""
import json
import os
import subprocess
import sys
import time

import pytest

import jobs
import simulated
import support

ABSENT = 11
PYTHON = "/usr/bin/python3"

def hang(name=jobs.ADDRESS, *words):
    done = jobs.cluster("cluster", "hang", name, "--json", *words)
    assert done.returncode == ABSENT, done
    return json.loads(done.stdout)


@pytest.mark.parametrize("end,text", [(3, "exited with status 3"), (-9, "killed by SIGKILL"),
                                      (0, "exited with status 0")])
def test_its_parent_has_not_reaped_it(end, text):
    with jobs.ranks(PYTHON, 3, source=simulated.ending(end), LOCAL_WORLD_SIZE="3") as ranks:
        for rank in (ranks[0], ranks[2]):
            support.wait_for_sleep(rank.pid, "nanosleep", timeout=60)
        found = hang()
    assert found["ranks"] == [1] and found["confidence"] == "high", found
    assert "rank 1 has no process: %s" % text in found["sentence"], found
    assert {sign["of"] for sign in found["signs"]} == {"waiting ranks", "end of the process"}, found


# Starts them, reaps the one that ends, and writes a line to the log, as launchers do.
LAUNCHER = """
import os, subprocess, sys, time
line, rank = sys.argv[1:3]
ranks = [subprocess.Popen([sys.executable, rank, str(number)], env=dict(os.environ, RANK=str(number),
         LOCAL_RANK=str(number))) for number in range(3)]
ranks[1].wait()
print(line % ranks[1].pid if "%" in line else line, flush=True)
time.sleep(1000)
"""


def launch(tmp_path, line, output):
    (tmp_path / "rank.py").write_text(simulated.ending(3))
    env = dict(os.environ, MASTER_ADDR=jobs.ADDRESS, MASTER_PORT="29500", WORLD_SIZE="3", LOCAL_WORLD_SIZE="3", HOME="/")
    return subprocess.Popen([sys.executable, "-c", LAUNCHER, line, str(tmp_path / "rank.py")], env=env, stdout=output,
                            stderr=output, stdin=subprocess.DEVNULL, start_new_session=True)


def until_written(log, text):
    for _ in range(600):
        if text in log.read_text() and log.read_text().count("ready") == 3:
            return
        time.sleep(0.1)
    raise AssertionError(log.read_text())


@pytest.mark.parametrize("line,text", [
    ("srun: error: node1: task 1: Out Of Memory", "Out Of Memory"),
    ("mpirun noticed that process rank 1 with PID %d on node node1 exited on signal 9 (Killed).",
     "exited on signal 9 (Killed)."),
    ("E1129 failed (exitcode: -9) local_rank: 1 (pid: %d) of binary: /usr/bin/python3", "(exitcode: -9) local_rank: 1"),
    ("[rank1]: RuntimeError: CUDA error: out of memory \x1b[31m", "RuntimeError: CUDA error: out of memory"),
    ("srun: error: node1: task 2: Killed", None)])
def test_the_log_says_it(tmp_path, line, text):
    log = tmp_path / "log"
    with open(log, "wb") as output, launch(tmp_path, line, output) as launcher:
        try:
            until_written(log, line.split("%", maxsplit=1)[0])
            found = hang(str(launcher.pid), "--redact", "--save", tmp_path / "saved")
        finally:
            os.killpg(launcher.pid, 9)
    # What a log says may be secret.
    assert not text or text.encode() not in (tmp_path / "saved").read_bytes()
    assert found["ranks"] == [1] and "\x1b" not in found["sentence"], found
    if text:
        assert "; its log says: " + text in found["sentence"] and found["confidence"] == "high", found
    else:
        assert "why is not known" in found["sentence"] and found["confidence"] == "medium", found


def test_a_log_that_is_a_pipe_is_left_alone(tmp_path):
    """Reading it would take from its reader."""
    with launch(tmp_path, "srun: error: node1: task 1: Killed", subprocess.PIPE) as launcher:
        try:
            said = [launcher.stdout.readline() for _ in range(4)]
            found = hang(str(launcher.pid))
        finally:
            os.killpg(launcher.pid, 9)
    assert b"srun: error: node1: task 1: Killed\n" in said
    assert "why is not known" in found["sentence"] and found["confidence"] == "medium", found

# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks of a real job on gloo, controlled by lines on stdin (programs/training/ranks.py)."""
import contextlib
import json
import os
import signal
import socket
import subprocess

import support
import training
from environment import PROGRAMS, wait_until

PROGRAM = PROGRAMS / "training" / "ranks.py"
MOVES, ABSENT, MISMATCH, LATE, CYCLE, DEVICE, UNKNOWN, LEFT = 0, 11, 12, 13, 14, 15, 16, 17


def drain(job, rank, data=b""):
    """The other end of a rank's fifo: writes some bytes to it, or reads its content."""
    path = "%s.fifo%d" % (job.file, rank)
    fd = os.open(path, os.O_RDWR if data else os.O_RDONLY)
    if data:
        os.write(fd, data)
    while not data and os.read(fd, 65536):
        pass
    os.close(fd)
    os.unlink(path)


def check_signs(found):
    """No verdict is sure that rests on one sign alone."""
    assert found.get("confidence") != "high" or len(found["signs"]) > 1, found
    return found


class Job:
    """Ranks on this machine."""

    def __init__(self, stack, file, users=(0, 0, 0), address="127.0.0.1", world=3, torch=training.SYSTEM, **variables):
        torch.check()
        self.world = world
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.file = file
        self.name = "%s:%d" % (address, port)
        self.ranks = []
        for rank in range(world):
            env = dict(os.environ, MASTER_ADDR=address, MASTER_PORT=str(port), RANK=str(rank),
                       LOCAL_RANK=str(rank), WORLD_SIZE=str(world), OMP_NUM_THREADS="1",
                       PYTHONDONTWRITEBYTECODE="1", HOME="/", **torch.env, **variables)
            command = [torch.exe, PROGRAM, file]
            if users[rank % len(users)]:
                command = as_user(users[rank % len(users)], command)
            self.ranks.append(stack.enter_context(
                support.Program(command, env=env, start_new_session=True)))
            stack.callback(end_group, self.ranks[-1].pid)
        for rank in self.ranks:
            assert rank.line(timeout=400) == "ready"

    def pids(self):
        return [rank.pid for rank in self.ranks]

    def do(self, word, *ranks):
        for rank in ranks or range(self.world):
            self.ranks[rank].send(word.encode() + b"\n")

    def done(self, *ranks):
        for rank in ranks or range(self.world):
            assert self.ranks[rank].line(timeout=400) == "done"

    def waits(self, *ranks):
        """Until the main threads of these ranks sleep in a collective."""
        for rank in ranks:
            wait_until(lambda rank=rank: "distributed_c10d" in main_wait(self.ranks[rank].pid), 120)

    def cluster(self, *words):
        return subprocess.run([support.BINARY, "cluster", *words], capture_output=True,
                              check=False, timeout=120, text=True)

    def hang(self, expected, *texts, ranks=None, confidence=None):
        """The verdict as soon as it is the expected one: ranks take their time to get there, and on a
        starved machine a round may lack data that is searched for only some milliseconds. High confidence
        requires ranks that have waited during all rounds."""
        result = good = None

        def is_there():
            nonlocal result, good
            result = self.cluster("hang", self.name, "--json", "--interval", "500ms")
            if result.returncode != expected:
                return False
            found = check_signs(json.loads(result.stdout))
            if all(text in found["sentence"] for text in texts) and ranks in (None, found["ranks"]) and \
                    confidence in (None, found["confidence"]):
                good = found
            return good

        with contextlib.suppress(AssertionError):
            wait_until(is_there, 120)
        assert good, result
        return good

    def release(self, *ranks):
        """Lets ranks go on that stall, until all are done."""
        with open(self.file, "w", encoding="ascii"):
            self.done(*ranks)
        os.unlink(self.file)


def as_user(user, command):
    return ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", *command]


def end_group(pid):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def main_wait(pid):
    return next((thread["waits_for"] or "") for thread in support.dump(pid)["threads"]
                if thread["tid"] == pid)

# SPDX-License-Identifier: GPL-3.0-or-later
"""The ranks of rank_job.py, started by torchrun, mpirun or srun."""
import contextlib
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

import pytest

import slurm
import training
from rank_job import PROGRAM, Job

# torchrun of torch 1.13, mended: in Python 3.11 it takes "no redirection" for None.
TORCHRUN = """import sys
from torch.distributed.elastic.multiprocessing.api import Std
Std.from_str = classmethod(lambda self, text: self.NONE)
from torch.distributed.run import main
main(sys.argv[1:])
"""
LAUNCHERS = ("torchrun", "mpirun", "srun")


class Rank:
    """One rank, with a fifo for each direction; they are open here, so that the rank never waits for us."""

    def __init__(self, folder, number):
        paths = ["%s/%s%d" % (folder, way, number) for way in ("in", "out")]
        for path in paths:
            os.mkfifo(path)
        self._in, self._out = (os.open(path, os.O_RDWR | os.O_NONBLOCK) for path in paths)
        self._printed = b""
        self.pid = 0

    def send(self, data):
        os.write(self._in, data)

    def line(self, timeout=60):
        """The next line that it printed."""
        until = time.monotonic() + timeout
        while b"\n" not in self._printed:
            left = until - time.monotonic()
            assert left > 0, "rank %d printed nothing for %d s" % (self.pid, timeout)
            if select.select([self._out], [], [], left)[0]:
                self._printed += os.read(self._out, 65536)
        line, _, self._printed = self._printed.partition(b"\n")
        return line.decode()

    def close(self):
        os.close(self._in)
        os.close(self._out)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def end(launcher, pids):
    """Launchers end their ranks, unless these do not hear of it."""
    launcher.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        launcher.wait(10)
    for pid in [*pids, launcher.pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    launcher.wait()


class LaunchedJob(Job):
    """Like Job; its name is the pid of the launcher."""

    def __init__(self, stack, file, launcher, world=3, torch=training.SYSTEM, **variables):
        # pylint: disable=super-init-not-called
        torch.check()
        self.world, self.file = world, file
        folder = file + ".fifos"
        os.mkdir(folder)
        self.ranks = [Rank(folder, number) for number in range(world)]
        for rank in self.ranks:
            stack.callback(rank.close)
        env = dict(os.environ, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), OMP_NUM_THREADS="1",
                   PYTHONDONTWRITEBYTECODE="1", RANK_FIFOS=folder, **torch.env, **variables)
        if launcher == "srun":
            env.update((name, value) for name, value in stack.enter_context(slurm.running()).items()
                       if name.startswith("SLURM"))
        log = stack.enter_context(open(file + ".log", "wb"))
        process = subprocess.Popen(self.command(launcher, torch), env=env, stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log, start_new_session=True)
        stack.callback(lambda: end(process, self.pids()))
        self.name = str(process.pid)
        try:
            for rank in self.ranks:
                rank.pid = int(rank.line(timeout=400))
            for rank in self.ranks:
                assert rank.line(timeout=400) == "ready"
        except AssertionError:
            with open(log.name, encoding="utf-8", errors="replace") as file_:
                sys.stderr.write(file_.read())
            raise

    def command(self, launcher, torch):
        """How it starts the ranks."""
        rank = [torch.exe, str(PROGRAM), self.file]
        if launcher == "torchrun":
            run = ["-c", TORCHRUN] if torch is training.SYSTEM else ["-m", "torch.distributed.run"]
            return [torch.exe, *run, "--nproc_per_node=%d" % self.world, "--master_addr=127.0.0.1",
                    "--master_port=%d" % free_port(), *rank[1:]]
        if launcher == "mpirun":
            if not shutil.which("mpirun"):
                pytest.skip("openmpi is not installed")
            return ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(self.world), *rank]
        if not shutil.which("srun"):
            pytest.skip("slurm is not installed")
        return ["srun", "--quiet", "--mem=0", "--mpi=none", "-n", str(self.world), *rank]

# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs whose ranks are replaced, by torchrun: what has ended is over, and the verdict is of the ranks that run."""
import contextlib
import json
import os
import signal
import subprocess

import pytest

import jobs
import training
from environment import wait_until
from launched_job import TORCHRUN
from test_watch_jobs import watching

# It steps until there is a file DO, which has the number of a start, a rank, and what that rank does then.
RANK = """
import os, sys, time
import torch, torch.distributed as dist
RANK, START = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
def leave():
    os._exit(7)
def load():
    time.sleep(1000)
def step():
    dist.all_reduce(torch.ones(1))
dist.init_process_group("gloo")
open(sys.argv[1] + ".%d.%d.%d" % (START, RANK, os.getpid()), "w").close()
while True:
    time.sleep(0.05)
    with open(sys.argv[1]) as file:
        start, rank, what = file.read().split()
    if (int(start), int(rank)) == (START, RANK):
        globals()[what]()
    step()
"""


class Elastic:
    """Three ranks of torchrun, which starts them anew if one fails."""

    def __init__(self, stack, folder):
        training.SYSTEM.check()
        self.orders, self.folder = folder / "do", folder
        self.tell(9, 9, "nothing")
        program = folder / "rank.py"
        program.write_text(RANK)
        process = subprocess.Popen(
            [training.PYTHON, "-c", TORCHRUN, "--standalone", "--nproc_per_node=3", "--max_restarts=3", "--monitor_interval=0.2",
             program, self.orders], env=dict(os.environ, TMPDIR=str(folder), OMP_NUM_THREADS="1"), stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        stack.callback(process.wait)
        stack.callback(self.end, process)
        self.pid = process.pid

    def end(self, process):
        """Its ranks are in sessions of their own."""
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(60)
        process.kill()
        for path in self.folder.glob("do.*"):
            with contextlib.suppress(OSError):
                os.kill(int(path.suffix[1:]), signal.SIGKILL)

    def tell(self, start, rank, what):
        new = self.folder / "new"
        new.write_text("%d %d %s" % (start, rank, what))
        new.rename(self.orders)

    def ranks(self, start):
        """The pids of the ranks of that start, once all are there."""
        names = ["%d.%d" % (start, rank) for rank in range(3)]
        wait_until(lambda: all(list(self.folder.glob("do.%s.*" % name)) for name in names), 200)
        return [int(next(iter(self.folder.glob("do.%s.*" % name))).suffix[1:]) for name in names]

    def name(self):
        return "job %s " % json.loads(jobs.cluster("cluster", "nodes", "--json", self.pid).stdout)[0]["job"]

    def hang(self):
        return json.loads(jobs.cluster("cluster", "hang", "--json", self.pid).stdout or "{}")


@pytest.fixture
def elastic(tmp_path):
    with contextlib.ExitStack() as stack:
        yield Elastic(stack, tmp_path)


def test_a_rank_is_replaced(elastic, tmp_path):
    """Two starts are no alarm; then the rank that runs now is named, and not the ones before it."""
    with watching(tmp_path) as (_, whole):
        names = set()  # each start has a port of its own

        def log():  # other jobs of this machine may hang
            return "".join(line for line in whole().splitlines() if any(name in line for name in names))

        for start in range(2):
            elastic.ranks(start)
            names.add(elastic.name())
            elastic.tell(start, start, "leave")
        now = elastic.ranks(2)
        names.add(elastic.name())
        wait_until(lambda: elastic.hang().get("verdict") == "moves", 60)
        # The ranks that were ended may have waited for the one that left for long.
        assert "late: " not in log() and "has no process" not in log(), log()
        elastic.tell(2, 2, "load")
        wait_until(lambda: "late: rank 2 (pid %d) never entered all_reduce" % now[2] in log(), 120)
        found = elastic.hang()
        assert (found["verdict"], found["ranks"]) == ("late", [2]) and "load rank.py" in found["sentence"], found

# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict that a user sees first, for each fault, launcher, version of torch and number of ranks: at
least 95 % of them are right, and none is wrong with high confidence.

test_job_faults.py tests the sentences; here a verdict is taken once, as soon as the job has stopped
moving. $PROBING_MATRIX names a file that gets a line of JSON for each."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

import hung_mount
import support
import training
from environment import wait_until
from launched_job import LAUNCHERS, LaunchedJob
from rank_job import ABSENT, CYCLE, LATE, MISMATCH, MOVES, Job, check_signs, drain

LIMIT = 0.95


class Table:
    """The results."""

    def __init__(self, **config):
        self.config, self.rows = config, []

    def add(self, fault, verdict, right):
        row = dict(self.config, fault=fault, right=bool(right), verdict=verdict.get("verdict"),
                   ranks=verdict.get("ranks"), confidence=verdict.get("confidence"),
                   sentence=verdict.get("sentence"))
        self.rows.append(row)
        print(row)
        if os.environ.get("PROBING_MATRIX"):
            with open(os.environ["PROBING_MATRIX"], "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    def check(self):
        wrong = [row for row in self.rows if not row["right"]]
        assert not [row for row in wrong if row["confidence"] == "high"], wrong
        assert len(wrong) <= (1 - LIMIT) * len(self.rows), wrong


def places(job):
    """The place of each main thread; None if the process has ended."""
    found = []
    for rank in job.ranks:
        done = subprocess.run([support.BINARY, str(rank.pid), "dump", "--json"], capture_output=True, text=True,
                              check=False, timeout=120)
        threads = json.loads(done.stdout)["threads"] if done.returncode == 0 else []
        found.append([(frame["func"], frame["line"]) for thread in threads[:1] for frame in thread["frames"]])
    return found


def settle(job, before):
    """Until it has begun, and does not move any more; where it is then."""
    last = []

    def is_still():
        nonlocal last
        time.sleep(0.5)
        last, previous = places(job), last
        return last == previous != before

    wait_until(is_still, 200)
    return last


def judge(job, *words):
    """A command that prints JSON, once."""
    done = job.cluster(*words, job.name, "--json")
    print(done.stderr)
    found = json.loads(done.stdout or "{}")
    return (check_signs(found) if "verdict" in found else found), done.returncode


def find_worker(job):
    """The pid of the data loader's worker, as soon as there is one: a fork server takes its time to start."""
    file = pathlib.Path(job.file + ".worker")
    wait_until(lambda: file.exists() and file.read_text().endswith("\n"), 200)
    return int(file.read_text())


class Matrix:
    """One job, and the faults that it goes through."""

    def __init__(self, job, table):
        self.job, self.table = job, table
        self.last = job.world - 1

    def see(self, fault, start, kinds, ranks, *texts, may_end=False):
        """@start makes the fault; its verdict must be of @kinds, with these ranks and texts. Where @may_end, gloo
        may have ended all ranks: then there is no job any more."""
        before = places(self.job)
        start()
        for _ in range(5):
            places_before = settle(self.job, before)
            found, code = judge(self.job, "hang")
            # Starved ranks may rest for a while on their way.
            if places(self.job) == places_before:
                break
        if may_end and not found and not any(places(self.job)):
            found = {"verdict": "ended", "ranks": self.but(), "sentence": "no job"}
        self.table.add(fault, found, found.get("verdict") == "ended" or (
            code in kinds and ranks in (None, found["ranks"]) and all(text in found["sentence"] for text in texts)))
        return found

    def but(self, *left_out):
        return [rank for rank in range(self.job.world) if rank not in left_out]

    def told(self, word, *ranks, others=None):
        """Sends words to ranks."""
        def start():
            self.job.do(word, *ranks)
            if others:
                self.job.do(others, *self.but(*ranks))
        return start

    def missing_call(self):
        late = min(2, self.last)
        self.see("missing call", self.told("forgotten"), [LATE], [late], "never entered all_reduce")
        self.job.do("gather", late)
        self.job.done(late)
        self.job.done()

    def data_loader(self):
        def start():
            self.job.do("load", self.last)
            self.job.do("gather", *self.but(self.last))
            find_worker(self.job)

        self.see("data loader sleeps", start, [LATE], [self.last], "waits in DataLoader for worker", "Slow.__getitem__")
        self.job.release()

    def stopped(self):
        pid = self.job.pids()[0]

        def start():
            os.kill(pid, signal.SIGSTOP)
            self.job.do("gather", *self.but(0))

        self.see("SIGSTOP", start, [ABSENT], [0], "is stopped by a signal")
        os.kill(pid, signal.SIGCONT)
        self.job.do("gather", 0)
        self.job.done()

    def gil(self):
        for word, text in (("hold_gil", "holds the GIL"), ("lose_gil", "the GIL is held by thread")):
            self.see("GIL held in C" + (", by another thread" if word == "lose_gil" else ""),
                     self.told(word, self.last, others="gather"), [LATE], [self.last], text)
            drain(self.job, self.last, b"x")
            self.job.done()

    def checkpoint(self):
        self.see("checkpoint on a fifo", self.told("save", 0, others="meet"), [LATE], [0], "go.fifo0")
        drain(self.job, 0)
        self.job.done()
        with hung_mount.mounted(self.job.file + ".mount"):
            self.see("checkpoint on a hung FUSE", self.told("save_far", self.last, others="meet"), [LATE, ABSENT],
                     [self.last], ".mount/checkpoint")
        self.job.done()

    def parallel(self):
        for word, late in (("pipeline", 1), ("sharded", min(2, self.last)), ("parallel", 0), ("later", 1)):
            self.see({"sharded": "FSDP-like", "parallel": "DDP", "later": "work.wait()"}.get(word, word),
                     self.told(word), [LATE], [late], "it is at stall")
            self.job.release()

    def moving(self):
        self.job.do("uneven")
        found = {}
        with contextlib.suppress(AssertionError):
            # It begins with a first step.
            wait_until(lambda: places(self.job)[0][-1:] != [], 20)
            found, _ = judge(self.job, "slow", "--duration", "5s")
        names = [each["function"].split()[0] for each in found.get("longer") or []]
        self.table.add("slow rank", {"verdict": "slow", "ranks": [found.get("slow")], "confidence":
                                     found.get("confidence"), "sentence": names},
                       found.get("slow") == 1 and "read_file" in names)
        found, code = judge(self.job, "hang")
        self.table.add("slow rank, hang", found, code == MOVES)
        self.job.release()


def started(config, folder, name):
    launcher, torch, world, agent = config
    stack = contextlib.ExitStack()
    with stack:
        file = str(folder / name / "go")
        os.mkdir(folder / name)
        job = Job(stack, file, world=world, torch=torch) if launcher == "ssh" else \
            LaunchedJob(stack, file, launcher, world=world, torch=torch)
        for pid in job.pids() if agent else ():
            subprocess.run([support.BINARY, str(pid), "inject"], check=True, capture_output=True)
        return stack.pop_all(), job


NEW = [torch for torch in training.OTHERS if torch.name not in ("torch-2.6.0", "other")]
# Launcher, torch, ranks, and whether an agent asks the flight recorder. "ssh": no launcher.
CONFIGS = [("mpirun", training.SYSTEM, 2, False)]
if support.LONG:
    CONFIGS = [(launcher, torch, 4, False) for launcher in ("ssh", *LAUNCHERS)
               for torch in [training.SYSTEM, *NEW]]
    # torchrun cannot do without libuv, which Debian's torch lacks.
    CONFIGS = [each for each in CONFIGS if each[0] != "torchrun" or "USE_LIBUV" not in each[1].env]
    CONFIGS += [("ssh", torch, 4, True) for torch in NEW]
    CONFIGS += [("ssh", training.SYSTEM, world, False) for world in (2, 3, 8, 16)]
    CONFIGS += [(launcher, NEW[n % len(NEW)], world, False) for n, (launcher, world) in
                enumerate((("torchrun", 2), ("mpirun", 8), ("srun", 8), ("ssh", 16)))]


@pytest.fixture(name="config", params=CONFIGS, ids=lambda each: "%s-%r-%d%s" % (*each[:3], "-agent" * each[3]))
def fixture_config(request):
    request.param[1].check()
    return request.param


@pytest.fixture(name="table")
def fixture_table(config):
    return Table(launcher=config[0], torch=repr(config[1]), world=config[2], agent=config[3])


def test_faults_that_pass(config, table, tmp_path):
    stack, job = started(config, tmp_path, "job")
    with stack:
        matrix = Matrix(job, table)
        matrix.missing_call()
        matrix.stopped()
        if support.LONG:
            matrix.data_loader()
            matrix.gil()
            matrix.checkpoint()
            matrix.parallel()
            matrix.moving()
    table.check()


def mismatch(matrix):
    odd = 1 if matrix.last > 1 else None
    matrix.see("another operation", matrix.told("spread", 1, others="gather"), [MISMATCH], odd and [odd],
               "broadcast", "all_reduce")


def shapes(matrix):
    """gloo ends ranks, or lets them wait for ever."""
    found = matrix.see("tensors of other sizes", matrix.told("shapes"), [MISMATCH, ABSENT, LATE], None, may_end=True)
    if found.get("verdict") == "late":
        matrix.table.rows[-1]["right"] = found["confidence"] == "low"


def around(matrix):
    matrix.see("all receive first", matrix.told("around"), [MISMATCH], matrix.but())


def cycle(matrix):
    matrix.see("lock cycle", matrix.told("lock", matrix.last, others="gather"), [CYCLE], [matrix.last],
               "waits for a lock of thread")


def crash(matrix):
    """Its launcher does not end the others."""
    pid = matrix.job.pids()[matrix.last]

    def start():
        matrix.job.do("gather", *matrix.but(matrix.last))
        matrix.job.waits(*matrix.but(matrix.last))
        os.kill(pid, signal.SIGKILL)

    found = matrix.see("crashed rank", start, [ABSENT], None, may_end=True)
    # gloo ends some others, too.
    matrix.table.rows[-1]["right"] &= matrix.last in found.get("ranks", [])


def dead_worker(matrix):
    def start():
        matrix.job.do("killed", matrix.last)
        os.kill(find_worker(matrix.job), signal.SIGKILL)
        # It checks its workers every five seconds.
        wait_until(lambda: not places(matrix.job)[matrix.last], 200)

    found = matrix.see("dead data loader worker", start, [ABSENT], None, may_end=True)
    matrix.table.rows[-1]["right"] &= matrix.last in found.get("ranks", [])


def crossed(matrix):
    matrix.see("groups in another order", matrix.told("crossed"), [MISMATCH], None, "wait for each other")


def can_be(fault, config):
    """torchrun and mpirun end all ranks when one dies; the groups of ranks.py are of three ranks."""
    return (fault not in (crash, dead_worker) or config[0] in ("ssh", "srun")) and \
        (fault is not crossed or config[2] == 3)


if support.LONG:
    @pytest.mark.parametrize("fault", [mismatch, shapes, around, cycle, crash, dead_worker, crossed],
                             ids=lambda each: each.__name__)
    def test_faults_that_end_a_job(config, table, tmp_path, fault):
        if can_be(fault, config):
            stack, job = started(config, tmp_path, "job")
            with stack:
                fault(Matrix(job, table))
            table.check()

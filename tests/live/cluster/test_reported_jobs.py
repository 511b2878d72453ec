# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing node --watch-jobs --to http://HOST:PORT`: jobs of several machines are judged by the daemon there. The
machines are namespaces, the jobs torch's."""
import contextlib
import json
import os
import subprocess
import time

import pytest

import clickhouse_server
import jobs
import support
from clickhouse_server import WITHOUT_LIBCURL
from environment import wait_until
from nodes import nodes
from training import SYSTEM

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="needs root")
PYTHON, TOKEN, PORT = "/usr/bin/python3", "t," * 20, "9922"
# It steps until there is the file HANG; then one rank does what CASE says, and all others wait for it.
RANK = """
import os, sys, time
import torch, torch.distributed as dist
def load():
    time.sleep(1000)
def evaluate():
    model, total = torch.nn.Linear(64, 64), 0
    while True:
        total += float(model(torch.ones(64)).sum())
def train():
    while True:
        time.sleep(0.1)
        hangs = torch.tensor([os.path.exists(sys.argv[1])], dtype=torch.int)
        dist.broadcast(hangs, 0)
        if hangs.item():
            break
    if dist.get_rank() == int(sys.argv[3]):
        globals()[sys.argv[2]]()
    dist.barrier()
dist.init_process_group("gloo")
print("ready", flush=True)
train()
"""


class Machines:
    """Two nodes with their daemons; the first judges."""

    def __init__(self, stack, folder, way=()):
        self.stack, self.folder, self.hang = stack, folder, folder / "hang"
        self.nodes = stack.enter_context(nodes(2))
        self.head = "http://%s:%s" % (self.nodes[0].address, PORT)
        self.daemons, self.ranks = [], []
        self.daemon(0, "--listen", "%s:%s" % (self.nodes[0].address, PORT), "--plain")
        self.daemon(1, "--to", self.head, way=way)

    def daemon(self, number, *words, way=()):
        env = clickhouse_server.environment(self.folder, PROBING_AUTH_TOKEN=TOKEN)
        with open(self.folder / ("log%d" % number), "w", encoding="utf-8") as log:
            self.daemons.append(self.nodes[number].start(self.stack, [
                *way, support.BINARY, "node", "--watch-jobs", "--hang", "3s", "--host-name", "node%d" % number, "--state",
                self.folder / ("state%d" % number), *words], env=env, stdout=subprocess.DEVNULL, stderr=log))

    def train(self, case, places, late=2):
        """Starts a rank on each of these nodes, and waits until they train; @late is the one of CASE."""
        program = self.folder / "rank.py"
        program.write_text(RANK)
        for rank, number in enumerate(places):
            env = dict(os.environ, MASTER_ADDR=self.nodes[0].address, MASTER_PORT="29500", RANK=str(rank),
                       WORLD_SIZE=str(len(places)), LOCAL_WORLD_SIZE=str(places.count(number)), OMP_NUM_THREADS="1",
                       LOCAL_RANK=str(places[:rank].count(number)), GLOO_SOCKET_IFNAME="eth0" if number else "br0")
            self.ranks.append(self.nodes[number].start(self.stack, [PYTHON, program, self.hang, case, late],
                                                       env=env, stdout=subprocess.PIPE, text=True))
        for rank in self.ranks:
            assert rank.stdout.readline() == "ready\n"
        self.job = "torch %s:29500" % self.nodes[0].address

    def log(self, number=0):
        return (self.folder / ("log%d" % number)).read_text()

    def metrics(self):
        path = self.folder / "state0/jobs.prom"
        return path.read_text() if path.exists() else ""

    def expect(self, text):
        """Waits until the metrics have it."""
        try:
            wait_until(lambda: text in self.metrics(), 120)
        except AssertionError:
            raise AssertionError((self.log(), self.log(1), os.listdir(self.folder / "state0/reports"))) from None

    def pulses(self):
        return list((self.folder / "state0/reports").glob("*.pulse"))


@pytest.fixture
def machines(request, tmp_path):
    SYSTEM.check()
    with contextlib.ExitStack() as stack:
        yield Machines(stack, tmp_path, getattr(request, "param", ()))


@pytest.mark.parametrize("machines, places, late", [((), [0, 0, 1, 1], 2), (WITHOUT_LIBCURL, [0, 0, 0, 1], 3)],
                         indirect=["machines"], ids=["two and two", "alone, without libcurl"])
def test_the_one_asked_judges(machines, places, late):
    """Also if the rank that keeps the job is alone on its machine, where nobody waits."""
    machines.train("load", places, late)
    machines.hang.touch()
    machines.expect('probing_job_hung{job="%s",rank="%d",verdict="late"} 1' % (machines.job, late))
    said = machines.log()
    assert "job %s has hung for " % machines.job in said and "late: rank %d (node1, pid " % late in said, said
    assert "never entered barrier" in said and "load rank.py:" in said and " has hung for " not in machines.log(1), said
    # Its evidence is in a file, of which the snapshots are on the node that saved them.
    saved = said.rpartition("saved in ")[2].splitlines()[0]
    told = json.loads(jobs.cluster(saved, "cluster", "hang", "--json").stdout)
    assert told["ranks"] == [late] and "ssh://node1/" in told["next"], told
    assert list((machines.folder / "state1/jobs").glob("hang-*.probing"))
    for rank in machines.ranks:
        rank.kill()
    wait_until(lambda: "probing_job_hung{" not in machines.metrics(), 60)
    assert "job %s has ended" % machines.job in machines.log()


def test_a_host_that_reports_no_more(machines):
    """It is named, and its ranks are not blamed."""
    machines.train("load", [0, 0, 1, 1])
    wait_until(lambda: len(machines.pulses()) == 2, 60)
    machines.daemons[1].kill()
    machines.hang.touch()
    machines.expect('verdict="unreachable"} 1')
    said = machines.log()
    assert "unreachable: all 2 ranks that answered wait in barrier" in said and "ranks 2,3" in said, said
    saved = said.rpartition("saved in ")[2].splitlines()[0]
    told = json.loads(jobs.cluster(saved, "cluster", "hang", "--json").stdout)
    assert told["confidence"] == "medium" and told["unanswered"][0]["host"] == "node1", told
    assert "node1 has not reported for " in told["unanswered"][0]["error"], told


def test_a_job_that_moves_elsewhere(machines):
    """The ranks here wait, and the one there evaluates: no alarm."""
    machines.train("evaluate", [0, 0, 1, 1])
    machines.hang.touch()
    time.sleep(18)  # six times what ranks may wait: that nothing is said can only be waited for
    assert " has hung " not in machines.log() and " has hung " not in machines.log(1)
    assert not list((machines.folder / "state0/jobs").glob("hang-*-%s.probing" % ("[0-9a-f]" * 16))), machines.log()


def test_nobody_to_report_to(machines):
    """The daemon then judges what it sees, and says so once."""
    machines.daemons[0].kill()
    machines.train("load", [0, 0, 1, 1])
    machines.hang.touch()
    wait_until(lambda: "job %s has hung for " % machines.job in machines.log(1), 120)
    assert machines.log(1).count("jobs are judged here alone: ") == 1, machines.log(1)
    assert TOKEN not in machines.log(1)


@pytest.mark.parametrize("words, said", [
    (("--to", "http://head:9922"), "is for --watch-jobs"),
    (("--to", "http://head:9922", "--watch-jobs", "--hosts", "a"), "two ways for the same"),
    (("--to", "http://a:1", "--to", "http://b:1", "--watch-jobs"), "given twice"),
])
def test_mistakes(probing, words, said):
    result = probing("node", *words)
    assert result.code == 2 and said in result.err, result

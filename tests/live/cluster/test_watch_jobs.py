# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing node --watch-jobs`: jobs that hang are noticed, saved and reported, and no others."""
import contextlib
import http.server
import json
import os
import pathlib
import signal
import tempfile
import threading
import time
import urllib.request

import pytest

import jobs
import simulated
from clickhouse_server import OPENER, free_ports
from environment import wait_until
from test_clickhouse import daemon
from test_job_kinds import job
from training import SYSTEM

PYTHON = "/usr/bin/python3"
NODE = ("node",)


class Hook:
    """A server that keeps what is posted to it."""

    def __init__(self, answer=b"ok"):
        self.got = got = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # pylint: disable=invalid-name
                got.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.end_headers()
                with contextlib.suppress(OSError):
                    for _ in range(1 if answer else 1 << 20):
                        self.wfile.write(answer or b"\x1b[2J" * (1 << 16))

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d/secret-of-the-hook" % self.server.server_address[1]

    def of(self, name):
        """What was posted of that job: other tests have jobs, too."""
        return [told for told in map(json.loads, self.got) if name in told["job"]]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


@contextlib.contextmanager
def watching(tmp_path, *words):
    """The daemon, and what it has said."""
    with daemon(tmp_path, "--watch-jobs", "--state", tmp_path / "state", "--hang", "3s", *words, command=NODE) as start:
        yield start(), start.log.read_text


def check_silent(tmp_path, log):
    """A file with another end is one that a look has begun: it is removed if the job moves. Other tests have jobs, too."""
    own = [line for line in log.splitlines() if "job " in line and jobs.ADDRESS in line]
    assert not own and ("job " in log or not list((tmp_path / "state/jobs").glob("*.probing"))), log


def metrics(tmp_path):
    path = tmp_path / "state" / "jobs.prom"
    return path.read_text() if path.exists() else ""


def test_a_job_that_hangs(tmp_path):
    """Noticed, saved, posted, in the metrics; and no more once its ranks go on or have ended."""
    port, = free_ports(1)
    (tmp_path / "token").write_text("x" * 43)
    (tmp_path / "token").chmod(0o600)
    with Hook() as hook, job("stuck", str(tmp_path / "at")) as (name, ranks), \
            watching(tmp_path, "--webhook", hook.url, "--listen", "127.0.0.1:%d" % port, "--listen-token",
                     tmp_path / "token", "--host-name", "here") as (_, log):
        wait_until(lambda: hook.of(name), 120)
        told = hook.of(name)[0]
        assert (told["event"], told["host"]) == ("hung", "here") and name in told["job"], told
        assert told["hang"]["verdict"] == "late" and told["hang"]["ranks"] == [2] and told["waited_s"] >= 3, told
        assert "rank 2 (pid %d) never entered barrier" % ranks[2].pid in told["text"]
        saved = jobs.cluster(told["saved"], "cluster", "hang", "--json")
        assert json.loads(saved.stdout)["ranks"] == [2], saved
        assert " has hung for " in log() and "late: rank 2 " in log() and "confidence high; saved in " in log(), log()
        assert "secret-of-the-hook" not in log()
        line = 'probing_job_hung{job="torch %s",rank="2",verdict="late"} 1' % name
        wait_until(lambda: line in metrics(tmp_path), 20)
        request = urllib.request.Request(
            "http://127.0.0.1:%d/metrics" % port, headers={"Authorization": "Bearer " + "x" * 43})

        def is_served():
            with contextlib.suppress(OSError):
                return line in OPENER.open(request, timeout=60).read().decode()

        wait_until(is_served, 60)
        # All at once: those that are left would be a job that hangs, too.
        for rank in ranks:
            os.kill(rank.pid, signal.SIGKILL)
        for rank in ranks:
            rank.wait()
        wait_until(lambda: name not in metrics(tmp_path), 30)
        assert len(hook.of(name)) == 1, hook.got


@pytest.mark.parametrize("case", ["counted", "gil_hog"])
def test_a_job_that_moves_is_left_alone(tmp_path, case):
    with job(case, str(tmp_path / "at")), watching(tmp_path) as (_, log):
        time.sleep(15)  # that nothing is said can only be waited for
        check_silent(tmp_path, log())


# What real jobs do for long without a step: each is a job of two ranks.
QUIET = """
import os, subprocess, sys, time
import torch, torch.distributed as dist
import datetime
RANK = int(os.environ["RANK"])
CASE, FILE = sys.argv[2:4] if len(sys.argv) > 3 else ("%s", "%s")
if CASE == "start" and RANK == 1:
    print("ready", flush=True)
    time.sleep(1000)
if CASE == "start":
    print("ready", flush=True)
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=900))
dist.barrier()
print("ready", flush=True)
if RANK == 1:
    dist.barrier()
elif CASE == "evaluation":
    model, total = torch.nn.Linear(64, 64), 0
    while True:
        total += float(model(torch.ones(64)).sum())
elif CASE == "compile":
    # It ends with its input, which this rank has.
    subprocess.run([sys.executable, "-c", "import select; [0 for _ in iter(lambda: select.select([0], [], [], 0)[0], [0])]"],
                   stdin=os.pipe()[0], stdout=subprocess.DEVNULL, pass_fds=[])
elif CASE == "checkpoint":
    with open(FILE, "wb", buffering=0) as file:
        blob = bytes(1 << 20)
        while True:
            file.seek(0)
            file.write(blob)
            time.sleep(0.2)
"""


@pytest.mark.parametrize("case", ["start", "evaluation", "compile", "checkpoint"])
def test_no_false_alarm(tmp_path, case):
    """While rank 1 waits, rank 0 works; or it has not come yet."""
    SYSTEM.check()
    with jobs.ranks(PYTHON, 2, source=QUIET % (case, tmp_path / "file"), MASTER_ADDR="127.0.0.1",
                    MASTER_PORT=str(free_ports(1)[0]), OMP_NUM_THREADS="1") as _, watching(tmp_path) as (_, log):
        # Four times what a hang has.
        time.sleep(12)
        check_silent(tmp_path, log())


def test_an_answer_of_the_hook_without_an_end(tmp_path):
    """It is cut off in time, and nothing of it gets to the log."""
    with Hook(answer=None) as hook, job("stuck", str(tmp_path / "at")) as (name, ranks), \
            watching(tmp_path, "--webhook", hook.url) as (_, log):
        wait_until(lambda: "the verdict could not be posted" in log() or "has ended" in log(), 120)
        assert "\x1b" not in log() and "secret-of-the-hook" not in log(), log()
        wait_until(lambda: 'probing_job_hung{job="torch %s"' % name in metrics(tmp_path), 120)
        assert ranks


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_a_job_of_several_machines(tmp_path):
    """All of them are asked: each host is a user of this machine."""
    users = [2003, 2004]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        env = jobs.reach_hosts(pathlib.Path(folder), jobs.SSH % "/dev/null")
        for rank, user in enumerate(users):
            stack.enter_context(jobs.ranks(PYTHON, 1, [user], source=simulated.RANK.replace(
                "sys.argv[1]", "os.environ['RANK']") % 3, RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK="0",
                LOCAL_WORLD_SIZE="1", MASTER_PORT="29521"))
        with daemon(tmp_path, "--watch-jobs", "--state", tmp_path / "state", "--hang", "3s", "--hosts",
                    "node2003,node2004", command=NODE, PATH=env["PATH"],
                    PROBING_REMOTE_PROGRAM=env["PROBING_REMOTE_PROGRAM"]) as start:
            start()
            name = "torch %s:29521" % jobs.ADDRESS
            line = 'probing_job_hung{job="%s",rank="1",verdict="late"} 1' % name
            wait_until(lambda: line in metrics(tmp_path), 90)
            assert "rank 1 (node2004, pid " in start.log.read_text()

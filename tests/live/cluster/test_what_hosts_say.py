# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages about hosts: the reason why a host does not answer, hosts that are named twice, and jobs of the
same name on two hosts. The hosts are a stand-in for ssh."""
import contextlib
import json
import os
import pathlib
import signal
import tempfile

import pytest

import jobs
import simulated
from environment import wait_until

PYTHON = "/usr/bin/python3"
OK, USAGE, UNKNOWN = 0, 2, 16

SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
echo "$2" >>"$LOG"
case $2 in
shell*) echo "stty: standard input: Inappropriate ioctl for device" >&2
    echo "sh: 1: exec: probing: not found" >&2; exit 127;;
changed) cat >&2 <<END
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
Host key verification failed.
END
    exit 255;;
own) echo "module: command not found" >&2; echo "probing: warning: the cache cannot be written" >&2
    echo "probing: cannot list /proc: Permission denied" >&2; echo "  mount it" >&2; exit 4;;
task) echo "slurmstepd: error: execve(): probing: No such file or directory" >&2
    echo "srun: error: task: task 0: Exited with exit code 2" >&2; exit 2;;
quiet) exit 255;;
killed) kill -9 $$;;
keeps) sleep 1000 </dev/null >/dev/null & echo $! >>"$LOG.left";;
esac
exec sh -c "$3"
"""

REASONS = {"shell1": "sh: 1: exec: probing: not found", "changed": "Host key verification failed.",
           "own": "cannot list /proc: Permission denied",
           "task": "slurmstepd: error: execve(): probing: No such file or directory",
           "quiet": "ssh ended with exit code 255", "killed": "ssh was ended by signal 9"}

# Each host is a user of this machine.
USERS = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
user=${2#node}
exec setpriv --reuid $user --regid $user --clear-groups sh -c "$3"
"""


@pytest.fixture
def hosts():
    """An environment whose ssh leads to them, and the log of contacted hosts."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "log")
        env = jobs.reach_hosts(pathlib.Path(folder), SSH)
        yield dict(env, LOG=str(log)), log
        left = pathlib.Path(folder, "log.left")
        for pid in left.read_text().split() if left.exists() else ():
            os.kill(int(pid), signal.SIGKILL)


def test_the_reason_is_said(hosts):
    env, _ = hosts
    with jobs.ranks(PYTHON, 1) as [rank]:
        done = jobs.cluster("cluster", "nodes", "--json", "--hosts", ",".join(["a", *REASONS]), jobs.ADDRESS, env=env)
        assert json.loads(done.stdout)[0]["ranks"][0]["pid"] == rank.pid, done
        said = sorted(line for line in done.stderr.splitlines() if not line.startswith("  "))
        assert said == sorted("probing: warning: %s: %s" % each for each in REASONS.items()), done


def test_a_connection_that_is_kept(hosts):
    """ssh leaves a process for later connections, which has the pipe of its messages open."""
    env, _ = hosts
    with jobs.ranks(PYTHON, 1) as [rank]:
        done = jobs.cluster("cluster", "nodes", "--json", "--hosts", "keeps", jobs.ADDRESS, env=env)
        assert done.returncode == OK and not done.stderr, done
        assert json.loads(done.stdout)[0]["ranks"][0]["pid"] == rank.pid


def test_hosts_that_are_named_twice(hosts, tmp_path):
    """As files of schedulers do, with a line for each processor."""
    env, log = hosts
    file = tmp_path / "nodes"
    file.write_text("a\na\na\nb slots=4\nb\na\n")
    with jobs.ranks(PYTHON, 1):
        for words in (["--host-file", file], ["--hosts", "a,a,b,a,b"],
                      ["--tree", "--hosts", "a,b,a"]):
            done = jobs.cluster("cluster", "nodes", *words, jobs.ADDRESS, env=env)
            assert done.returncode == OK and "1 rank on 2 hosts" in done.stdout, done
            assert sorted(log.read_text().split()) == ["a", "b"], log.read_text()
            log.unlink()


@contextlib.contextmanager
def two_jobs(address):
    """A job of two ranks for each of two users: two hosts."""
    users = [2003, 2004]
    with contextlib.ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        env = jobs.reach_hosts(pathlib.Path(folder), USERS)
        pids = [[rank.pid for rank in stack.enter_context(
            jobs.ranks(PYTHON, 2, [user] * 2, MASTER_ADDR=address, MASTER_PORT="29520"))] for user in users]
        yield env, ",".join("node%d" % user for user in users), pids


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_two_hosts_with_jobs_of_one_name():
    """A rank that two hosts have is not left out without a word."""
    loopback = "127" + jobs.ADDRESS[2:]
    with two_jobs(loopback) as (env, hosts, pids):
        name = "%s:29520" % loopback
        done = jobs.cluster("cluster", "nodes", "--hosts", hosts, name, env=env)
        assert done.returncode == USAGE and not done.stdout, done
        # In the order of their answers.
        assert any("%s and %s have each a job 'torch %s'" % (*pair, name) in done.stderr
                   for pair in (("node2003", "node2004"), ("node2004", "node2003"))), done
        one = jobs.cluster("cluster", "nodes", "--json", "--hosts", "node2004", name, env=env)
        assert [rank["pid"] for rank in json.loads(one.stdout)[0]["ranks"]] == pids[1], one
    with two_jobs(jobs.ADDRESS) as (env, hosts, pids):
        name = "%s:29520" % jobs.ADDRESS
        done = jobs.cluster("cluster", "nodes", "--json", "--hosts", hosts, name, env=env)
        found = json.loads(done.stdout)[0]["ranks"]
        kept = [pids[host].index(rank["pid"]) for rank in found for host in (0, 1) if rank["pid"] in pids[host]]
        assert kept == [0, 1], done
        assert "rank 0 is taken to be process %d of %s, but process " % (found[0]["pid"], found[0]["host"]) in done.stderr
        assert "has the same job and rank in its environment; 1 more ranks are claimed twice" in done.stderr, done


def test_a_part_of_a_job_says_to_ask_the_others():
    """The ranks of one node of two wait for the others."""
    together = simulated.RANK.replace('sys.argv[1] == "1"', "False") % 3
    with jobs.ranks(PYTHON, 2, source=together, WORLD_SIZE="4", LOCAL_WORLD_SIZE="2"):
        done = jobs.cluster("cluster", "hang", "--json", jobs.ADDRESS)
        found = json.loads(done.stdout)
        assert found["confidence"] == "low" and found["next"] == \
            "probing cluster hang --hosts HOSTS, all hosts of the job: 2 of its 4 ranks are here", found
    with jobs.ranks(PYTHON, 2, source=together, WORLD_SIZE="4", LOCAL_WORLD_SIZE="2", SLURM_JOB_ID="4711"):
        found = json.loads(jobs.cluster("cluster", "hang", "--json", jobs.ADDRESS).stdout)
        assert found["next"] == "probing cluster hang --slurm 4711", found


# A rank at a different line in each round.
MOVING = "import time\nprint('ready', flush=True)\nwhile True:\n" + 30 * "    time.sleep(0.01)\n"


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_a_host_that_was_not_asked():
    """Its ranks are not dead: the user may have forgotten a host."""
    with contextlib.ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        env = jobs.reach_hosts(pathlib.Path(folder), USERS)

        def hang(*words):
            return jobs.cluster("cluster", "hang", "--json", "--hosts", *words, env=env)

        with jobs.ranks(PYTHON, 2, [2003, 2004], source=MOVING):
            wait_until(lambda: hang("node2003", jobs.ADDRESS).returncode == OK, 120)
            nodes = jobs.cluster("cluster", "nodes", "--hosts", "node2003", jobs.ADDRESS, env=env)
            assert nodes.stdout.endswith("      -  no host that was asked has it\n"), nodes
            nodes = jobs.cluster("cluster", "nodes", "--hosts", "node2003,nowhere", jobs.ADDRESS, env=env)
            assert nodes.stdout.endswith("      -  no host that answered has it\n"), nodes
        # Of ranks that do not move, it is not sure; for a rank lost by its host nobody waits.
        with jobs.ranks(PYTHON, 2, [2003, 2004]):
            found = json.loads(hang("node2003", jobs.ADDRESS).stdout)
            assert (found["verdict"], found["ranks"], found["confidence"]) == ("absent", [1], "medium"), found
            assert found["sentence"] == "rank 1 has no process on the hosts that were asked", found
            assert "more hosts than were asked" in found["wrong_if"], found
        with jobs.ranks(PYTHON, 1, [2003], WORLD_SIZE="2", LOCAL_WORLD_SIZE="2"):
            found = json.loads(hang("node2003", jobs.ADDRESS).stdout)
            assert (found["verdict"], found["ranks"], found["confidence"]) == ("left", [0], "medium"), found
            assert found["sentence"].startswith("rank 1 has no process, and nobody waits for it; rank 0 "), found


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_a_master_that_calls_itself_localhost():
    """As in a PyTorchJob of Kubernetes: its rank 0 is alone there, and the others are elsewhere."""
    with contextlib.ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        env = jobs.reach_hosts(pathlib.Path(folder), USERS)
        common = {"MASTER_PORT": str(40000 + os.getpid() % 20000), "WORLD_SIZE": "2"}
        [master] = stack.enter_context(jobs.ranks(PYTHON, 1, [2003], MASTER_ADDR="localhost", RANK="0", **common))
        [other] = stack.enter_context(jobs.ranks(PYTHON, 1, [2004], RANK="1", **common))
        port = ":%s" % common["MASTER_PORT"]
        one = jobs.cluster("cluster", "nodes", "--json", "--hosts", "node2003", port, env=env)
        # Nobody knows where the other is: it is not called absent, although no process has it.
        local = jobs.cluster("cluster", "nodes", "--json", "localhost" + port)
        assert [rank["pid"] for rank in json.loads(local.stdout)[0]["ranks"]] == [master.pid], local
        assert [rank["pid"] for rank in json.loads(one.stdout)[0]["ranks"]] == [master.pid, None], one
        for hosts in ("node2003,node2004", "node2004,node2003"):
            done = jobs.cluster("cluster", "nodes", "--json", "--hosts", hosts, port, env=env)
            found = json.loads(done.stdout)[0]
            assert found["job"] == "torch %s%s" % (jobs.ADDRESS, port), done
            assert [rank["pid"] for rank in found["ranks"]] == [master.pid, other.pid] and not done.stderr, done

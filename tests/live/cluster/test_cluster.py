# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing cluster` over the ranks of a real job: gloo, torch's data loader, stopped and dead ranks."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile

import pytest

import jobs
import profiles
import support
from environment import wait_until
from rank_job import ABSENT, CYCLE, LATE, MISMATCH, MOVES, Job, main_wait

STRANGER = 2001


@pytest.fixture(name="open_path")
def fixture_open_path():
    """A folder that other users can enter; pytest closes its own whenever another one starts."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield pathlib.Path(folder)


@pytest.fixture(name="job")
def fixture_job(tmp_path):
    with contextlib.ExitStack() as stack:
        yield Job(stack, str(tmp_path / "go"))


def test_a_job_from_a_late_rank_to_a_dead_one(job):
    nodes = json.loads(job.cluster("nodes", "--json").stdout)
    here = next(each for each in nodes if job.name in each["job"])
    assert here["complete"] and [rank["pid"] for rank in here["ranks"]] == job.pids()

    assert job.name in job.cluster("attach").stdout

    # Rank 1 reads its stdin, while the others wait for it.
    job.do("gather", 0, 2)
    job.waits(0, 2)
    late = job.hang(LATE, confidence="high")
    assert late["verdict"] == "late" and late["ranks"] == [1] and late["confidence"] == "high"
    assert "rank 1 (pid %d) never entered all_reduce; it is at <module> ranks.py:" % job.pids()[1] \
        in late["sentence"]
    assert "ranks 0,2 are in all_reduce, called at ranks.py:" in late["evidence"]
    tree = job.cluster("dump", str(job.pids()[0])).stdout
    assert "3:[0-2]" in tree and "2:[0,2]" in tree and "gather  ranks.py:" in tree
    rows = job.cluster("query", "SELECT _rank FROM python.backtrace WHERE func = 'all_reduce' "
                       "ORDER BY 1", job.name)
    assert rows.stdout.split()[-2:] == ["0", "2"], rows
    job.do("gather", 1)
    job.done()

    # The worker of a data loader keeps rank 2: it has nothing to give yet.
    job.do("gather", 0, 1)
    job.do("load", 2)
    job.waits(0, 1)
    wait_until(lambda: "pipe" in main_wait(job.pids()[2]), 60)
    worker = None

    def is_told():
        # The holder of a pipe's other end is searched for 20 ms: on a starved machine in vain.
        nonlocal worker
        worker = job.hang(LATE)
        return "waits in DataLoader for worker" in worker["sentence"]

    wait_until(is_told, 60)
    assert worker["ranks"] == [2]
    assert "Slow.__getitem__ ranks.py:" in worker["sentence"]
    with open(job.file, "w", encoding="ascii"):
        job.done()

    # Ranks that meet again and again do not hang.
    os.unlink(job.file)
    job.do("loop")
    found = job.hang(MOVES)
    assert found["verdict"] == "moves" and found["next"] == "probing cluster slow %d" % job.pids()[0], found

    os.kill(job.pids()[0], signal.SIGSTOP)
    stopped = job.hang(ABSENT)
    assert stopped["ranks"] == [0] and "is stopped by a signal" in stopped["sentence"]
    assert stopped["wrong_if"] == "it goes on: look again"
    os.kill(job.pids()[0], signal.SIGCONT)
    with open(job.file, "w", encoding="ascii"):
        job.done()

    job.do("gather", 0, 1)
    job.do("lock", 2)
    cycle = job.hang(CYCLE)
    assert cycle["ranks"] == [2] and "waits for a lock of thread" in cycle["sentence"]

    job.ranks[2].kill()
    gone = job.hang(ABSENT)
    assert 2 in gone["ranks"] and "no process" in gone["evidence"]


def test_the_slow_rank(job):
    nothing = job.cluster("slow", job.name, "--duration", "300ms")
    assert nothing.returncode == 1 and "no rank was seen in a collective" in nothing.stderr
    job.do("uneven")
    job.waits(0, 2)
    # On a starved machine there are few rounds in these seconds: a rank stands out in one of some tries.
    found = text = None

    def is_found():
        nonlocal found
        done = job.cluster("slow", job.name, "--json", "--duration", "3s")
        found = json.loads(done.stdout or '{"slow": null}')
        return found["slow"] == 1 and found["longer"] and found["longer"][0]["function"] == "read_file ranks.py"

    def is_told():
        nonlocal text
        text = job.cluster("slow", str(job.pids()[0]), "--duration", "2s").stdout
        return "slow: rank 1 (pid %d) keeps the others" % job.pids()[1] in text and \
            "longer      read_file ranks.py" in text

    wait_until(is_found, 100)
    assert found["others_wait"] > found["waits"]
    wait_until(is_told, 100)
    assert "RANK    LOOKS  WAITING" in text
    found = job.hang(MOVES)
    assert found["verdict"] == "moves" and found["next"] == "probing cluster slow %d" % job.pids()[0], found

    # One profile of all, in which the ranks are the outermost frames.
    file = job.file + ".profile"
    done = profiles.repeated(lambda: job.cluster("perf", job.name, "--duration", "2s", "-o", file),
                             lambda found: "read_file" in found.stdout.partition("\nrank 1 differs most: ")[2])
    assert done.returncode == 0, done
    # The output names the rank's activity, since it does not wait like the others.
    assert "\nrank 1 differs most: " in done.stdout and "read_file" in done.stdout.split("differs most")[1], done.stdout
    odd = json.loads(subprocess.run([support.BINARY, file, "perf", "--json"], capture_output=True, check=True,
                                    text=True).stdout)["odd_rank"]
    assert odd["pid"] == job.pids()[1] and "read_file" in [each["func"] for each in odd["functions"]], odd
    rows = subprocess.run([support.BINARY, file, "query", "-f", "json",
                           "SELECT pid, command FROM profile.processes"],
                          capture_output=True, check=True, text=True)
    assert [(row["pid"], row["command"]) for row in json.loads(rows.stdout)] == \
        [(pid, "rank %d" % rank) for rank, pid in enumerate(job.pids())]
    assert job.cluster("dump", job.name, "-o", file).returncode == 2
    with open(job.file, "w", encoding="ascii"):
        job.done()


def test_ranks_in_different_collectives(job):
    job.do("gather", 0, 2)
    job.do("spread", 1)
    found = job.hang(MISMATCH)
    assert "broadcast, called at ranks.py:" in found["sentence"]
    assert "all_reduce, called at ranks.py:" in found["sentence"]


def test_all_receive_and_none_sends(job):
    job.do("receive")
    job.waits(0, 1, 2)
    found = job.hang(MISMATCH)
    assert found["sentence"] == "ranks 0-2 wait for each other: rank 0 receives from rank 1, rank 1 " \
        "receives from rank 2, rank 2 receives from rank 0"
    assert found["confidence"] == "high"


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_a_rank_of_another_user_is_not_of_the_job(open_path):
    """A user who sets a rank in his environment gets into no other user's job."""
    with contextlib.ExitStack() as stack:
        job = Job(stack, str(open_path / "go"), users=(0, 0, STRANGER))
        nodes = [each for each in json.loads(job.cluster("nodes", "--json").stdout)
                 if job.name in each["job"]]
        by_user = {each["uid"]: [rank["pid"] for rank in each["ranks"]] for each in nodes}
        assert by_user == {0: [*job.pids()[:2], None], STRANGER: [None, None, job.pids()[2]]}
        several = job.cluster("dump", job.name)
        assert several.returncode == 2 and "2 jobs run on this machine" in several.stderr


SSH = """#!/bin/sh
# Each host is a user of this machine: it sees the processes of that user only.
while [ "$1" != -- ]; do shift; done
case $2 in
a) user=%d;;
b) user=%d;;
slow) exec sleep 600;;
odd) echo '{"job": 5}'; exit 0;;
*) echo "ssh: Could not resolve hostname $2" >&2; exit 255;;
esac
exec setpriv --reuid $user --regid $user --clear-groups sh -c "$3"
"""


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_ranks_on_several_hosts(open_path):
    env = jobs.reach_hosts(open_path, SSH % (STRANGER, STRANGER + 1))

    def cluster(*words):
        return subprocess.run([support.BINARY, "cluster", *words], capture_output=True, text=True,
                              check=False, timeout=120, env=env)

    with contextlib.ExitStack() as stack:
        # That address is this machine's, and does not say so: ranks may be elsewhere.
        job = Job(stack, str(open_path / "go"), users=(STRANGER, STRANGER, STRANGER + 1),
                  address="0.0.0.0")
        job.do("gather", 0, 1)
        job.waits(0, 1)
        found = cluster("hang", "--hosts", "[a-b]", job.name)
        assert found.returncode == 2 and "is no list of hosts" in found.stderr
        # On a starved machine a round may lack data that is searched for only some milliseconds.
        found = profiles.repeated(lambda: cluster("hang", "--hosts", "a,b", job.name),
                                  lambda found: found.returncode == LATE)
        assert found.returncode == LATE, found
        assert "rank 2 (b, pid %d) never entered all_reduce" % job.pids()[2] in found.stdout
        assert "probing ssh://b/%d dump --locals" % job.pids()[2] in found.stdout
        nodes = json.loads(cluster("nodes", "--json", "--hosts", "a,b", job.name).stdout)[0]
        assert [(rank["host"], rank["pid"]) for rank in nodes["ranks"]] == \
            list(zip("aab", job.pids()))
        tree = cluster("dump", "--hosts", "a,b", job.name).stdout
        assert "2:[0,1]" in tree and "3:[0-2]" in tree
        slow = profiles.repeated(lambda: cluster("slow", "--hosts", "a,b", "--json", "--duration", "500ms", job.name),
                                 lambda found: json.loads(found.stdout or '{"slow": null}')["slow"] == 2)
        assert json.loads(slow.stdout)["slow"] == 2, slow

        # A host that does not answer is named, and its ranks are not called absent.
        part = cluster("hang", "--hosts", "a,slow,odd,nowhere", "--timeout", "10s", "--json",
                       job.name)
        verdict = json.loads(part.stdout)
        assert "slow: no answer within 11 s" in part.stderr
        assert "odd: its answer cannot be understood" in part.stderr
        assert "nowhere: ssh: Could not resolve hostname nowhere" in part.stderr
        assert (verdict["verdict"], verdict["ranks"]) == ("unreachable", [2]) and verdict["confidence"] != "high", part


def has_ended(stat):
    """A process, of which the file is open; a zombie has, too."""
    try:
        return b") Z" in os.pread(stat, 4096, 0)
    except ProcessLookupError:
        return True


def test_no_ssh_outlives_a_killed_command(tmp_path):
    (tmp_path / "ssh").write_text("#!/bin/sh\nexec sleep 600\n")
    os.chmod(tmp_path / "ssh", 0o755)
    env = dict(os.environ, PATH="%s:%s" % (tmp_path, os.environ["PATH"]))
    with subprocess.Popen([support.BINARY, "cluster", "hang", "--hosts", "a"], env=env,
                          stdout=subprocess.PIPE) as command:
        children = pathlib.Path("/proc/%d/task/%d/children" % (command.pid, command.pid))
        wait_until(lambda: children.read_text().split(), 60)
        ssh = pathlib.Path("/proc", children.read_text().split()[0])
        wait_until(lambda: b"600" in (ssh / "cmdline").read_bytes(), 60)
        held = os.open(ssh / "stat", os.O_RDONLY)
        command.kill()
    wait_until(lambda: has_ended(held), 60)
    os.close(held)


def test_no_job():
    result = subprocess.run([support.BINARY, "cluster", "dump", "torch 192.0.2.1:1"],
                            capture_output=True, check=False, text=True)
    assert result.returncode == 1 and "no job on this machine is 'torch 192.0.2.1:1'" in \
        result.stderr
    # More than pids there can be, and a process of ours: the number of a Slurm job is no pid.
    for number, reason in ((4999999, "there is no such process"),
                           (os.getpid(), "that process is no rank, nor above one")):
        result = jobs.cluster("cluster", "dump", number)
        assert result.returncode == 1 and "no job on this machine is '%d': %s\n" % (number, reason) in result.stderr, result
        assert "--slurm %d asks for the Slurm job of that number\n" % number in result.stderr, result
    # A whole number in the job's name: its port.
    port = 4200000 + os.getpid() % 700000
    with jobs.ranks("/usr/bin/python3", 1, MASTER_PORT=str(port)) as ranks:
        result = jobs.cluster("cluster", "nodes", "--json", port)
        assert [rank["pid"] for job in json.loads(result.stdout) for rank in job["ranks"]] == [ranks[0].pid], result
        assert jobs.cluster("cluster", "nodes", 10 * port).returncode == 1
    with jobs.ranks("/usr/bin/python3", 2) as ranks:
        result = subprocess.run([support.BINARY, "cluster", "hang", "torch 192.0.2.1:1"],
                                capture_output=True, check=False, text=True)
        # Others may run here, too.
        assert result.returncode == 1 and ", 2 ranks)" in result.stderr or "cluster nodes" in result.stderr, result
        assert ranks[0].pid
    usage = subprocess.run([support.BINARY, "cluster", "mend"], capture_output=True, check=False)
    assert usage.returncode == 2 and b"nodes, dump, hang, watch, slow, perf" in usage.stderr

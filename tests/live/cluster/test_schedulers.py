# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs are found by their launcher's data: a Slurm job, pods, a host file, the pid of a launcher."""
import contextlib
import glob
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pytest

import jobs
import simulated
import slurm
import support
import training
from environment import wait_until

PYTHON = "/usr/bin/python3"
UNKNOWN, OK, FAILED, USAGE = 16, 0, 1, 2

# A kubectl whose pods are this machine: it logs its arguments, and runs the given command.
KUBECTL = """#!/bin/sh
echo "$@" >>"$LOG"
case $1 in
get) python3 - $PODS <<END
import json, os, sys
pods = [{"metadata": {"name": name}, "status": {"phase": "Running"}} for name in sys.argv[1:]]
print(json.dumps({"items": pods + json.loads(os.environ.get("OTHER_PODS", "[]"))}))
END
exit 0;;
esac
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""
LOCAL_SSH = """#!/bin/sh
echo "$@" >>"$LOG"
while [ "$1" != -- ]; do shift; done
sh -c "$3"
exit $?
"""


@pytest.fixture(name="bin_path")
def fixture_bin_path():
    with tempfile.TemporaryDirectory() as folder:
        yield pathlib.Path(folder)


def environment(folder, name, text, **variables):
    (folder / name).write_text(text)
    os.chmod(folder / name, 0o755)
    return dict(os.environ, PATH="%s:%s" % (folder, os.environ["PATH"]), LOG=str(folder / "log"),
                TMPDIR=str(folder), **variables)


def read_ranks(env, *words):
    done = jobs.cluster("cluster", "nodes", "--json", *words, env=env)
    assert done.returncode == OK, done
    return [(rank["rank"], rank["host"], rank["pid"]) for rank in json.loads(done.stdout)[0]["ranks"]]


def end(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_a_slurm_job(bin_path):
    program = bin_path / "rank.py"
    program.write_text("import time\ndef step():\n    time.sleep(1000)\nstep()\n")
    with slurm.running() as env, contextlib.ExitStack() as stack:
        env["PROBING_REMOTE_PROGRAM"] = str(support.BINARY)
        srun = subprocess.Popen(["srun", "--quiet", "--mem=0", "-n", "3", PYTHON, str(program)], env=env,
                                start_new_session=True, stdin=subprocess.DEVNULL)
        stack.callback(end, srun)

        def number():
            return subprocess.run(["squeue", "-h", "-o", "%A"], env=env, capture_output=True,
                                  text=True, check=True).stdout.split()

        wait_until(number, 60)
        job = number()[0]
        wait_until(lambda: jobs.cluster("cluster", "dump", "slurm:" + job).stdout.count("step  rank.py"),
                   60)
        # From where the user is: through srun, and by the pid of the srun that started it.
        host = subprocess.run(["squeue", "-h", "-o", "%N"], env=env, capture_output=True, text=True,
                              check=True).stdout.strip()
        far = read_ranks(env, "--slurm", job)
        assert [each[:2] for each in far] == [(rank, host) for rank in range(3)]
        wait_until(lambda: jobs.cluster("cluster", "nodes", srun.pid).returncode == OK, 60)
        near = read_ranks(env, srun.pid)
        assert [each[2] for each in near] == [each[2] for each in far]
        hang = jobs.cluster("cluster", "hang", "--slurm", job, env=env)
        assert hang.returncode == UNKNOWN and "rank 2 is at step rank.py:3" in hang.stdout, hang

        told = json.loads(jobs.cluster("cluster", "perf", "--slurm", job, "--duration", "500ms", "--json", env=env).stdout)
        assert [(one["pid"], one["command"]) for one in told["processes"]] == [
            (each[2], "rank %d (%s)" % (each[0], host)) for each in far]

        none = jobs.cluster("cluster", "hang", "--slurm", "4711000", env=env)
        assert none.returncode == FAILED and "squeue: " in none.stderr, none
        usage = jobs.cluster("cluster", "hang", "--slurm", "1; true", env=env)
        assert usage.returncode == USAGE and "is no number of a Slurm job" in usage.stderr


def test_pods(bin_path):
    """Only the words for kubectl and its answers are real here: the pods are this machine."""
    env = environment(bin_path, "kubectl", KUBECTL, PROBING_REMOTE_PROGRAM=str(support.BINARY), PODS="trainer-0 trainer-1")
    with jobs.ranks(PYTHON, 2) as ranks:
        words = ("--kubernetes", "app=trainer", "--namespace", "ml", "--container", "main", jobs.ADDRESS)
        found = read_ranks(env, *words)
        # Both pods are the same machine; the first that has a rank keeps it.
        assert [(each[0], each[2]) for each in found] == [
            (rank, each.pid) for rank, each in enumerate(ranks)]
        assert {each[1] for each in found} <= {"trainer-0", "trainer-1"}
        os.kill(ranks[1].pid, signal.SIGSTOP)
        hang = jobs.cluster("cluster", "hang", *words, env=env)
        assert "next        kubectl exec trainer-" in hang.stdout, hang
        assert " --namespace=ml --container=main -- probing %d dump --locals" % ranks[1].pid in hang.stdout
    log = (bin_path / "log").read_text()
    assert "get pods --output=json --selector=app=trainer --namespace=ml\n" in log
    assert "exec --namespace=ml --container=main trainer-1 -- %s cluster look" % support.BINARY in log
    usage = jobs.cluster("cluster", "nodes", "--namespace", "ml", env=env)
    assert usage.returncode == USAGE and "are for --kubernetes" in usage.stderr
    assert jobs.cluster("cluster", "nodes", "--kubernetes", "a", "--hosts", "b",
                        env=env).returncode == USAGE


def pod(name, phase, **status):
    return {"metadata": {"name": name}, "status": dict(status, phase=phase)}


ENDED = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
GONE = [
    (pod("trainer-2", "Failed", containerStatuses=[{"state": ENDED}]), "Failed: OOMKilled, exit code 137"),
    (pod("trainer-2", "Failed", reason="Evicted"), "Failed: Evicted"),
    (pod("trainer-2", "Pending", conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]),
     "Pending: Unschedulable"),
    (pod("trainer-2", "Pending", containerStatuses=[{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]),
     "Pending: ImagePullBackOff"),
    (pod("trainer-2", "Failed", reason="\x1b[2J" * 99), "Failed: \\x1b[2J")]


@pytest.mark.parametrize("gone,why", GONE, ids=[why.split(":")[1].strip()[:9] for _, why in GONE])
def test_a_pod_that_is_gone(bin_path, gone, why):
    """Why it is gone is why a rank is missing."""
    env = environment(bin_path, "kubectl", KUBECTL, PROBING_REMOTE_PROGRAM=str(support.BINARY), PODS="trainer-0",
                      OTHER_PODS=json.dumps([gone]))
    with jobs.ranks(PYTHON, 2, source=simulated.ending(None), WORLD_SIZE="3"):
        done = jobs.cluster("cluster", "hang", "--json", "--kubernetes", "pytorchjob/night", jobs.ADDRESS, env=env)
    found = json.loads(done.stdout)
    assert "pod trainer-2: " + why in done.stderr and "\x1b" not in done.stderr + found["sentence"], done
    assert [found["verdict"], found["ranks"]] == ["absent", [2]], found
    assert "pod trainer-2 is " + why in found["sentence"] and found["unanswered"][0]["host"] == "trainer-2", found
    assert "--selector=training.kubeflow.org/job-name=night\n" in (bin_path / "log").read_text()


def test_a_pod_that_was_gone(bin_path):
    env = environment(bin_path, "kubectl", KUBECTL, PROBING_REMOTE_PROGRAM=str(support.BINARY), PODS="", OTHER_PODS=json.dumps(
        [pod("trainer-0", "Running", containerStatuses=[{"state": {"running": {}}, "lastState": ENDED}])]))
    with jobs.ranks(PYTHON, 2):
        done = jobs.cluster("cluster", "hang", "--json", "--kubernetes", "app=trainer", jobs.ADDRESS, env=env)
    assert "pod trainer-0 runs again, after: OOMKilled, exit code 137" in done.stderr, done
    assert json.loads(done.stdout)["unanswered"] == [], done


def test_a_profile_of_pods(bin_path):
    """Each pod samples its ranks; here is one with both."""
    env = environment(bin_path, "kubectl", KUBECTL, PROBING_REMOTE_PROGRAM=str(support.BINARY), PODS="trainer-0")
    words = ("--kubernetes", "app=trainer", "--namespace", "ml", "--container", "main", jobs.ADDRESS)
    file = bin_path / "pods.profile"
    with jobs.ranks(PYTHON, 2) as ranks:
        done = jobs.cluster("cluster", "perf", *words, "--duration", "500ms", "--json", "-o", file, env=env)
        assert done.returncode == OK, done
        expected = [(each.pid, "rank %d (trainer-0)" % rank) for rank, each in enumerate(ranks)]
        assert [(one["pid"], one["command"]) for one in json.loads(done.stdout)["processes"]] == expected
    kept = jobs.cluster(file, "query", "-f", "json", "SELECT pid, command FROM profile.processes")
    assert [(row["pid"], row["command"]) for row in json.loads(kept.stdout)] == expected
    assert "exec --namespace=ml --container=main trainer-0 -- %s cluster sample --duration=500ms %s\n" % (
        support.BINARY, jobs.ADDRESS) in (bin_path / "log").read_text()
    none = jobs.cluster("cluster", "perf", *words, env=dict(env, PODS=""))
    assert none.returncode == FAILED and "no running pod has the labels" in none.stderr, none


def test_a_copy_is_brought_and_removed(bin_path):
    """The far side has no probing: "sh" there gets one from its stdin."""
    env = environment(bin_path, "ssh", LOCAL_SSH, PROBING_REMOTE_PROGRAM="/nonexistent")
    with jobs.ranks(PYTHON, 2) as ranks:
        words = ("--hosts", "a", jobs.ADDRESS)
        done = jobs.cluster("cluster", "nodes", *words, env=env)
        assert done.returncode == FAILED and "a: " in done.stderr and "the only host did not answer" in done.stderr
        done = jobs.cluster("cluster", "nodes", "--hosts", "a,b", env=env)
        assert "none of 2 hosts answered" in done.stderr and "'ssh HOST probing --version'" in done.stderr, done
        found = read_ranks(env, "--bring", support.BINARY, *words)
        assert [each[2] for each in found] == [each.pid for each in ranks]
        assert not glob.glob(str(bin_path / "probing.*"))

        # Killed in the middle, it leaves nothing either: the far side loses its peer.
        with subprocess.Popen([support.BINARY, "cluster", "hang", "--bring", support.BINARY, *words],
                              env=env, stdout=subprocess.PIPE) as command:
            wait_until(lambda: glob.glob(str(bin_path / "probing.*/probing")), 60)
            command.kill()
        wait_until(lambda: not glob.glob(str(bin_path / "probing.*")), 60)
    missing = jobs.cluster("cluster", "nodes", "--bring", bin_path / "none", *words, env=env)
    assert missing.returncode == FAILED and "cannot open" in missing.stderr


def test_a_host_file(bin_path):
    env = environment(bin_path, "ssh", LOCAL_SSH, PROBING_REMOTE_PROGRAM=str(support.BINARY))
    file = bin_path / "hosts"
    file.write_text("# all nodes\n\nnode[1-2] slots=8\n  login:4\n")
    with jobs.ranks(PYTHON, 1):
        done = jobs.cluster("cluster", "dump", "--host-file", file, jobs.ADDRESS, env=env)
        assert "1 rank on 3 hosts" in done.stdout, done
        hang = jobs.cluster("cluster", "hang", "--host-file", file, jobs.ADDRESS, env=env)
        assert hang.stdout.endswith("\n  next        probing cluster dump --native --host-file=%s\n" % file), hang
    file.write_text("-oProxyCommand=touch\n")
    refused = jobs.cluster("cluster", "dump", "--host-file", file, env=env)
    assert refused.returncode == USAGE and "is no list of hosts" in refused.stderr
    file.write_text("# none\n")
    assert "names no host" in jobs.cluster("cluster", "dump", "--host-file", file, env=env).stderr


# torchrun of torch 1.13, mended: in Python 3.11 it takes "no redirection" for None.
TORCHRUN = """import sys
from torch.distributed.elastic.multiprocessing.api import Std
Std.from_str = classmethod(lambda self, text: self.NONE)
from torch.distributed.run import main
main(sys.argv[1:])
"""


def test_the_pid_of_torchrun(bin_path):
    training.check()
    program = bin_path / "rank.py"
    program.write_text("import time\ntime.sleep(1000)\n")
    env = dict(os.environ, TMPDIR=str(bin_path))
    command = [PYTHON, "-c", TORCHRUN, "--standalone", "--nproc_per_node=2", "--role=trainer", str(program)]
    with contextlib.ExitStack() as stack:
        torchrun = subprocess.Popen(command, env=env, start_new_session=True, stdin=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL)
        stack.callback(end, torchrun)
        wait_until(lambda: jobs.cluster("cluster", "nodes", torchrun.pid).stdout.count("rank.py:2") == 2,
                   120)
        found = json.loads(jobs.cluster("cluster", "nodes", "--json", torchrun.pid).stdout)[0]
        assert found["complete"] and found["world_size"] == 2
        assert [(rank["rank"], rank["role"]) for rank in found["ranks"]] == [(0, "trainer"), (1, "trainer")]
        assert "ROLE" in jobs.cluster("cluster", "nodes", torchrun.pid).stdout
        assert torchrun.pid not in [rank["pid"] for rank in found["ranks"]]
        # It ends its ranks, which are in sessions of their own.
        torchrun.terminate()
        torchrun.wait(60)


def test_the_pid_of_mpirun(bin_path):
    if not shutil.which("mpirun"):
        pytest.skip("openmpi is not installed")
    program = bin_path / "rank.py"
    program.write_text("import time\ntime.sleep(1000)\n")
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
               TMPDIR=str(bin_path))
    with contextlib.ExitStack() as stack:
        mpirun = subprocess.Popen(["mpirun", "--oversubscribe", "-n", "3", PYTHON, str(program)], env=env,
                                  start_new_session=True, stdin=subprocess.DEVNULL)
        # It ends its ranks, which are in process groups of their own.
        stack.callback(mpirun.wait)
        stack.callback(mpirun.terminate)
        wait_until(lambda: "3 ranks" in jobs.cluster("cluster", "nodes", mpirun.pid).stdout, 60)
        assert [each[0] for each in read_ranks(None, mpirun.pid)] == [0, 1, 2]

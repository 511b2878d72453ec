# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing why` of processes on other machines: pods, hosts, Slurm jobs. Each is judged where it runs."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import slurm
import support
from environment import wait_until

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cluster"))

from test_schedulers import KUBECTL, LOCAL_SSH, end, environment  # noqa: E402  pylint: disable=wrong-import-position

PYTHON = "/usr/bin/python3"
DEADLOCK, UNKNOWN, USAGE = 10, 20, 2
BANK = """
import threading
one, two, gate = threading.RLock(), threading.RLock(), threading.Barrier(2)
def pay(first, second):
    with first:
        gate.wait()
        with second:
            pass
other = threading.Thread(target=pay, args=(two, one), daemon=True)
other.start()
print(flush=True)
pay(one, two)
"""
IDLE = "print(flush=True)\ninput()"


@pytest.fixture(name="folder")
def fixture_folder():
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


def why(*words, env):
    done = subprocess.run([support.BINARY, "why", *map(str, words)], env=env, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


@contextlib.contextmanager
def bank():
    with support.Program([PYTHON, "-c", BANK]) as program:
        program.line()
        wait_until(lambda: json.loads(subprocess.run([support.BINARY, "why", "--json", str(program.pid)], check=False,
                                                     stdout=subprocess.PIPE).stdout)["targets"][0]["findings"])
        yield program


def test_the_processes_of_pods(folder):
    """The pods are this machine, so each has the same process."""
    gone = [{"metadata": {"name": "trainer-2"}, "status": {"phase": "Failed", "containerStatuses": [
        {"state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]}}]
    env = environment(folder, "kubectl", KUBECTL, PROBING_REMOTE_PROGRAM=str(support.BINARY), PODS="trainer-0 trainer-1",
                      OTHER_PODS=json.dumps(gone))
    with bank() as program:
        words = ("--kubernetes", "app=trainer", "--namespace", "ml", program.pid)
        code, out, err = why(*words, env=env)
        assert (code, err) == (DEADLOCK, ""), (code, out, err)
        assert out.startswith("trainer-0  %d  %s -c " % (program.pid, PYTHON)), out
        assert "\n  also of     trainer-1:%d\n" % program.pid in out, out
        assert "\n  next        kubectl exec trainer-0 --namespace=ml -- probing -t %d dump --locals\n" % program.pid in out, out
        assert "\nnot judged: pod trainer-2: Failed: OOMKilled, exit code 137\n" in out, out
        told = json.loads(why("--json", *words, env=env)[1])
        assert [(each["host"], each["pid"], each["verdict"]) for each in told["targets"]] == [
            (name, program.pid, "deadlock") for name in ("trainer-0", "trainer-1")]
        assert told["silent"] == [{"host": "pod trainer-2", "error": "Failed: OOMKilled, exit code 137"}]
    log = (folder / "log").read_text()
    assert "get pods --output=json --selector=app=trainer --namespace=ml\n" in log, log


def test_a_job_by_its_name(folder):
    env = environment(folder, "kubectl", KUBECTL, PROBING_REMOTE_PROGRAM=str(folder / "why"), PODS="llama-0")
    (folder / "why").write_text("#!/bin/sh\necho '{\"targets\": []}'\n")
    (folder / "why").chmod(0o755)
    assert why("pytorchjob/llama", env=env) == (0, "", "probing: there are no Python processes there\n")
    assert why("pod/llama-0", env=env)[0] == 0
    # A program of this machine may have such a name.
    with support.Program([PYTHON, "-c", IDLE, "job/llama-%d.py" % os.getpid()]) as program:
        program.line()
        code, out, err = why("job/llama-%d.py" % os.getpid(), env=env)
        assert code == 0 and out.startswith("%d  " % program.pid), (out, err)
    log = (folder / "log").read_text()
    assert "--selector=training.kubeflow.org/job-name=llama" in log and "--field-selector=metadata.name=llama-0" in log, log


ANSWERS = {
    "text": ("hello", "it does not answer with findings"),
    "list": ("[]", "it does not answer with findings"),
    "other": ('{"targets": 5}', "it does not answer with findings"),
}


@pytest.mark.parametrize("kind", sorted(ANSWERS))
def test_what_is_no_answer(kind, folder):
    env = environment(folder, "ssh", LOCAL_SSH, PROBING_REMOTE_PROGRAM=str(folder / "why"))
    (folder / "why").write_text("#!/bin/sh\ncat <<'END'\n%s\nEND\n" % ANSWERS[kind][0])
    (folder / "why").chmod(0o755)
    code, out, err = why("--hosts", "node[1-2]", env=env)
    assert (code, err) == (UNKNOWN, ""), (code, out, err)
    assert out == "".join("not judged: node%d: %s\n" % (number, ANSWERS[kind][1]) for number in (1, 2)), out


def test_a_host_that_lies(folder):
    """Its texts do not reach the terminal as they are, and a rule that nobody knows proves nothing."""
    finding = {"rule": "deadlock", "code": 10, "sentence": "\x1b[2Jnothing\nelse", "confidence": "certain", "proof": True,
               "evidence": [{"tid": -7, "text": "\x1b]0;title\x07"}, 5], "next": 5, "rests_on": None}
    other = {"rule": "\x1b[1mmagic", "code": 99, "sentence": "a new rule", "confidence": "high"}
    answer = {"targets": [{"pid": 2 ** 40, "argv": ["a\x1b[1mb", 5], "findings": [finding, other, 7]}, 3]}
    env = environment(folder, "ssh", LOCAL_SSH, PROBING_REMOTE_PROGRAM=str(folder / "why"))
    (folder / "why").write_text("#!/bin/sh\ncat <<'END'\n%s\nEND\nexit 10\n" % json.dumps(answer))
    (folder / "why").chmod(0o755)
    code, out, err = why("--hosts", "node1", env=env)
    assert (code, err) == (DEADLOCK, "") and "\x1b" not in out and "\x07" not in out, (code, out, err)
    assert "deadlock: \\x1b[2Jnothing\\nelse\n" in out and "  confidence  low" in out, out
    assert "unknown: \\x1b[1mmagic: a new rule\n" in out, out


def test_a_host_without_probing(folder):
    env = environment(folder, "ssh", LOCAL_SSH, PROBING_REMOTE_PROGRAM=str(folder / "none"))
    code, out, err = why("--hosts", "node1", env=env)
    assert (code, err) == (UNKNOWN, "") and out.startswith("not judged: node1: ") and "/none: not found" in out, (code, out, err)


def test_usage(probing):
    for words, said in {("--hosts", "a,b", "--tree"): "--tree is for 'cluster'",
                        ("--hosts", "node1:9922"): "is a served process: give it as TARGET",
                        ("--hosts", "a", "--slurm", "3"): "exclude each other"}.items():
        done = probing("why", *words)
        assert done.code == USAGE and said in done.err, done


SQUEUE = "#!/bin/sh\ncase $* in *--jobs=4711*) echo node1;; *) exit 1;; esac\n"
SRUN = """#!/bin/sh
echo "$@" >>"$LOG"
while [ "${1#--}" != "$1" ]; do shift; done
exec "$@"
"""


def test_a_slurm_job_by_stand_ins(folder):
    """Only the words for srun and squeue are real here. Processes of other jobs of the node are left alone."""
    env = environment(folder, "squeue", SQUEUE, PROBING_REMOTE_PROGRAM=str(support.BINARY))
    (folder / "srun").write_text(SRUN)
    (folder / "srun").chmod(0o755)
    of_job = dict(os.environ, SLURM_JOB_ID="4711", SLURM_STEP_ID="0", SLURM_NTASKS="1", SLURM_PROCID="0", SLURM_LOCALID="0")
    with support.Program([PYTHON, "-c", IDLE], env=of_job) as rank, support.Program([PYTHON, "-c", IDLE]) as other:
        rank.line()
        other.line()
        far = json.loads(why("--json", "--slurm", "4711", env=env)[1])
        assert [(each["host"], each["pid"]) for each in far["targets"]] == [("node1", rank.pid)], far
        here = json.loads(why("--json", "slurm:4711", env=env)[1])
        assert [(each["host"], each["pid"]) for each in here["targets"]] == [(None, rank.pid)], here
        log = (folder / "log").read_text()
        assert "--jobid=4711 --nodelist=node1 %s why --json slurm:4711\n" % support.BINARY in log, log
    done = why("slurm:4712", env=env)
    assert done[0] == 1 and "squeue: " in done[2], done


def test_a_slurm_job(folder):
    program = folder / "rank.py"
    program.write_text(BANK)
    with slurm.running() as env, contextlib.ExitStack() as stack:
        env["PROBING_REMOTE_PROGRAM"] = str(support.BINARY)
        srun = subprocess.Popen(["srun", "--quiet", "--mem=0", "-n", "2", PYTHON, str(program)], env=env, start_new_session=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        stack.callback(end, srun)

        def number():
            return subprocess.run(["squeue", "-h", "-o", "%A"], env=env, capture_output=True, text=True, check=True).stdout.split()

        wait_until(number, 60)
        job = number()[0]
        wait_until(lambda: why("slurm:" + job, env=env)[0] == DEADLOCK, 60)
        # Its ranks are here; and through srun.
        here, far = json.loads(why("--json", "slurm:" + job, env=env)[1]), json.loads(why("--json", "--slurm", job, env=env)[1])
        assert len(here["targets"]) == 2 and [each["pid"] for each in here["targets"]] == [each["pid"] for each in far["targets"]]
        assert all(each["verdict"] == "deadlock" and each["host"] for each in far["targets"]), far
        assert all(each["verdict"] == "deadlock" and each["host"] is None for each in here["targets"]), here
        os.killpg(srun.pid, signal.SIGKILL)

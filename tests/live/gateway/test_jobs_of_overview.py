# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs in `probing overview` and /v1/overview: one that hangs is told with the verdict of `cluster hang`."""
import json
import os
import pwd
import subprocess

import pytest

import jobs
import simulated
import support
from gateway_client import Gateway, wait_until

PYTHON = "/usr/bin/python3"
LIMITS = {"PROBING_LIMITS": "job=0.2"}
# Each rank sleeps most of the time, and comes to another place again and again.
MOVING = """
import sys, time
def step(n):
    time.sleep(0.3)
    return n + 1
def train():
    print("ready", flush=True)
    n = 0
    while True:
        n = step(n)
        time.sleep(0.2)
train()
"""


def overview(pids, *words, **variables):
    done = subprocess.run([support.BINARY, "overview", *words, *map(str, pids)], capture_output=True, text=True, check=True,
                          timeout=120, stdin=subprocess.DEVNULL, env=dict(os.environ, **variables))
    return done.stdout


def of_job(look, rule="hung_job"):
    return [finding for finding in look["findings"] if finding["rule"] == rule]


@pytest.fixture(scope="module")
def hung():
    with jobs.ranks(PYTHON, 3, source=simulated.RANK % 2) as ranks:
        for rank in ranks:
            wait_until(lambda rank=rank: (support.dump(rank.pid)["threads"][0]["idle_seconds"] or 0) > 0.5, "it does not sleep")
        yield [rank.pid for rank in ranks]


def test_the_verdict_comes_first(hung):
    look = json.loads(overview(hung, "--json", **LIMITS))
    finding = look["findings"][0]
    assert (finding["rule"], finding["kind"], finding["code"], finding["id"]) == ("hung_job", "job", 28, support.instance(hung[1]))
    assert finding["sentence"].startswith("job %s:29500" % jobs.ADDRESS) and "rank 1" in finding["sentence"]
    assert "never entered all_reduce" in finding["sentence"] and finding["pids"] == hung
    assert finding["evidence"] and finding["rests_on"] and finding["wrong_if"] and finding["next"]
    verdict = json.loads(jobs.cluster("cluster", "hang", "--json", hung[0]).stdout)
    assert verdict["sentence"].split(";")[0] in finding["sentence"] and verdict["confidence"] == finding["confidence"]
    [job] = look["jobs"]
    assert job["hangs"] and [rank["pid"] for rank in job["ranks"]] == hung
    for target in look["targets"]:
        assert (target["job"], target["ppid"]) == (job["job"], os.getpid())
        assert target["user"] == pwd.getpwuid(os.geteuid()).pw_name
    text = overview(hung, **LIMITS)
    assert text.startswith("%d  hung_job: job " % hung[1]) and "nothing is wrong" not in text


def test_only_what_has_waited_long_enough_and_only_whole_jobs(hung):
    assert not of_job(json.loads(overview(hung, "--json", PROBING_LIMITS="job=86400")))
    part = json.loads(overview(hung[:2], "--json", **LIMITS))
    assert not of_job(part) and not part["jobs"][0]["hangs"]


def test_a_job_that_moves_is_not_told():
    with jobs.ranks(PYTHON, 2, source=MOVING, MASTER_PORT="29503") as ranks:
        for _ in range(3):
            assert not of_job(json.loads(overview([rank.pid for rank in ranks], "--json", PROBING_LIMITS="job=0")))


def test_over_http_and_when_it_ends():
    with jobs.ranks(PYTHON, 3, source=simulated.RANK % 2, MASTER_PORT="29501") as ranks, Gateway(*(rank.pid for rank in ranks), **LIMITS) as gateway:
        wait_until(lambda: of_job(gateway.ask("/v1/overview").json), "it is not told")
        for rank in ranks:
            rank.kill()
        wait_until(lambda: not of_job(gateway.ask("/v1/overview").json), "it is told of ranks that are gone")


def test_ranks_that_have_ended_are_told_without_a_wait():
    """The others sleep for a moment each time: nothing waits for long."""
    with jobs.ranks(PYTHON, 3, source=MOVING, MASTER_PORT="29504") as ranks, \
            Gateway(*(rank.pid for rank in ranks), PROBING_LIMITS="job=86400") as gateway:
        wait_until(lambda: len(gateway.ask("/v1/overview").json["jobs"][0]["ranks"]) == 3, "the job is not found")
        assert not of_job(gateway.ask("/v1/overview").json)
        os.kill(ranks[2].pid, 9)
        wait_until(lambda: of_job(gateway.ask("/v1/overview").json, "ended_rank"), "it is not told")
        look = gateway.ask("/v1/overview").json
        [finding], [job] = of_job(look, "ended_rank"), look["jobs"]
        assert not of_job(look)
        assert "rank 2" in finding["sentence"] and "has hung" not in finding["sentence"] and not job["hangs"]
        assert [rank["rank"] for rank in job["ranks"] if rank["ended"] is not None] == [2]
        assert [rank["how"] for rank in job["ranks"]] == [None, None, "killed by SIGKILL"]
        [one] = [target for target in look["targets"] if target["ended"]]
        assert (one["pid"], one["troubles"]) == (ranks[2].pid, ["has ended: killed by SIGKILL"])


# All but rank 1 come to the same place again and again.
SLEEPS = """
import os, time
print("ready", flush=True)
while os.environ["RANK"] != "1" or not os.path.exists(os.environ["END"]):
    time.sleep(0.2)
"""


@pytest.mark.parametrize("how", ["killed", "exited"])
def test_a_job_that_sleeps_at_one_place_does_not_hang(how, tmp_path):
    end = tmp_path / "end"
    with jobs.ranks(PYTHON, 3, source=SLEEPS, MASTER_PORT="29505", LOCAL_WORLD_SIZE="3", END=str(end)) as ranks:
        if how == "killed":
            os.kill(ranks[1].pid, 9)
        else:
            end.write_text("")
        wait_until(lambda: support.Path("/proc/%d/stat" % ranks[1].pid).read_text().split(") ")[1][0] == "Z", "it does not end")
        look = json.loads(overview([ranks[0].pid, ranks[2].pid], "--json"))
        told = [finding for finding in of_job(look, "ended_rank") if ranks[0].pid in finding["pids"]]
        assert not [finding for finding in of_job(look) if ranks[0].pid in finding["pids"]], look["findings"]
        assert bool(told) == (how == "killed"), told
        if told:
            assert "torch" not in told[0]["sentence"] and "rank 1 has ended: killed by SIGKILL" in told[0]["sentence"], told

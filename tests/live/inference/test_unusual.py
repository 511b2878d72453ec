# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers whose requests are old or do not move, and which are healthy all the same: none of them is called dead."""
import json
import re

import pytest

import support
from environment import wait_until
from test_server import check, probing, server, shutil, verdict, why

# What each is, beside idle and healthy ones (test_server): a step that nothing notes is a guess, and said as one.
STATES = {
    "warm_up": None, "weights": None, "draining": None, "long_one": None, "paused": None, "lora": None, "offload": None,
    "burst": None, "fetched_late": None,
    "prefill": r"worker TP1 \(\d+\) has not answered yet: it is in .*",
}


@pytest.mark.parametrize("state", STATES)
def test_none_is_called_dead(state, tmp_path):
    nvcc = tmp_path / "nvcc"
    shutil.copy(shutil.which("sleep"), nvcc)
    with server(state, nvcc=nvcc) as pids:
        wait_until(lambda: settled(pids, state))
        for pid in (pids["core"], pids["api"], *pids["workers"]):
            sentence, confidence = verdict(pid)
            if STATES[state] is None:
                assert (sentence, confidence) == (None, None)
            else:
                assert re.fullmatch(STATES[state], sentence) and confidence == "low"
        assert STATES[state] or why(pids["core"]) == []
        assert check(pids["api"], "5s") == (0, "ok")


SERVES = ("draining", "long_one", "burst")


def settled(pids, state):
    """Each worker is where it stays, and the core has begun to serve."""
    frames = [frame["func"] for frame in support.dump(pids["core"])["threads"][0]["frames"]]
    if state in SERVES and "serve" not in frames:
        return False
    wanted = {"lora": "loads or compiles", "weights": "loads or compiles", "prefill": "in a step", "warm_up": "in a step"}
    processes = {each["pid"]: each for each in json.loads(probing("server", pids["core"], "--json")[1])["processes"]}
    return processes[pids["workers"][1]]["activity"] == wanted.get(state, "waits for work")


def test_a_pause_is_told():
    with server("paused") as pids:
        wait_until(lambda: "nothing is found that keeps its requests, though the oldest is 3 m" in probing("server", pids["core"])[1])
        assert "paused by somebody, 16 of 16 running, 4 waiting" in probing("server", pids["core"])[1]
        [core] = [each for each in json.loads(probing("server", pids["core"], "--json")[1])["processes"] if each["pid"] == pids["core"]]
        assert core["paused"] is True


def test_a_step_in_the_engine_core():
    """A server of one GPU has no workers: the step that does not end is in the process that schedules."""
    with server("single") as pids:
        expected = (r"engine core \(%d\) does not get to the end of a step: it is in `(EngineCore\.)?synchronize` .*; no token was made for "
                    r"1 m \d+ s; 8 requests wait, the oldest for 3 m \d+ s" % pids["core"])
        wait_until(lambda: re.fullmatch(expected, verdict(pids["core"])[0] or ""))
        assert verdict(pids["api"])[1] == "medium"

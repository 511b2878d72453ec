# SPDX-License-Identifier: GPL-3.0-or-later
"""Several ranks are in a step that does not end: those that wait for another rank are not blamed for it."""
import re

import pytest

import test_server
from environment import wait_until

SGLANG = test_server.STANDIN.with_name("sglang_standin.py")
PLACE = r"in `(\w+\.)?%s` \w+_standin\.py:\d+"
WAIT, LATE = PLACE % "all_reduce", PLACE % "(execute_model|load_kernel)"


def expect(pids, expected):
    pattern = re.sub(r"\b([WCS])(\d)\b", lambda match: str(pids[match.group(1)][int(match.group(2))]), expected)
    for pid in pids["ALL"]:
        wait_until(lambda pid=pid: re.fullmatch(pattern, test_server.verdict(pid)[0] or ""))
    assert test_server.verdict(pids["ALL"][0])[1] == "medium"


@pytest.mark.parametrize("state, expected", [
    ("late", r"worker TP2 \(W2\) does not answer: it is " + LATE + r".*; engine core \(C0\) waits for it, and 2 other workers are " + WAIT +
     r"; the oldest request is .*"),
    ("together", r"3 workers of engine core \(C0\) do not answer: all are " + WAIT + r"; the oldest request is .*"),
    ("apart", r"2 workers of engine core \(C0\) do not answer: worker TP0 \(W0\) is " + WAIT + r", worker TP1 \(W1\) is " + LATE +
     r"; the oldest request is .*")])
def test_workers_of_vllm(state, expected):
    with test_server.server(state) as pids:
        expect({"W": pids["workers"], "C": [pids["core"]], "ALL": [pids["core"], pids["workers"][0]]}, expected)


@pytest.mark.parametrize("state, expected", [
    ("late", r"scheduler TP2 \(S2\) does not get to the end of a step: it is " + LATE + r".*, and 2 other schedulers are " + WAIT +
     r"; no token was made for .*; 27 requests wait, the oldest for .*"),
    ("together", r"3 schedulers do not get to the end of a step: all are " + WAIT + r"; no token was made for .*; 27 requests wait, .*"),
    ("apart", r"2 schedulers do not get to the end of a step: scheduler TP0 \(S0\) is " + WAIT + r", scheduler TP1 \(S1\) is " + LATE +
     r"; no token was made for .*; 27 requests wait, .*")])
def test_schedulers_of_sglang(state, expected):
    """That the KV cache is exhausted, too, is no reason: while a step lasts nothing could be admitted."""
    with test_server.server(state, standin=SGLANG) as pids:
        expect({"S": pids["schedulers"], "ALL": pids["schedulers"][::2]}, expected)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Every face says the same of processes in trouble: the command, /v1/overview, the tool of assistants, and Prometheus."""
import contextlib
import json
import os
import re
import signal
import subprocess

import pytest

import jobs
import simulated
import support
from gateway_client import Gateway, wait_until
from test_overview_of_all import TASKS

PYTHON = "/usr/bin/python3"
LIMITS = {"PROBING_LIMITS": "job=0.2"}
LOCKS = """
import threading
one, two, gate = threading.Lock(), threading.Lock(), threading.Barrier(2)
def take(first, second):
    with first:
        gate.wait()
        with second:
            pass
for pair in ((one, two), (two, one)):
    threading.Thread(target=take, args=pair, daemon=True).start()
print("ready", flush=True)
input()
"""
RULES = {"locks": "deadlock", "tasks": "tasks", "stopped": "stopped", "job": "hung_job"}


@pytest.fixture(scope="module")
def troubled():
    """{what: pid} of processes, each with another trouble, and of one without."""
    with contextlib.ExitStack() as stack:
        def start(source):
            program = stack.enter_context(support.Program([PYTHON, "-c", source]))
            assert program.line() == "ready"
            return program.pid

        ranks = stack.enter_context(jobs.ranks(PYTHON, 3, source=simulated.RANK % 2))
        for rank in ranks:
            wait_until(lambda rank=rank: (support.dump(rank.pid)["threads"][0]["idle_seconds"] or 0) > 0.5, "it does not sleep")
        waits = "print('ready', flush=True)\ninput()"
        pids = {"locks": start(LOCKS), "tasks": start(TASKS), "stopped": start(waits), "well": start(waits),
                **{"rank %d" % number: rank.pid for number, rank in enumerate(ranks)}}
        os.kill(pids["stopped"], signal.SIGSTOP)
        yield {**pids, "job": ranks[1].pid}
        os.kill(pids["stopped"], signal.SIGCONT)


def in_json(look):
    return {(finding["pid"], finding["rule"], finding["confidence"]) for finding in look["findings"]}


def in_text(text):
    return {(int(pid), rule, confidence) for pid, rule, confidence in re.findall(
        r'^probing_finding\{pid="(\d+)",rule="(\w+)",confidence="(\w+)"\} 1$', text, re.M)}


def command(pids, *words):
    return subprocess.run([support.BINARY, *words, *map(str, pids)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, **LIMITS}, check=True).stdout


def by_assistant(gateway):
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "overview", "arguments": {}}}
    [content] = gateway.ask("/mcp", call).json["result"]["content"]
    return {(int(pid), rule, None) for pid, rule in re.findall(r"^(\d+)  (\w+): ", content["text"], re.M)}


def test_all_faces(troubled):
    pids = sorted(set(troubled.values()))
    wanted = {(troubled[what], rule) for what, rule in RULES.items()}
    with Gateway(*pids, **LIMITS) as gateway:
        faces = {
            "overview": lambda: in_json(json.loads(command(pids, "overview", "--json"))),
            "/v1/overview": lambda: in_json(gateway.ask("/v1/overview").json),
            "assistant": lambda: by_assistant(gateway),
            "/metrics": lambda: in_text(gateway.ask("/metrics").text),
            "export": lambda: in_text(command(pids, "export", "prometheus")),
        }
        for name, face in faces.items():
            said = []
            # Of a task that is at the loop for a moment, nothing is said in that look.
            wait_until(lambda face=face, said=said: said.append(face()) or {each[:2] for each in said[-1]} >= wanted, "%s: %s" % (name, said), 20)
            # Memory is this machine's affair.
            assert {each[:2] for each in said[-1] if each[1] not in ("memory_limit", "oom_killed", "swapped")} == wanted, name
            faces[name] = {each for each in said[-1] if each[:2] in wanted}
        del faces["assistant"]  # sentences, which have no confidence
        assert all(said == faces["overview"] for said in faces.values()), faces

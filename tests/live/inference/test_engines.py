# SPDX-License-Identifier: GPL-3.0-or-later
"""The descriptions of servers on the classes of the packages themselves, the oldest and the newest described version."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

import packages
import support

HERE = Path(__file__).parent
ENGINES = packages.FOLDER / "engines"
PACKAGES = ENGINES / "packages"


def rows(pid, query):
    done = subprocess.run([support.BINARY, "-t", str(pid), "query", "-f", "json", query], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def running(name, script, *words):
    folder = ENGINES / name
    if not folder.exists() or not PACKAGES.exists():
        pytest.skip("no %s here: 'make test-packages' gets it" % name)
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([str(PACKAGES), str(HERE)]), VLLM_LOGGING_LEVEL="ERROR")
    program = support.Program([packages.PYTHON, HERE / script, folder, *words], env=env)
    try:
        while program.line() != "ready":
            pass
    except BaseException:
        program.__exit__()
        raise
    return program


@pytest.mark.parametrize("policy", ["fcfs", "priority"])
@pytest.mark.parametrize("version", ["0.10.0", "0.33.0"])
def test_vllm(version, policy):
    with running("vllm-" + version, "real_vllm.py", policy) as program:
        found = rows(program.pid, "SELECT * FROM inference.requests ORDER BY id")
        assert [each["id"] for each in found] == ["chatcmpl-%04d" % number for number in range(27)]
        assert [(each["state"], each["queue"], each["computed_tokens"]) for each in found] == (
            [("RUNNING", "running", 60)] * 5 + [("WAITING", "waiting", 0)] * 22)
        assert [each["blocks"] for each in found[:5]] == [4] * 5 and {each["prompt_tokens"] for each in found} == {60}
        assert [each["priority"] for each in found] == [*range(27)] and {each["output_tokens"] for each in found} == {0}
        assert all(180 < each["age"] < 1000 for each in found)
        [kv] = rows(program.pid, "SELECT * FROM inference.kv")
        assert (kv["total"], kv["free"], kv["block_size"]) == (21, 0, 16)
        done = subprocess.run([support.BINARY, "server", str(program.pid)], stdout=subprocess.PIPE, check=False)
        assert re.search(r"no request can be admitted to engine core \(\d+\): 0 of 21 blocks of the KV cache are free, held by 5 "
                         r"running requests; 22 requests have waited for up to", done.stdout.decode()), done


KV = r"no request can be admitted to engine core \(PID\): 0 of "
WAITS_FOR_GRAMMAR = "WAITING_FOR_(STRUCTURED_OUTPUT_GRAMMAR|FSM)"
GRAMMAR = "3 requests in " + WAITS_FOR_GRAMMAR + r" for up to 3 m 3\d s"
# States of real_vllm.py that public reports describe, most of which have no frontend here that notes times of tokens.
REPORTED = {
    "too_long": (r"nothing is admitted to engine core \(PID\): the first waiting request needs 25 blocks for its 400 tokens, and the KV "
                 r"cache has only 21; 3 wait behind it, for up to 3 m 3\d s", "medium"),
    "deadlock": (KV + "8 blocks of the KV cache are free, held by 1 request in WAITING_FOR_REMOTE_KVS and 1 waiting request; 1 request "
                 r"has waited for 3 m 3\d s", "medium"),
    "grammar": (r"nothing runs in engine core \(PID\): " + GRAMMAR, "medium"),
    "grammar_of_some": (r"3 requests of engine core \(PID\) have been in " + WAITS_FOR_GRAMMAR + r" for up to 3 m 3\d s, "
                        "while 3 others run", "low"),
}
# And healthy ones. A step without an end is a guess.
HEALTHY = {**dict.fromkeys(("idle", "prefill", "grammar_compiles", "loads_kv", "session", "burst", "hour", "paused", "paused_new", "lora",
                            "asleep", "starts", "drains")),
           "long_step": (r"engine core \(PID\) has not ended a step yet: it is in .*", "low")}
# What the oldest version does not have.
NEWER = {"session", "paused", "paused_new", "drains"}


def finding(pid):
    done = subprocess.run([support.BINARY, "server", "--json", str(pid)], stdout=subprocess.PIPE, check=False)
    found = json.loads(done.stdout)["findings"]
    return (found[0]["sentence"].replace("(%d)" % pid, "(PID)"), found[0]["confidence"]) if found else None


@pytest.mark.parametrize("version", ["0.10.0", "0.33.0"])
def test_states_of_vllm(version):
    """Its own scheduler in states that are reported as dead, or that are healthy and unusual."""
    wrong = {}
    with running("vllm-" + version, "real_vllm.py", "fcfs") as program:
        for state, expected in {**REPORTED, **HEALTHY}.items():
            if version == "0.10.0" and state in NEWER:
                continue
            program.send(state.encode() + b"\n")
            while program.line() != "ready":
                pass
            found = finding(program.pid)
            if not (found is None if expected is None else
                    found and re.fullmatch(expected[0], found[0]) and found[1] == expected[1]):
                wrong[state] = found
    assert wrong == {}


@pytest.mark.parametrize("version", ["0.4.1", "0.5.23"])
def test_sglang(version):
    with running("sglang-" + version, "real_sglang.py") as program:
        found = rows(program.pid, "SELECT * FROM inference.requests ORDER BY id")
        assert [(each["id"], each["queue"], each["prompt_tokens"]) for each in found] == [
            ("rid-%04d" % number, "running" if number < 4 else "waiting" if number < 10 else "grammar", 60 + number)
            for number in range(11)]
        assert [each["output_tokens"] for each in found] == [1] * 4 + [0] * 7
        [kv] = rows(program.pid, "SELECT total, free, cached FROM inference.kv")
        assert kv == {"total": 1000, "free": 500, "cached": 300}
        [server] = rows(program.pid, "SELECT engine, version, role FROM inference.servers")
        assert server == {"engine": "SGLang", "version": version, "role": "scheduler"}


@pytest.mark.parametrize("version", ["0.10.2", "0.18.0"])
def test_lmdeploy(version):
    with running("lmdeploy-" + version, "real_others.py") as program:
        found = rows(program.pid, "SELECT id, state, age, output_tokens FROM inference.requests ORDER BY id")
        assert [(each["id"], each["state"], each["output_tokens"]) for each in found] == [
            (str(number), "WAITING", number) for number in range(3)] and all(50 <= each["age"] < 1000 for each in found)
        assert rows(program.pid, "SELECT total, free FROM inference.kv") == [{"total": 10, "free": 10}]


@pytest.mark.parametrize("version", ["4.57.6", "5.24.0"])
def test_transformers(version):
    with running("transformers-" + version, "real_others.py") as program:
        found = rows(program.pid, "SELECT id, state, queue, prompt_tokens, output_tokens, blocks, age FROM inference.requests")
        assert [(each["id"], each["state"], each["queue"], each["prompt_tokens"]) for each in found] == [
            *(("req_%d" % number, "PENDING", "waiting", 10 * number) for number in range(3)), ("req_9", "PENDING", "input", 1)]
        assert {(each["output_tokens"], each["blocks"]) for each in found} == {(0, 0)}
        assert all(0 <= each["age"] < 1000 for each in found)


def test_ray_serve():
    with running("ray-2.60.0", "real_others.py") as program:
        found = rows(program.pid, "SELECT id, queue, slot, age FROM inference.requests ORDER BY id")
        assert [(each["id"], each["queue"], each["slot"]) for each in found] == [
            ("request-%d" % number, "waiting", number) for number in range(3)] and all(50 <= each["age"] < 1000 for each in found)
        assert rows(program.pid, "SELECT engine, version, part FROM inference.servers") == [
            {"engine": "Ray Serve", "version": "2.60.0", "part": "proxy"}]


def test_llama_cpp():
    """One of four requests is at work: it holds the inner of two locks, for which another one waits."""
    with running("llama-cpp-python-0.3.36", "real_others.py") as program:
        found = rows(program.pid, "SELECT name, count FROM inference.queues")
        assert found == [{"name": "next", "count": 1}, {"name": "waiting", "count": 2}]
        assert rows(program.pid, "SELECT total, cached, part FROM inference.kv") == [
            {"total": 2048, "cached": 300, "part": "server"}]

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
    while program.line() != "ready":
        pass
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


@pytest.mark.parametrize("version", ["0.4.1", "0.5.23"])
def test_sglang(version):
    with running("sglang-" + version, "real_sglang.py") as program:
        found = rows(program.pid, "SELECT * FROM inference.requests ORDER BY id")
        assert [(each["id"], each["queue"], each["prompt_tokens"]) for each in found] == [
            ("rid-%04d" % number, "running" if number < 4 else "waiting" if number < 10 else "grammar", 60 + number)
            for number in range(11)]
        assert [each["output_tokens"] for each in found] == [1] * 4 + [0] * 7
        [server] = rows(program.pid, "SELECT engine, version, role FROM inference.servers")
        assert server == {"engine": "SGLang", "version": version, "role": "scheduler"}


def test_lmdeploy():
    with running("lmdeploy-0.18.0", "real_others.py") as program:
        found = rows(program.pid, "SELECT id, state, age, output_tokens FROM inference.requests ORDER BY id")
        assert [(each["id"], each["state"], each["output_tokens"]) for each in found] == [
            (str(number), "WAITING", number) for number in range(3)] and all(50 <= each["age"] < 1000 for each in found)
        assert rows(program.pid, "SELECT total, free FROM inference.kv") == [{"total": 10, "free": 10}]


def test_transformers():
    with running("transformers-5.24.0", "real_others.py") as program:
        found = rows(program.pid, "SELECT id, state, queue, prompt_tokens, output_tokens, blocks, age FROM inference.requests")
        assert [(each["id"], each["state"], each["queue"], each["prompt_tokens"]) for each in found] == [
            *(("req_%d" % number, "PENDING", "waiting", 10 * number) for number in range(3)), ("req_9", "PENDING", "input", 1)]
        assert {(each["output_tokens"], each["blocks"]) for each in found} == {(0, 0)}
        assert all(0 <= each["age"] < 1000 for each in found)

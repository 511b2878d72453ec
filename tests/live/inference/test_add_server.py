# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/howto/add-server.md, followed literally: each of its descriptions on a program as it describes it."""
import contextlib
import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import packages
import support
from environment import wait_until
from launched_job import free_port

PAGE = Path(__file__).resolve().parents[3] / "docs" / "howto" / "add-server.md"
FASTAPI = """
import asyncio, time
from fastapi import FastAPI
app = FastAPI()
app.state.jobs = asyncio.Queue()
class Job:
    def __init__(self, name):
        self.id, self.created = name, time.time()
@app.post("/jobs/{name}")
async def submit(name: str):
    await app.state.jobs.put(Job(name))
"""
CELERY = """
import os, time
from celery import Celery
folders = dict.fromkeys(("data_folder_in", "data_folder_out", "control_folder"), os.getcwd())
app = Celery("tasks", broker="filesystem://", broker_transport_options=folders)
@app.task
def work():
    time.sleep(600)
"""
TRITON = """
import time
import triton_python_backend_utils
class Job:
    def __init__(self, name):
        self.id, self.created = name, time.time()
class TritonPythonModel:
    def initialize(self, args):
        self.pending = []
    def execute(self, requests):
        self.pending += map(Job, requests)
        return []
"""
# As the backend's own program does: it has the model in no variable of Python.
STUB = """
import sys, types
sys.modules["triton_python_backend_utils"] = types.ModuleType("triton_python_backend_utils")
import model
held = (model.TritonPythonModel(),)
held[0].initialize({})
held[0].execute(["first", "second"])
held = types.MappingProxyType({"instance": held[0]})
print(flush=True)
input()
"""


FORKS = """
import os, sys, types, time
worker = types.ModuleType("celery.worker.state")
worker.requests = {}
sys.modules.update({"celery": types.ModuleType("celery"), "celery.worker": types.ModuleType("celery.worker"), "celery.worker.state": worker})
def task():
    time.sleep(600)
print(flush=True)
task()
"""


@pytest.fixture(name="described")
def fixture_described(tmp_path):
    """A folder with the description of that section of the page."""
    def write(section):
        text = PAGE.read_text(encoding="utf-8").split("\n## " + section + "\n")[1]
        (tmp_path / "my.engine").write_text(re.search(r"```\n(.*?)```", text, re.S).group(1))
        return dict(os.environ, PROBING_ENGINES=str(tmp_path))
    return write


def ask(pid, env):
    done = subprocess.run([support.BINARY, "-t", str(pid), "query", "-f", "json", "SELECT id, queue, age, part FROM inference.requests "
                           "ORDER BY slot"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, env=env)
    return json.loads(done.stdout)


def shown(pid, env):
    return subprocess.run([support.BINARY, "server", str(pid)], stdout=subprocess.PIPE, check=True, env=env).stdout.decode()


def test_fastapi(described, tmp_path):
    python, env = packages.need("fastapi"), described("FastAPI")
    packages.need("uvicorn")
    (tmp_path / "main.py").write_text(FASTAPI)
    port = str(free_port())
    with support.Program([python, "-m", "uvicorn", "main:app", "--port", port], cwd=tmp_path) as program:
        def submitted(name):
            with contextlib.suppress(OSError):
                request = urllib.request.Request("http://127.0.0.1:%s/jobs/%s" % (port, name), method="POST")
                return urllib.request.urlopen(request).status == 200
            assert program.alive(), program.errors()
        for name in ("first", "second"):
            wait_until(lambda name=name: submitted(name))
        found = ask(program.pid, env)
        assert [(each["id"], each["queue"], each["part"]) for each in found] == [("first", "jobs", "web"), ("second", "jobs", "web")]
        assert all(0 <= each["age"] < 1000 for each in found)
        assert shown(program.pid, env).startswith("My API, 1 process\n") and "2 jobs" in shown(program.pid, env)
        # No task takes them, and `why` says so, too, where they are old.
        old = "2 requests of web (%d) wait, and nothing is left that could take them: no thread, task, " % program.pid
        found = [subprocess.run([support.BINARY, each, str(program.pid)], stdout=subprocess.PIPE, check=False,
                                env=dict(env, PROBING_LIMITS="request=0.1")).stdout.decode() for each in ("server", "why")]
        assert all("server: " + old in each and "confidence  medium" in each for each in found), found


def test_celery(described, tmp_path):
    python, env = packages.need("celery"), described("Celery")
    (tmp_path / "tasks.py").write_text(CELERY)
    sent = subprocess.run([python, "-c", "import tasks; print(*(tasks.work.delay().id for _ in range(3)))"], cwd=tmp_path,
                          stdout=subprocess.PIPE, check=True).stdout.decode().split()
    with support.Program([python, "-m", "celery", "-A", "tasks", "worker", "-P", "threads", "-c", "1"], cwd=tmp_path) as program:
        def taken():
            assert program.alive(), program.errors()
            return {each["id"] for each in ask(program.pid, env)} == set(sent)
        wait_until(taken)
        assert shown(program.pid, env).startswith("Celery ") and "3 taken" in shown(program.pid, env)


def test_a_child_of_a_pool_is_not_said_to_wait(described):
    """Its own copy of the worker's list is empty, and it runs a task."""
    env = described("Celery")
    with support.Program([sys.executable, "-c", FORKS]) as program:
        program.line()
        assert "waits for work" not in shown(program.pid, env) and "in `task`" in shown(program.pid, env)


def test_triton(described, tmp_path):
    (tmp_path / "model.py").write_text(TRITON)
    (tmp_path / "stub.py").write_text(STUB)
    env = described("Triton's Python backend")
    with support.Program([sys.executable, "stub.py"], cwd=tmp_path) as program:
        program.line()
        found = ask(program.pid, env)
        assert [(each["id"], each["queue"]) for each in found] == [("first", "pending"), ("second", "pending")]
        assert all(0 <= each["age"] < 1000 for each in found)

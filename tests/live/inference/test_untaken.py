# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests in the queue of a described server, of which nothing is left that could take them; or something is."""
import json
import os
import socket
import subprocess

import pytest

import support

DESCRIPTION = """
engine My server
module myserver
part frontend web
root jobs sys.modules['myserver'].jobs
queue jobs jobs._queue
request id id
request arrival created
"""
MODULE = """
import asyncio, os, subprocess, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
jobs = None
class Job:
    def __init__(self, name):
        self.id, self.created = name, time.time()
        self.done = asyncio.get_running_loop().create_future()
async def work(state, port):
    while True:
        job = await jobs.get()
        if state == "sleeps":
            await asyncio.sleep(600)
        if state == "calls":
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await reader.read(1)
        if state == "runs":
            await asyncio.get_running_loop().run_in_executor(None, time.sleep, 600)
        if state in ("died", "thread", "child", "pool", "ended"):
            raise ValueError(state)
        job.done.set_result(None)
async def handle(name):
    job = Job(name)
    await jobs.put(job)
    await job.done
async def main(state, port):
    global jobs
    jobs = asyncio.Queue()
    kept = [asyncio.ensure_future(work(state, port))]
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1")
    if state == "thread":
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    if state == "child":
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    if state == "ended":
        kept.append(subprocess.Popen(["true"]))
        os.waitid(os.P_PID, kept[-1].pid, os.WEXITED | os.WNOWAIT)
    if state == "pool":
        await asyncio.get_running_loop().run_in_executor(None, time.sleep, 0)
    if state != "idle":
        kept += [asyncio.ensure_future(handle(name)) for name in ("first", "second", "third")]
    asyncio.get_running_loop().call_later(0.3, lambda: print(flush=True))
    await server.serve_forever()
"""
OLDEST, NEWEST = support.one_per_version((3, 8))[0], support.one_per_version((3, 8), (3, 13))[-1]
NOTHING_LEFT = "2 requests of web (%d) wait, and nothing is left that could take them: no thread, task, process or connection"


def asked(*words, env):
    done = subprocess.run([support.BINARY, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False, env=env)
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(name="verdicts")
def fixture_verdicts(tmp_path):
    """What `server`, `why` and `check` say of the program in that state: sentence and confidence; sentences; exit code."""
    (tmp_path / "my.engine").write_text(DESCRIPTION)
    (tmp_path / "myserver.py").write_text(MODULE)
    env = dict(os.environ, PROBING_ENGINES=str(tmp_path), PROBING_LIMITS="request=0.1")

    def verdicts(state, interpreter=NEWEST):
        code = "import asyncio, myserver; asyncio.run(myserver.main(%r, %d))"
        with socket.create_server(("127.0.0.1", 0)) as far, \
                support.Program([interpreter.exe, "-c", code % (state, far.getsockname()[1])], env=interpreter.env, cwd=tmp_path) as program:
            program.line()
            found = asked("server", program.pid, "--json", env=env)[1]["findings"]
            [target] = asked("why", program.pid, "--json", env=env)[1]["targets"]
            reasons = [each["sentence"] for each in target["findings"] if each["rule"] == "server"]
            checked = asked("check", "--still", "0.1", program.pid, "--json", env=env)[0]
            return program.pid, [(each["sentence"], each["confidence"]) for each in found], reasons, checked
    return verdicts


@pytest.mark.parametrize("state, interpreter", [("died", OLDEST), ("died", NEWEST), ("pool", NEWEST), ("ended", NEWEST)])
def test_nothing_is_left(verdicts, state, interpreter):
    pid, [(sentence, confidence)], reasons, checked = verdicts(state, interpreter)
    assert sentence.startswith(NOTHING_LEFT % pid) and confidence == "medium"
    assert ("(true) has ended" in sentence) == (state == "ended")
    assert [each.startswith(NOTHING_LEFT % pid) for each in reasons] == [True] and checked == 24


@pytest.mark.parametrize("state", ["sleeps", "calls", "runs", "thread", "child"])
def test_something_may_take_them(verdicts, state):
    pid, [(sentence, confidence)], _, checked = verdicts(state)
    assert sentence.startswith("2 requests of web (%d) wait, and none has ended between two looks" % pid)
    assert (confidence, checked) == ("low", 0)


def test_an_empty_queue(verdicts):
    _, found, reasons, checked = verdicts("idle")
    assert (found, reasons, checked) == ([], [], 0)

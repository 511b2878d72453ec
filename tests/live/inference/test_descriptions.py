# SPDX-License-Identifier: GPL-3.0-or-later
"""Descriptions of servers in a folder of the user's: used, refused for one bad line, and nothing is guessed."""
import os
import json
import subprocess

import pytest

import support

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
PROGRAM = """
import queue, sys, time, types
module = types.ModuleType("myserver")
module.__version__ = "2.1"
sys.modules["myserver"] = module
class Job:
    __module__ = "myserver"
    __slots__ = ("key", "created")
    def __init__(self, key):
        self.key, self.created = key, time.monotonic() - 50
class Application:
    __module__ = "myserver"
    def __init__(self):
        self.state = {"jobs": queue.Queue()}
        self.heap = [(number, Job("urgent-%d" % number)) for number in range(2)]
module.app = Application()
for number in range(3):
    module.app.state["jobs"].put(Job("job-%d" % number))
module.app.state["jobs"].put(None)
print(flush=True)
input()
"""
DESCRIPTION = """
# A queue in a program of one's own
engine My queue
module myserver
from 2.0
part frontend web
root app %s
queue jobs ?app.nothing | app.state['jobs'].queue
queue urgent app.heap
class myserver.Job
request id key
request arrival created
kv total len(app.heap) + len(app.heap) * len(app.heap)
kv free ?len(app.heap) + app.nothing | len(app.heap) * len(app.state['jobs'].queue)
kv cached ?len(app.heap) + app.heap
"""


@pytest.fixture
def program():
    with support.Program([NEWEST.exe, "-c", PROGRAM], env=NEWEST.env) as one:
        one.line()
        yield one


def ask(program, folder, query="SELECT id, queue, slot, age FROM inference.requests"):
    done = subprocess.run([support.BINARY, "-t", str(program.pid), "query", "-f", "json", query], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          env=dict(os.environ, PROBING_ENGINES=str(folder)))
    return done.returncode, json.loads(done.stdout or b"null"), done.stderr.decode()


@pytest.mark.parametrize("root", ["sys.modules['myserver'].app", "myserver.Application"])
def test_a_description_of_the_users(program, tmp_path, root):
    (tmp_path / "my.engine").write_text(DESCRIPTION % root)
    code, rows, err = ask(program, tmp_path)
    assert (code, err) == (0, "")
    assert [(row["id"], row["queue"], row["slot"]) for row in rows] == [
        *(("job-%d" % number, "jobs", number) for number in range(3)),
        *(("urgent-%d" % number, "urgent", number) for number in range(2))]
    assert all(50 <= row["age"] < 1000 for row in rows)
    counts = ask(program, tmp_path, "SELECT name, count FROM inference.queues")[1]
    assert counts == [{"name": "jobs", "count": 4}, {"name": "urgent", "count": 2}]
    # Reckoned from the left; another way where a number is missing, nothing where one is none.
    assert ask(program, tmp_path, "SELECT total, free, cached FROM inference.kv")[1] == [{"total": 8, "free": 8, "cached": None}]


def test_what_is_missing_is_named(program, tmp_path):
    text = (DESCRIPTION % "myserver.Application").replace("app.heap", "app.pile").replace("request id key", "request id name")
    (tmp_path / "my.engine").write_text(text)
    code, rows, err = ask(program, tmp_path)
    assert code == 0 and "app.pile: Application has no 'pile'; name: Job has no 'name'" in err
    assert {row["id"] for row in rows} == {None}
    (tmp_path / "my.engine").write_text((DESCRIPTION % "myserver.Application").replace("from 2.0", "before 2.0"))
    code, rows, err = ask(program, tmp_path)
    assert (code, rows) == (0, []) and "no description is for this version" in err


@pytest.mark.parametrize("line, why", [
    ("root app", "my.engine:17: not a name: ''"), ("queue q app..x", "not a path: 'app..x'"), ("queue q a[x]", "not an item: 'a[x]'"), ("limit a + ", "not a path: 'a + '"),
    ("request colour x", "not a column: 'colour'"), ("part chief x", "not a role: 'chief'"), ("frobnicate x", "unknown word"),
    ("engine Again", "said twice"), ("title \x1b[31m", "control character"), ("queue q " + ".".join("a" * 40), "too long"),
])
def test_a_bad_line_refuses_the_file(program, tmp_path, line, why):
    (tmp_path / "my.engine").write_text(DESCRIPTION % "myserver.Application" + "\n" + line + "\n")
    code, rows, err = ask(program, tmp_path)
    assert code == 2 and rows is None and why in err and "\x1b" not in err, err


def test_a_file_of_others_is_refused(program, tmp_path):
    file = tmp_path / "my.engine"
    file.write_text(DESCRIPTION % "myserver.Application")
    file.chmod(0o666)
    code, _, err = ask(program, tmp_path)
    assert code == 4 and "another user" in err
    file.unlink()
    file.write_text("#" * (65 << 10))
    assert ask(program, tmp_path)[0] == 2
    file.unlink()
    os.mkfifo(file)
    code, _, err = ask(program, tmp_path)
    assert code == 3 and "my.engine" in err
    assert ask(program, tmp_path / "none")[0] == 1


TENSORRT = """
import queue, sys, types
for name in ("tensorrt_llm", "tensorrt_llm._torch", "tensorrt_llm._torch.pyexecutor", "ray", "ray.serve"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["tensorrt_llm"].__version__ = "1.2.1"
sys.modules["ray"].__version__ = "2.60.0"
class PyExecutor:
    __module__ = "tensorrt_llm._torch.pyexecutor.py_executor"
class LlmRequest:
    __module__ = "tensorrt_llm._torch.pyexecutor.llm_request"
    def __init__(self, number):
        self.py_request_id, self.py_prompt_len = number, 10 * number
executor = PyExecutor()
executor.active_requests, executor.waiting_queue, executor.max_num_active_requests = [LlmRequest(5), LlmRequest(6)], [object()], 2
executor.executor_request_queue = types.SimpleNamespace(request_queue=queue.Queue())
def loop(self):
    print(flush=True)
    input()
loop(executor)
"""


def test_a_host_of_other_servers_and_an_executor_in_python():
    """What Ray Serve runs is read as what it is, by the description that goes first."""
    with support.Program([NEWEST.exe, "-c", TENSORRT], env=NEWEST.env) as program:
        program.line()
        done = subprocess.run([support.BINARY, "-t", str(program.pid), "query", "-f", "json",
                               "SELECT id, queue, prompt_tokens, part FROM inference.requests ORDER BY id"], stdout=subprocess.PIPE, check=True)
        assert json.loads(done.stdout) == [{"id": str(number), "queue": "running", "prompt_tokens": 10 * number, "part": "executor"}
                                           for number in (5, 6)]
        done = subprocess.run([support.BINARY, "server", "--json", str(program.pid)], stdout=subprocess.PIPE, check=True)
        found = json.loads(done.stdout)
        assert (found["engine"], found["version"]) == ("TensorRT-LLM", "1.2.1")
        assert found["processes"][0]["queues"] == {"running": 2, "waiting": 1, "input": 0}

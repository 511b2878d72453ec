# SPDX-License-Identifier: GPL-3.0-or-later
"""Twenty questions of a person in trouble, asked by MCP's own SDK: answers are whole, small and what the schemas say."""
import json
import re
import subprocess

import jsonschema
import pytest

import jobs
import packages
import simulated
import support
from terminal import environment

ASKS = support.HERE / "programs" / "asks_by_mcp.py"
PAGE = support.ROOT / "docs" / "mcp.md"
USUAL = 8000  # bytes
# Two threads in a deadlock, a list that is long, and a main thread that sleeps.
TROUBLE = """
import threading, time
SESSIONS = [{"id": number, "name": "x" * 40} for number in range(5000)]
one, two = threading.Lock(), threading.Lock()
both = threading.Barrier(2)
def take(first, second):
    with first:
        both.wait()
        with second:
            pass
for locks in (one, two), (two, one):
    threading.Thread(target=take, args=locks, daemon=True, name="taker").start()
def call(peer):
    print("ready", flush=True)
    time.sleep(1800)
call("10.0.0.7:5432")
"""
# What is asked, with which tool, and what the answer has to say.
QUESTIONS = [
    ("which Python programs run?", "list_processes", {}, r'"pid":\d+'),
    ("what does this process do?", "overview", {"target": "PID"}, "deadlock"),
    ("what is wrong with this process?", "why", {"target": "PID"}, "deadlock"),
    ("why does the job hang?", "hang", {"target": "RANK"}, "never entered all_reduce"),
    ("which rank slows the job?", "slow", {"target": "RANK"}, "ranks"),
    ("where does each thread stand?", "dump", {"target": "PID"}, "MainThread"),
    ("with which variables?", "dump", {"target": "PID", "locals": True}, "peer"),
    ("who waits for a lock?", "query", {"target": "PID", "sql": "SELECT tid, waits_for FROM python.threads WHERE waits_for LIKE '%lock%'"},
     "held by"),
    ("all objects, please", "query", {"target": "PID", "sql": "SELECT * FROM python.objects"}, r'"next_cursor":"\d+"'),
    ("and the next ones", "query", {"target": "PID", "sql": "SELECT * FROM python.objects", "cursor": "$8"},
     r'"next_cursor":"\d+"'),
    ("which tables are there?", "tables", {}, "python.threads"),
    ("what does a column mean?", "tables", {"table": "python.threads"}, "waits_for"),
    ("how many sessions are there?", "print_value", {"target": "PID", "expression": "len(SESSIONS)"}, "5000"),
    ("which are they?", "print_value", {"target": "PID", "expression": "SESSIONS"}, "dict|list"),
    ("where does the time go?", "perf", {"target": "PID", "duration": 0.3, "mode": "wall"}, "call"),
    ("what takes the memory?", "memory", {"target": "PID"}, "Python objects"),
    ("keep it for later", "snapshot", {"target": "PID"}, "probing-PID.snapshot"),
    ("what has changed since?", "diff", {"target": "PID"}, "threads changed"),
    ("is it a deadlock?", "skill", {"target": "PID", "name": "deadlock"}, "taker"),
    ("the value of a name that is not there", "print_value", {"target": "PID", "expression": "absent"}, "no variable 'absent'"),
]


def with_pids(value, pids):
    for name, pid in pids.items():
        if value == name:
            return pid
        value = value.replace(name, str(pid)) if isinstance(value, str) else value
    return value


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    python = packages.need("mcp")
    with jobs.ranks("/usr/bin/python3", 3, source=simulated.RANK % 2) as ranks, \
            support.Program(["/usr/bin/python3", "-c", TROUBLE]) as program:
        assert program.line() == "ready"
        for process in (*ranks, program):
            support.wait_for_sleep(process.pid, "nanosleep", timeout=60)
        pids = {"PID": program.pid, "RANK": ranks[0].pid}
        questions = [(tool, {name: with_pids(value, pids) for name, value in arguments.items()})
                     for _, tool, arguments, _ in QUESTIONS]
        done = subprocess.run([python, ASKS, support.BINARY, "mcp"], input=json.dumps(questions).encode(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, cwd=tmp_path_factory.mktemp("asked"), env=environment(), timeout=600, check=False)
        assert not done.returncode, done.stderr.decode()
        yield pids, json.loads(done.stdout)


def test_schemas_are_valid(asked):
    for tool in asked[1]["tools"]:
        for schema in filter(None, (tool["inputSchema"], tool.get("outputSchema"))):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object", tool["name"]
        assert {"readOnlyHint", "destructiveHint"} <= set(tool["annotations"]) and tool["title"] and tool["description"]
    assert {prompt["name"] for prompt in asked[1]["prompts"]} >= {"hang", "deadlock", "leak"}
    assert asked[1]["prompt"]["messages"] and asked[1]["greeting"]["serverInfo"]["name"] == "probing"


def test_each_tool_is_asked(asked):
    assert len(QUESTIONS) == 20
    assert {tool["name"] for tool in asked[1]["tools"]} - {tool for _, tool, _, _ in QUESTIONS} == {"server"}


@pytest.mark.parametrize("number", range(len(QUESTIONS)), ids=[question for question, _, _, _ in QUESTIONS])
def test_answers_are_whole_and_small(asked, number):
    pids, found = asked
    _, name, arguments, says = QUESTIONS[number]
    answer = found["answers"][number]
    [tool] = [each for each in found["tools"] if each["name"] == name]
    [content] = answer["content"]
    assert answer["isError"] == (number == 19), content["text"]
    assert re.search(with_pids(says, pids), content["text"]), content["text"]
    # Its own braces and the cursor are besides.
    assert len(content["text"].encode()) <= USUAL + 200
    jsonschema.validate({key: with_pids(value, pids) for key, value in arguments.items()}, tool["inputSchema"])
    assert ("outputSchema" in tool and not answer["isError"]) == ("structuredContent" in answer)
    if "structuredContent" in answer:
        jsonschema.validate(answer["structuredContent"], tool["outputSchema"])
        assert json.loads(content["text"]) == answer["structuredContent"]


def test_the_next_rows_are_others(asked):
    first, second = ([row["address"] for row in asked[1]["answers"][number]["structuredContent"]["rows"]] for number in (8, 9))
    assert first and second and not set(first) & set(second)


def test_the_page_has_their_sizes(asked):
    """A quarter of the bytes, as docs/mcp.md has it: within a factor of two, as paths and machines differ."""
    table = {tool: list(map(int, tokens.split())) for tool, tokens in re.findall(r"^(\w+) +([\d ]+)$", PAGE.read_text(), re.M)}
    sizes = {}
    for (_, tool, _, _), answer in zip(QUESTIONS, asked[1]["answers"]):
        sizes.setdefault(tool, []).append(len(answer["content"][0]["text"].encode()) // 4)
    del sizes["list_processes"]  # as many as there are here
    assert {tool: len(tokens) for tool, tokens in table.items()} == {tool: len(tokens) for tool, tokens in sizes.items()}, sizes
    for tool, tokens in sizes.items():
        assert all(size / 2 - 20 <= said <= 2 * size + 20 for size, said in zip(tokens, table[tool])), sizes

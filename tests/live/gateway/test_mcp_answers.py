# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of `probing mcp` are small and whole: in parts, with a cursor for the next one, as structured content."""
import contextlib
import json

import pytest

import jobs
import simulated
import support
from test_mcp import NEWEST, Assistant

SOURCE = """
import threading
for number in range(120):
    space = {}
    exec("import threading\\ndef wait_number_%d():\\n    threading.Event().wait()" % number, space)
    threading.Thread(target=space["wait_number_%d" % number], daemon=True, name="thread %d" % number).start()
print("ready", flush=True)
input()
"""
USUAL = 8000


@pytest.fixture(scope="module")
def program():
    with support.Program([NEWEST.exe, "-c", SOURCE]) as running:
        assert running.line() == "ready"
        yield running


@pytest.fixture(scope="module")
def assistant(program):
    with Assistant(program.pid) as speaking:
        yield speaking


def parts(assistant, tool, **arguments):
    """All parts of an answer, each with its cursor."""
    cursor = {}
    for _ in range(1000):
        result = assistant.ask("tools/call", name=tool, arguments={**arguments, **cursor})
        assert not result["isError"], result
        [content] = result["content"]
        # Its own braces and the cursor are besides.
        assert len(content["text"].encode()) <= arguments.get("max_bytes", USUAL) + 200, len(content["text"])
        if "structuredContent" in result:
            assert json.loads(content["text"]) == result["structuredContent"]
            yield result["structuredContent"]
            cursor = {"cursor": result["structuredContent"].get("next_cursor")}
        else:
            text, _, end = content["text"].rpartition("[more after line ")
            yield text if end and end.endswith('"]\n') else content["text"]
            cursor = {"cursor": end.split('cursor="')[1].split('"')[0] if text else None}
        if cursor["cursor"] is None:
            return
    raise AssertionError("it does not end")


@pytest.mark.parametrize("limit", [None, 7, 10000])
def test_rows_come_in_parts(assistant, limit):
    given = {} if limit is None else {"limit": limit}
    found = list(parts(assistant, "query", sql="SELECT value FROM generate_series(1, 1500)", **given))
    assert [row["value"] for part in found for row in part["rows"]] == list(range(1, 1501))
    if limit != 10000:
        assert all(len(part["rows"]) == (limit or 100) for part in found[:-1])


def test_a_row_that_is_too_long_is_named(assistant):
    sql = "SELECT 1 AS x UNION ALL SELECT printf('%.20000c', 'x') UNION ALL SELECT 3"
    rows = [row for part in parts(assistant, "query", sql=sql) for row in part["rows"]]
    assert (rows[0], rows[2]) == ({"x": 1}, {"x": 3}) and "a row of 200" in rows[1]["left_out"]
    [whole] = parts(assistant, "query", sql=sql, max_bytes=100000)
    assert len(whole["rows"][1]["x"]) == 20000


def test_no_rows_are_an_answer(assistant):
    assert list(parts(assistant, "query", sql="SELECT 1 WHERE 0")) == [{"rows": [], "next_cursor": None}]


def test_much_output_ends_early(assistant):
    """The command is ended when there is enough: this one would run for minutes."""
    result = assistant.ask("tools/call", name="query", arguments={"sql": "SELECT value FROM generate_series(1, 10000000000)"})
    assert not result["isError"] and result["structuredContent"]["next_cursor"] == "100", result


def test_text_comes_in_parts(assistant):
    """No line is lost: each thread is in one of them."""
    found = list(parts(assistant, "dump"))
    assert len(found) > 1
    assert all("wait_number_%d" % number in "".join(found) for number in range(120))
    assert len(list(parts(assistant, "dump", max_bytes=200000))) == 1


def test_lists_come_in_parts(program):
    """Of JSON, whole items are left out."""
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(support.Program([NEWEST.exe, "-c", "input()"])) for _ in range(5)]
        pids = [program.pid, *(other.pid for other in others)]
        one = stack.enter_context(Assistant(*pids))
        found = list(parts(one, "list_processes", max_bytes=1000))
    assert len(found) > 1 and [item["pid"] for part in found for item in part["targets"]] == pids


def test_schemas_say_what_is_taken(assistant):
    tools = {tool["name"]: tool for tool in assistant.ask("tools/list")["tools"]}
    properties = tools["perf"]["inputSchema"]["properties"]
    assert properties["mode"]["enum"] == ["cpu", "wall"] and "cursor" not in properties
    assert properties["duration"]["exclusiveMinimum"] == 0 and properties["duration"]["maximum"] == 300
    assert tools["query"]["inputSchema"]["properties"]["target"]["type"] == ["integer", "string"]
    assert tools["query"]["outputSchema"]["required"] == ["rows", "next_cursor"]
    skills = {prompt["name"] for prompt in assistant.ask("prompts/list")["prompts"]}
    assert set(tools["skill"]["inputSchema"]["properties"]["name"]["enum"]) == skills
    # Every name of an enum is taken, and each of them is there.
    for name in skills:
        assert not assistant.ask("tools/call", name="skill", arguments={"name": name})["isError"], name


def test_prompts_are_the_skills(assistant):
    prompt = assistant.ask("prompts/get", name="leak", arguments={"target": "4242"})
    [message] = prompt["messages"]
    assert message["role"] == "user" and "4242" in message["content"]["text"] and "leak" in message["content"]["text"]
    assert assistant.ask("prompts/get", name="no-such")["code"] == -32602


def test_hints_are_for_assistants(assistant):
    for tool, arguments, told in (("dump", {"target": "1"}, "list_processes"), ("query", {"sql": "SELECT 1 FROM nowhere"}, "the tool tables"),
                                  ("dump", {"pid": 7}, "it takes: target")):
        text, failed = assistant.call(tool, **arguments)
        assert failed and told in text and "/v1/" not in text and "probing " not in text, text


def test_a_job():
    with jobs.ranks("/usr/bin/python3", 3, source=simulated.RANK % 2) as ranks, Assistant() as one:
        for rank in ranks:
            support.wait_for_sleep(rank.pid, "nanosleep", timeout=60)
        for target in (ranks[0].pid, str(ranks[1].pid)):
            found = json.loads(one.tell("hang", target=target))
            assert found["verdict"] == "late" and found["ranks"] == [1] and "never entered all_reduce" in found["sentence"]
        assert "%d" % ranks[0].pid in one.tell("overview", target=ranks[0].pid)


def test_where_there_is_no_job():
    with support.Program([NEWEST.exe, "-c", "print('ready', flush=True); input()"]) as program, Assistant() as one:
        assert program.line() == "ready"
        text, failed = one.call("slow", target=program.pid)
        assert failed and "is no rank" in text and "JSON" not in text, text


def test_a_long_value_has_room():
    with support.Program([NEWEST.exe, "-c", "kept = [bytes(9000)] * 9\nprint('ready', flush=True)\ninput()"]) as program, \
            Assistant(program.pid) as one:
        assert program.line() == "ready"
        text = one.tell("print_value", target=program.pid, expression="kept")
        value = json.loads(text)["value"]
        assert len(text) <= 8000 and value.startswith("[b'\\x00") and value.endswith(" more bytes: allow more by max_bytes]"), text

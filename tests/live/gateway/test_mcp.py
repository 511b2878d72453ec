# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing mcp`: the protocol as an assistant speaks it."""
import json
import os
import re
import signal
import subprocess

import pytest

import support
from gateway_client import wait_until
from terminal import environment

OK, FAILED, USAGE = range(3)
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]


class Assistant:
    """Speaks to `probing mcp`."""

    def __init__(self, *words, cwd=None):
        self.process = subprocess.Popen(
            [support.BINARY, "mcp", *map(str, words)], stdin=subprocess.PIPE, cwd=cwd,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        self.number = 0
        self.answer = self.ask("initialize", protocolVersion="2025-06-18", capabilities={},
                               clientInfo={"name": "test", "version": "1"})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def receive(self):
        return json.loads(self.process.stdout.readline())

    def ask(self, method, **params):
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        answer = self.receive()
        assert answer["id"] == self.number and answer["jsonrpc"] == "2.0", answer
        return answer["result"] if "result" in answer else answer["error"]

    def call(self, tool, /, **arguments):
        """(text, whether it failed)"""
        result = self.ask("tools/call", name=tool, arguments=arguments)
        [content] = result["content"]
        assert content["type"] == "text"
        return content["text"], result["isError"]

    def tell(self, tool, /, **arguments):
        text, failed = self.call(tool, **arguments)
        assert not failed, text
        return text

    def finish(self):
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err.decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def program():
    with support.Target(NEWEST, support.HERE / "programs" / "obeys.py") as running:
        running.line()
        yield running


@pytest.fixture(scope="module")
def assistant(program):
    with Assistant(program.pid) as speaking:
        yield speaking


def test_greeting(assistant):
    assert assistant.answer["protocolVersion"] == "2025-06-18"
    assert assistant.answer["serverInfo"]["name"] == "probing"


def test_another_version_of_the_protocol(program):
    with Assistant(program.pid) as one:
        assert one.ask("initialize", protocolVersion="2024-11-05")["protocolVersion"] == "2024-11-05"
        assert one.ask("initialize", protocolVersion="1999-01-01")["protocolVersion"] == "2025-06-18"


def test_tools_only_read(assistant):
    tools = {tool["name"]: tool for tool in assistant.ask("tools/list")["tools"]}
    assert {"list_processes", "why", "dump", "query", "tables", "snapshot", "perf", "skill", "memory",
            "print_value", "server", "overview", "hang", "slow", "diff"} == set(tools)
    # A snapshot is a new file.
    assert {name for name, tool in tools.items() if not tool["annotations"]["readOnlyHint"]} == {"snapshot"}
    assert not any(tool["annotations"]["destructiveHint"] for tool in tools.values())
    assert tools["query"]["inputSchema"]["required"] == ["sql"]
    text, failed = assistant.call("eval", code="1")
    assert failed and "--allow-write" in text


def test_each_tool(assistant, program):
    [listed] = json.loads(assistant.tell("list_processes"))["targets"]
    assert listed["pid"] == program.pid
    for target in {}, {"target": str(program.pid)}, {"target": program.pid}:
        [judged] = json.loads(assistant.tell("why", **target))["targets"]
        assert judged["pid"] == program.pid and judged["verdict"]
    assert "MainThread" in assistant.tell("dump", target=str(program.pid))
    assert json.loads(assistant.tell("dump", json=True))["target"]["pid"] == program.pid
    assert json.loads(assistant.tell("query", sql="SELECT 1 AS x")) == {"rows": [{"x": 1}], "next_cursor": None}
    assert "python.threads" in assistant.tell("tables")
    assert "waits_for" in assistant.tell("tables", table="python.threads")
    assert json.loads(assistant.tell("print_value", expression="__name__"))["value"] == "'__main__'"
    assert "cost:" in assistant.tell("perf", duration=0.2)
    assert "Python objects" in assistant.tell("memory")
    assert "of it anonymous" in assistant.tell("memory", growth=0.2)
    assert "garbage collector" in assistant.tell("skill", name="leak")


@pytest.mark.parametrize("name, arguments, told", [
    ("query", {}, "'sql' is missing"),
    ("query", {"sql": 1}, "'sql' is a text"),
    ("query", {"sql": "SELECT 1\0"}, "'sql' is a text"),
    ("query", {"sql": "SELECT nope"}, "no such column"),
    ("query", {"sql": "ATTACH 'x' AS y"}, ""),
    ("dump", {"target": "1"}, "no target '1'"),
    ("dump", {"target": "/etc/passwd"}, "no target"),
    ("dump", {"target": "-h"}, "no target"),
    ("dump", {"pid": "1"}, "no argument 'pid'"),
    ("dump", {"target": -1}, "'target' is a text"),
    ("dump", {"target": 1.5}, "'target' is a text"),
    ("dump", {"tid": -1}, "'tid' is a whole number"),
    ("dump", {"tid": 1.5}, "'tid' is a whole number"),
    ("dump", {"cursor": "x"}, "next_cursor"),
    ("dump", {"max_bytes": 10}, "at least 1000"),
    ("query", {"sql": "SELECT 1", "limit": 0}, "at least 1"),
    ("perf", {"cursor": "1"}, "no argument 'cursor'"),
    ("hang", {}, "only named processes"),
    ("tables", {"table": "--help"}, ""),
    ("print_value", {"expression": "--help"}, ""),
    ("perf", {"duration": 100000}, "at most 300"),
    ("memory", {"growth": 601}, "at most 600"),
    ("perf", {"mode": "--help"}, "'mode' is one of: cpu wall"),
    ("skill", {"name": "--help"}, "'name' is one of: hang"),
])
def test_what_cannot_be_done(assistant, name, arguments, told):
    text, failed = assistant.call(name, **arguments)
    assert failed and told in text and "Usage:" not in text, text


def test_what_is_no_request(assistant):
    for line, code in ((b"nonsense", -32700), (b'{"id":1}', None), (b"[]", -32600), (b"7", -32700),
                       (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
                       (b'{"jsonrpc":"2.0","id":5,"method":"no/such"}', -32601),
                       (b'{"jsonrpc":"2.0","id":5,"method":"resources/list"}', -32601),
                       (b'{"jsonrpc":"2.0","id":5,"method":"tools/call"}', -32602),
                       (b'{"jsonrpc":"2.0","id":5,"method":"prompts/get"}', -32602),
                       (b"\xff\xfe", -32700), (b"[" * 100000, -32700), (b"", None),
                       (b'{"jsonrpc":"2.0","method":"notifications/whatever"}', None)):
        assistant.send(line)
        if code:
            assert assistant.receive()["error"]["code"] == code, line[:50]
    assert assistant.ask("tools/list")["tools"]


def test_code_only_if_that_was_allowed(program):
    with Assistant("--allow-write", program.pid) as allowed:
        [tool] = [tool for tool in allowed.ask("tools/list")["tools"] if tool["name"] == "eval"]
        assert not tool["annotations"]["readOnlyHint"]
        assert allowed.tell("eval", code="print('hello')\n6 * 7").split() == ["hello", "42"]
        text, failed = allowed.call("eval", code="1 / 0\x1b[31m")
        assert failed
        text, failed = allowed.call("eval", code="1 / 0")
        assert failed and "ZeroDivisionError" in text
        code, _, told = allowed.finish()
        assert code == OK
        lines = told.splitlines()
        assert len(lines) == 3 and all(line.startswith("probing: mcp: eval {") for line in lines)
        assert "\x1b" not in told


def test_a_snapshot_goes_to_a_new_file(program, tmp_path):
    with Assistant(program.pid, cwd=tmp_path) as one:
        assert "snapshot" in one.tell("snapshot")
        [file] = os.listdir(tmp_path)
    with Assistant(tmp_path / file) as two:
        assert "MainThread" in two.tell("dump", target="f1")


COUNTS = "def count():\n    turn = 0\n    while input('ready\\n'): turn += 1\ncount()"


def test_what_has_changed_since_a_snapshot(tmp_path):
    with support.Program([NEWEST.exe, "-c", COUNTS]) as running, \
            Assistant(running.pid, cwd=tmp_path) as one:
        assert running.line() == "ready"
        text, failed = one.call("diff")
        assert failed and "probing-%d.snapshot" % running.pid in text
        one.tell("snapshot")
        assert "turn" not in one.tell("diff")
        running.send(b"on\n")
        assert running.line() == "ready"
        changed = "turn of count\n    - 0\n    + 1\n"
        assert changed in one.tell("diff")
        [file] = os.listdir(tmp_path)
        with Assistant(running.pid, tmp_path / file) as two:
            assert changed in two.tell("diff", target=running.pid, before="f1")
            text, failed = two.call("diff", target="f1")
            assert failed and "'before' is missing" in text
            for before in "/etc/passwd", "../x", 1:
                text, failed = two.call("diff", target=running.pid, before=before)
                assert failed and "no target '%s' is served here" % before in text, text
        text, failed = one.call("diff", target=1)
        assert failed and "no target '1' is served here" in text, text
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        text, failed = one.call("diff")
        assert failed and "process %d has ended" % running.pid in text, text


def test_a_call_is_cancelled(program):
    with Assistant(program.pid) as one:
        one.send({"jsonrpc": "2.0", "id": "slow", "method": "tools/call", "params": {
            "name": "perf", "arguments": {"duration": 300}}})

        def running():
            return support.children(one.process.pid)

        wait_until(running, "the tool does not run")
        one.send({"jsonrpc": "2.0", "method": "notifications/cancelled",
                  "params": {"requestId": "slow"}})
        assert one.ask("ping") is not None
        wait_until(lambda: not running(), "the tool runs on")


def test_it_ends_with_its_client(program):
    with Assistant(program.pid) as one:
        assert one.finish()[:2] == (OK, b"")


def test_the_session_of_the_page():
    """docs/mcp.md shows the exchange, except for addresses."""
    page = (support.ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    lines = page.split("<!-- mcp: docs/demo.py -->\n```\n")[1].split("```")[0].splitlines()

    def said(line):
        return re.sub(r'(address\\?":)\d+', r"\1N", line)

    python = next(i for i in support.INTERPRETERS if i.exe.startswith("/usr/bin/"))
    with support.Program([python.exe, support.ROOT / "docs" / "demo.py"], env=python.env) as demo:
        assert demo.line() == "ready"
        wait_until(lambda: any("held by" in (thread["waits_for"] or "")
                               for thread in support.dump(demo.pid)["threads"]), "it does not begin")
        with Assistant(demo.pid) as one:
            for line in lines:
                if line.startswith("→ "):
                    one.send(line[2:].encode())
                else:
                    answer = one.process.stdout.readline().decode().rstrip("\n")
                    assert said(answer) == said(line[2:])


def test_a_finding_is_no_failure():
    """The exit code of `why` says what was found."""
    source = """
import threading
lock = threading.Lock()
def twice():
    with lock:
        with lock:
            pass
threading.Thread(target=twice).start()
"""
    with support.Program([NEWEST.exe, "-c", source]) as stuck, Assistant(stuck.pid) as one:
        wait_until(lambda: json.loads(one.tell("why"))["targets"][0]["verdict"] == "deadlock", "no deadlock is told")

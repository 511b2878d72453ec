# SPDX-License-Identifier: GPL-3.0-or-later
"""Stacks as Server-Sent Events, settings, and the Model Context Protocol over HTTP."""
import http.client
import json

import pytest

import support
from gateway_client import Gateway, wait_until

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]


@pytest.fixture
def program():
    with support.Program([NEWEST.exe, support.HERE / "programs" / "web_debugged.py"]) as running:
        assert running.line() == "ready"
        yield running


class Stream:
    """A client that reads events."""

    def __init__(self, gateway, pid, values=""):
        self._connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        self._connection.request("GET", "/v1/targets/%d/events%s" % (pid, values), headers={
            "Authorization": "Bearer " + gateway.token})
        self._response = self._connection.getresponse()
        self.status, self.type = self._response.status, self._response.getheader("Content-Type")

    def event(self):
        """Its name and data; None at the end."""
        lines = []
        while True:
            line = self._response.readline().decode()
            if not line:
                return None
            if line == "\n":
                break
            lines.append(line)
        name, data = lines[0].partition(": ")[2].strip(), lines[1:]
        return name, json.loads("".join(part[len("data: "):] for part in data))

    def leave(self):
        self._response.close()
        self._connection.close()


def test_stacks_come_until_the_process_ends(program):
    with Gateway(program.pid) as gateway:
        stream = Stream(gateway, program.pid, "?every=0.2")
        assert (stream.status, stream.type) == (200, "text/event-stream")
        times = []
        for _ in range(5):
            name, dump = stream.event()
            assert name == "stacks" and {thread["name"] for thread in dump["threads"]} == {"MainThread", "keeper"}
            times.append(dump["timestamp"])
        assert times == sorted(set(times))
        program.kill()
        while True:
            name, said = stream.event()
            if name == "failure":
                break
        assert said["error"]["code"] and said["error"]["message"]
        assert stream.event() is None
        assert Stream(gateway, program.pid).status == 404
        wait_until(lambda: not gateway.children(), "a command is left")


def test_nothing_runs_between_events_nor_afterwards(program):
    """More streams than commands may run at once take no places: others are answered."""
    with Gateway(program.pid) as gateway:
        streams = [Stream(gateway, program.pid, "?every=60") for _ in range(20)]
        for stream in streams:
            assert stream.event()[0] == "stacks"
        wait_until(lambda: not gateway.children(), "commands run on")
        assert gateway.query(program.pid, "SELECT 1 AS x") == [{"x": 1}]
        files = gateway.files()
        for stream in streams:
            stream.leave()
        wait_until(lambda: gateway.files() <= files - 20, "connections are left")


@pytest.mark.parametrize("values, status", [("?every=0", 400), ("?every=61", 400), ("?often=1", 400), ("?tid=1", 404)])
def test_what_makes_no_sense_is_no_stream(program, values, status):
    with Gateway(program.pid) as gateway:
        stream = Stream(gateway, program.pid, values)
        assert (stream.status, stream.type) == (status, "application/json")


def message(gateway, method, params=None, number=1):
    return gateway.ask("/mcp", {"jsonrpc": "2.0", "id": number, "method": method, **({"params": params} if params else {})})


def test_the_protocol_of_assistants(program):
    with Gateway(program.pid) as gateway:
        hello = message(gateway, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}})
        assert hello.status == 200 and hello.json["result"]["serverInfo"]["name"] == "probing", hello
        done = gateway.ask("/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert done.status == 202 and not done.body
        tools = [tool["name"] for tool in message(gateway, "tools/list").json["result"]["tools"]]
        assert "dump" in tools and "eval" not in tools
        told = message(gateway, "tools/call", {"name": "query", "arguments": {
            "sql": "SELECT name FROM python.threads ORDER BY name"}}).json["result"]
        assert not told["isError"] and "keeper" in told["content"][0]["text"], told
        refused = message(gateway, "tools/call", {"name": "eval", "arguments": {"code": "1"}}).json["result"]
        assert refused["isError"], refused
        # Several lines are one message; an invalid one gives an error.
        pretty = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "ping"}, indent=4).encode()
        assert gateway.ask("/mcp", pretty).json == {"jsonrpc": "2.0", "id": 7, "result": {}}
        assert gateway.ask("/mcp", b"{").status == 400
        assert gateway.ask("/mcp").status == 405
        assert gateway.ask("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "ping"}, token=False).status == 401


def test_changes_by_assistants_are_told(program):
    with Gateway(program.pid, "--allow-write") as gateway:
        told = message(gateway, "tools/call", {"name": "eval", "arguments": {"code": "6 * 7"}}).json["result"]
        assert "42" in told["content"][0]["text"]
        assert gateway.stop()[1] == 'probing: mcp: eval {"code":"6 * 7"}\n'


def test_settings(program):
    with Gateway(program.pid, "--allow-write") as gateway:
        path = "/v1/targets/%d/config" % program.pid
        for each in ("/config", path):
            assert any(one["key"] == "probing.sample_rate" for one in gateway.ask(each).json)
        assert gateway.ask(path, {"key": "probing.sample_rate", "value": "0.5"}).status == 200
        [rate] = [one for one in gateway.ask(path).json if one["key"] == "probing.sample_rate"]
        assert float(rate["value"]) == 0.5
        for key, status in (("nope", 422), ("probing.sample_rate=1", 400), ("--json", 422), ("", 400)):
            assert gateway.ask(path, {"key": key, "value": "1"}).status == status, key
    with Gateway(program.pid) as gateway:
        assert gateway.ask(path, {"key": "probing.sample_rate", "value": "1"}).status == 403

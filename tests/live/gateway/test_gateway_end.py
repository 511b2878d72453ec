# SPDX-License-Identifier: GPL-3.0-or-later
"""A gateway that is told to end while requests of every kind are being answered."""
import collections
import contextlib
import json
import os
import select
import signal
import subprocess
import urllib.parse

import pytest

import hung_mount
import remote
import support
from gateway_client import Gateway, read_all, wait_until
from terminal import environment
from test_injected import gateways

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
ROWS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
END_OF_CHUNKS = b"\r\n0\r\n\r\n"
# All requests that the code answers; test_openapi.py compares the file with the code.
with open(support.ROOT / "docs/openapi.json", encoding="utf-8") as described:
    OPERATIONS = [(method.upper(), path, said) for path, methods in json.load(described)["paths"].items()
                  for method, said in methods.items()]
# A request that can last does.
VALUES = {"json": '{"title": "a", "every": 5, "charts": []}', "sql": ENDLESS, "timeout": 500, "every": 60, "expression": "__name__", "growth": 500, "duration": 500,
          "max": 500, "code": "import time; time.sleep(500)", "key": "probing.sample_rate", "value": "1",
          "input": "1\n", "time": 20}
NAMES = {"skill": "deadlock", "terminal": "t1", "profile": "p1", "dashboard": "service"}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "query", "arguments": {"sql": ENDLESS}}}
SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)


@pytest.fixture
def program():
    with support.Program([NEWEST.exe, support.HERE / "programs" / "web_debugged.py"]) as running:
        assert running.line() == "ready"
        yield running


class Node(Gateway):
    """`probing node`, which serves."""

    def __init__(self, folder):
        self.token = "0123456789abcdef"
        self.process = subprocess.Popen(
            [support.BINARY, "node", "--listen", "127.0.0.1:0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=environment(XDG_RUNTIME_DIR=str(folder), PROBING_AUTH_TOKEN=self.token))
        self.url = self.process.stdout.readline().decode().strip()
        self.host = urllib.parse.urlsplit(self.url).netloc
        self.port = urllib.parse.urlsplit(self.url).port


class Asked:
    """A request whose answer is not waited for."""

    def __init__(self, gateway, method, path, values=None, host=None):
        query, body = "", b""
        if method == "GET" and values:
            query = "?" + urllib.parse.urlencode(values)
        elif method == "POST":
            body = json.dumps(values or {}).encode()
        self.connection = gateway.connect()
        self.connection.sendall(("%s %s%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n" % (
            method, path, query, host or gateway.host, gateway.token, len(body))).encode() + body)
        self.begun = b""

    def answered(self):
        """Whether its answer has begun."""
        if not self.begun and select.select([self.connection], [], [], 0)[0]:
            self.begun = self.connection.recv(1 << 16)
        return bool(self.begun)

    @property
    def status(self):
        return int(self.begun.split()[1]) if self.begun else None

    def rest(self):
        """All that comes until the other side closes."""
        with self.connection:
            return self.begun + read_all(self.connection)


def commands(gateway):
    """How many of its commands have each word."""
    words = collections.Counter()
    for child in gateway.children():
        with contextlib.suppress(OSError), open("/proc/%d/cmdline" % child, encoding="utf-8") as file:
            words.update(set(file.read().split("\0")))
    return words


def state(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0]


def values_of(said, path, pid):
    """The parameters of a request of that kind."""
    content = said.get("requestBody", {}).get("content", {}).get("application/json", {})
    names = {one["name"] for one in said.get("parameters", []) if one["in"] == "query"}
    names |= set(content.get("schema", {}).get("properties", {}))
    values = {name: VALUES[name] for name in names & set(VALUES)}
    if "pid" in names:
        values["pid"] = str(pid)
    return CALL if path == "/mcp" else {**values, "format": "collapsed"} if path == "/v1/profiles/{profile}" else values


def ended(gateway, number, folder):
    """It ends with 0 and without a word but what was logged of changes; nothing is left."""
    children = gateway.children()
    code, said = gateway.stop(number)
    assert code == 0 and all(line.startswith("probing: ") for line in said.splitlines()), (code, said)
    assert os.listdir(folder) == []
    # They were killed; on a busy machine a process needs a moment for its end.
    wait_until(lambda: not any(os.path.exists("/proc/%d" % child) for child in children), "a child is left", 10)


@SIGNALS
@pytest.mark.parametrize("method, path, said", OPERATIONS, ids=["%s %s" % one[:2] for one in OPERATIONS])
def test_each_kind_of_request(program, tmp_path, method, path, said, number):
    with Gateway("--allow-write", program.pid, XDG_RUNTIME_DIR=str(tmp_path)) as gateway:
        if "{profile}" in path:
            made = gateway.ask("/v1/targets/%d/profiles" % program.pid, {"duration": 500})
            assert made.status == 201, made
            # What was recorded so far is made into another format.
            wait_until(lambda: gateway.ask("/v1/profiles/p1?format=collapsed").status == 200, "nothing is recorded")
        if "{terminal}" in path:
            terminal = Asked(gateway, "POST", "/v1/targets/%d/repl" % program.pid)
            wait_until(terminal.answered, "no terminal is opened")
        # More than may run at once: some wait for their turn.
        asked = [Asked(gateway, method, path.format(id=program.pid, **NAMES), values_of(said, path, program.pid))
                 for _ in range(12)]
        assert gateway.ask("/v1").status == 200
        wait_until(lambda: gateway.children() or all([one.answered() for one in asked]), "nothing happens")
        ended(gateway, number, tmp_path)
        for one in asked:
            one.rest()
        answered = [one.status for one in asked if one.status]
        # A kind of request whose parameters are not above would test nothing.
        assert not answered or any(status not in (400, 404, 405) for status in answered), [one.begun for one in asked]


@SIGNALS
def test_streams_at_rest_and_in_the_middle_of_an_event(program, tmp_path, number):
    with Gateway(program.pid, XDG_RUNTIME_DIR=str(tmp_path)) as gateway:
        path = "/v1/targets/%d/events" % program.pid
        resting = [Asked(gateway, "GET", path, {"every": 60}) for _ in range(10)]
        wait_until(lambda: all([one.answered() for one in resting]) and not gateway.children(), "no events come")
        busy = [Asked(gateway, "GET", path, {"every": 0.2}) for _ in range(10)]
        wait_until(lambda: all([one.answered() for one in busy]), "no events come")
        ended(gateway, number, tmp_path)
        # A stream that was cut has no end.
        assert not any(END_OF_CHUNKS in one.rest() for one in resting + busy)


@SIGNALS
def test_a_part_is_not_taken_for_the_whole(program, tmp_path, number):
    with Gateway(program.pid, XDG_RUNTIME_DIR=str(tmp_path)) as gateway:
        asked = Asked(gateway, "POST", "/v1/targets/%d/query" % program.pid,
                      {"sql": ROWS, "format": "ndjson", "timeout": 500})
        wait_until(asked.answered, "no rows come")
        ended(gateway, number, tmp_path)
        assert END_OF_CHUNKS not in asked.rest()


@SIGNALS
def test_all_that_it_can_have_open(program, tmp_path, number):
    """200 pages, and the largest number of terminals, pauses, recordings and running commands."""
    with Gateway("--allow-write", program.pid, XDG_RUNTIME_DIR=str(tmp_path)) as gateway:
        path = "/v1/targets/%d/" % program.pid
        # The agent is loaded by one alone: others would be refused meanwhile.
        assert gateway.ask(path + "eval", {"code": "1"}).status == 200
        asked = [Asked(gateway, "POST", path + "repl") for _ in range(3)]
        for _ in range(4):
            assert gateway.ask(path + "profiles", {"duration": 500}).status == 201
        pages = [Asked(gateway, "GET", path + "events", {"every": 60}) for _ in range(200)]
        wait_until(lambda: all([one.answered() for one in asked + pages]), "not all are answered")
        asked += [Asked(gateway, "POST", path + "pause", {"max": 500})]
        asked += [Asked(gateway, "GET", path + "query", {"sql": ENDLESS, "timeout": 500}) for _ in range(20)]
        asked += [Asked(gateway, "GET", "/v1/overview")]
        wait_until(lambda: {"repl": 3, "performance": 4, "--pause": 1, "query": 8}.items() <= commands(gateway).items(),
                   "not all run")
        ended(gateway, number, tmp_path)
        for one in asked + pages:
            one.rest()


def test_commands_that_cannot_be_killed(tmp_path):
    """Those that hang in the kernel, reading a file on a file system that answers nothing."""
    code = "exec(compile('import sys; print(1, flush=True); sys.stdin.read()', %r, 'exec'))" % str(tmp_path / "hung/it.py")
    with support.Program([NEWEST.exe, "-c", code]) as program, hung_mount.mounted(tmp_path / "hung") as server:
        program.line()
        with Gateway(program.pid) as gateway:
            asked = [Asked(gateway, "GET", "/v1/targets/%d/stacks" % program.pid, {"source": 1}) for _ in range(8)]
            # Once its request was received, not even SIGKILL ends the one that made it; the others wait for that one.
            os.read(server, 1 << 17)
            wait_until(lambda: [state(child) for child in gateway.children()].count("D") >= 7, "they do not hang")
            assert gateway.stop(signal.SIGTERM) == (0, "")
            for one in asked:
                one.rest()


@SIGNALS
def test_a_node_ends_its_gateway(program, tmp_path, number):
    """`probing node --listen` starts it as a command of its own."""
    with Node(tmp_path) as gateway:
        asked = [Asked(gateway, "GET", "/v1/targets/%d/events" % program.pid, {"every": 60}) for _ in range(10)]
        wait_until(lambda: all([one.answered() for one in asked]), "no events come")
        assert gateway.ask("/v1/targets/%d/profiles" % program.pid, {"duration": 500}).status == 201
        assert os.listdir(tmp_path)
        ended(gateway, number, tmp_path)
        for one in asked:
            one.rest()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_the_gateway_of_a_served_process(program, tmp_path, monkeypatch, number):
    """`probing inject --listen` has one behind its own port, which ends with the server."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with remote.Service(program.pid) as service:
        path = "/v1/targets/%d/" % program.pid
        asked = [Asked(service, "GET", path + "events", {"every": 60}, service.address) for _ in range(10)]
        recording = Asked(service, "POST", path + "profiles", {"duration": 500}, service.address)
        wait_until(lambda: all([one.answered() for one in [*asked, recording]]), "no events come")
        assert recording.status == 201 and os.listdir(tmp_path)
        service.kill(number)
        wait_until(lambda: not gateways(program.pid), "something is left")
        assert not any(END_OF_CHUNKS in one.rest() for one in asked)
        assert not [name for name in os.listdir(tmp_path) if name.startswith("probing-serve-")]
        assert program.alive()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to `probing serve` that change a target: pauses, steps, code; and the clients that may send
them."""
import http.client
import json
import socket
import subprocess

import pytest

import support
from gateway_client import Gateway, wait_until
from served_program import gateway, program  # noqa: F401 (fixtures)


class Paused:
    """A client that pauses, and waits for events."""

    def __init__(self, gateway, pid, **options):
        self._connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        self._connection.request("POST", "/v1/targets/%d/pause" % pid, json.dumps(options), {
            "Authorization": "Bearer " + gateway.token, "Content-Type": "application/json"})
        self._response = self._connection.getresponse()
        self.status = self._response.status

    def line(self):
        return json.loads(self._response.readline())

    def leave(self):
        self._response.close()
        self._connection.close()


def paused(gateway):
    [target] = gateway.ask("/v1/targets").json["targets"]
    return target["paused"]


def test_a_pause_with_steps(gateway, program):
    client = Paused(gateway, program.pid, max=60)
    assert client.status == 200 and client.line()["event"] == "paused"
    assert paused(gateway)
    step = gateway.ask("/v1/targets/%d/step" % program.pid, {"over": True})
    assert step.status == 200 and step.json["file"].endswith("web_debugged.py") and step.json["line"], step
    assert gateway.ask("/v1/targets/%d/step" % program.pid, {"time": 0.01}).status == 200
    assert gateway.ask("/v1/targets/%d/resume" % program.pid, {}).status == 200
    assert client.line()["reason"] == "resume"
    client.leave()
    # Nothing is paused, and that is said.
    assert gateway.ask("/v1/targets/%d/step" % program.pid, {}).status == 409
    assert gateway.ask("/v1/targets/%d/resume" % program.pid, {}).status == 409


def test_a_pause_ends_when_its_client_leaves(gateway, program):
    client = Paused(gateway, program.pid, max=3000)
    assert client.line()["event"] == "paused"
    client.leave()
    wait_until(lambda: not paused(gateway), "it is paused yet")


def test_a_pause_ends_with_the_gateway(program):
    with Gateway(program.pid, "--allow-write") as other, Gateway(program.pid) as watching:
        client = Paused(other, program.pid, max=3000)
        assert client.line()["event"] == "paused"
        other.process.kill()
        wait_until(lambda: not paused(watching), "it is paused yet")
        client.leave()


def test_pauses_take_no_places_of_others(program):
    """The maximal number, of which only the first succeeds; then reading requests are answered."""
    with Gateway(program.pid, "--allow-write") as gateway:
        client = Paused(gateway, program.pid, max=60)
        assert client.line()["event"] == "paused"
        others = [Paused(gateway, program.pid, max=60) for _ in range(10)]
        assert all(other.status >= 400 for other in others), [other.status for other in others]
        assert gateway.ask("/v1/targets/%d/stacks" % program.pid).status == 200
        for one in [client, *others]:
            one.leave()


@pytest.mark.parametrize("path, body", [
    ("pause", {"max": 0}), ("pause", {"max": 4000}), ("pause", {"hard": "maybe"}), ("step", {"time": 21}),
    ("step", {"tid": -1}), ("debugpy", {"port": 70000}), ("debugpy", {"port": "0 --pause"}),
    ("debugpy", {"address": "0.0.0.0"}), ("eval", {"code": "1", "thread": "--file=/etc/passwd"}), ("eval", {}),
])
def test_what_makes_no_sense(gateway, program, path, body):
    answer = gateway.ask("/v1/targets/%d/%s" % (program.pid, path), body)
    assert (answer.status, answer.error["code"]) == (400, "usage"), answer
    assert not paused(gateway)


def test_an_exception_is_an_answer(gateway, program):
    answer = gateway.ask("/v1/targets/%d/eval" % program.pid, {"code": "print(1); 1 / 0"})
    assert answer.status == 200 and answer.json["outcome"] == "exception", answer
    assert answer.json["stdout"] == "1\n" and "ZeroDivisionError" in answer.json["traceback"]
    answer = gateway.ask("/v1/targets/%d/eval" % program.pid, {
        "code": "threading.current_thread().name", "thread": "main"})
    assert answer.json["value"] == "'MainThread'", answer


def test_what_takes_the_memory(gateway, program):
    answer = gateway.ask("/v1/targets/%d/memory" % program.pid)
    told = json.loads(subprocess.check_output([support.BINARY, str(program.pid), "memory", "--json"]))
    assert answer.json.keys() == told.keys() and answer.json["process"]["rss"] > 0
    grown = gateway.ask("/v1/targets/%d/memory?growth=2" % program.pid).json
    assert any(holder["holder"] == "__main__.held" for holder in grown["interpreters"][0]["holders"]), grown
    assert gateway.ask("/v1/targets/%d/memory?growth=601" % program.pid).status == 400


def test_each_change_is_told_to_the_user(program):
    with Gateway(program.pid, "--allow-write") as gateway:
        gateway.ask("/v1/targets/%d/eval" % program.pid, {"code": "1\x1b[31m" + 1000 * "x"})
        gateway.ask("/v1/targets/%d/stacks" % program.pid)
        told = gateway.stop()[1]
    [line] = told.splitlines()
    assert line.startswith("probing: serve: POST /v1/targets/%d/eval {\"code\":\"1\\u001b[31mxxx" % program.pid)
    assert len(line) < 500 and '"of_bytes":1006' in line and gateway.token not in told


class Local(http.client.HTTPConnection):
    """A client at a unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self._path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


@pytest.mark.parametrize("word, allowed", [(None, True), ("--read-only", False)])
def test_the_own_session_at_a_socket(program, tmp_path, word, allowed):
    place = tmp_path / "socket"
    words = [program.pid] + ([word] if word else [])
    with Gateway(*words, address="unix:%s" % place) as gateway:
        token = {"Authorization": "Bearer " + gateway.token}
        client = Local(place)
        client.request("GET", "/v1", headers=token)
        assert json.loads(client.getresponse().read())["allow_write"] is allowed
        client.request("POST", "/v1/targets/%d/eval" % program.pid, json.dumps({"code": "6 * 7"}),
                       {**token, "Content-Type": "application/json"})
        assert client.getresponse().status == (200 if allowed else 403)
        client.close()

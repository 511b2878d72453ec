# SPDX-License-Identifier: GPL-3.0-or-later
"""Statuses of the gateway: 404 for what does not exist, 409 for what the target's state excludes, 422 for what is refused; no 500."""
import ctypes
import os
import signal
import subprocess

import pytest

import support
from gateway_client import Gateway, wait_until
from served_program import PROGRAM, gateway, program  # noqa: F401 (fixtures)

PTRACE_SEIZE = 0x4206
VALUES = {"sql": "SELECT 1", "expression": "held", "key": "probing.sample_rate", "value": "0.5", "code": "1", "duration": 0.1,
          "every": 0.2, "max": 0.1, "growth": 0.1, "input": "x", "rows": 10, "columns": 40}


def routes(gateway):
    """(method, path, values) of each request, with values that are valid."""
    for path, methods in gateway.ask("/v1/openapi.json").json["paths"].items():
        for method, said in methods.items():
            names = [one["name"] for one in said["parameters"] if one["in"] == "query"]
            body = said.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            names += body.get("properties", {})
            # Parameters that end a request soon, and those without which it is refused.
            yield method.upper(), path, {name: value for name, value in VALUES.items() if name in names}


def ask(gateway, method, path, values):
    if method == "POST":
        return gateway.ask(path, values, method)
    words = "&".join("%s=%s" % (name, str(value).replace(" ", "+")) for name, value in values.items())
    return gateway.ask(path + "?" + words, method=method)


def test_what_does_not_exist_is_404(gateway):
    tried = 0
    for method, path, values in routes(gateway):
        if "{" not in path:
            continue
        asked = path.format(id="1" + 9 * "0", profile="p99", skill="nope", terminal="t99", dashboard="nope")
        answer = ask(gateway, method, asked, values)
        if (method, path) == ("POST", "/v1/dashboards/{dashboard}"):
            continue  # it makes one
        assert answer.status == 404 and answer.error["code"] in ("no_process", "not_found"), (method, path, answer)
        tried += 1
    assert tried > 20


@pytest.mark.parametrize("method, path, body, status, code", [
    ("POST", "/query", {"sql": "SELECT * FROM nope"}, 422, "invalid"),
    ("POST", "/query", {"sql": "SELECT"}, 422, "invalid"),
    ("POST", "/query", {"sql": "DELETE FROM python.threads"}, 422, "invalid"),
    ("GET", "/value?expression=nope", None, 404, "not_found"),
    ("GET", "/value?expression=held.nope", None, 404, "not_found"),
    ("GET", "/value?expression=held[99999999]", None, 404, "not_found"),
    ("GET", "/value?expression=1+%2B", None, 422, "invalid"),
    ("GET", "/value?expression=held&tid=1", None, 404, "not_found"),
    ("GET", "/value?expression=held&frame=999", None, 404, "not_found"),
    ("GET", "/stacks?tid=1", None, 404, "no_process"),
    ("POST", "/config", {"key": "nope", "value": "1"}, 422, "invalid"),
    ("POST", "/config", {"key": "probing.sample_rate", "value": "many"}, 422, "invalid"),
    ("POST", "/resume", {}, 409, "conflict"),
    ("POST", "/step", {}, 409, "conflict"),
    ("POST", "/eval", {"code": "1", "frame": 0}, 409, "conflict"),
    ("GET", "/skills/nope", None, 404, "not_found"),
])
def test_what_a_target_has_not_or_refuses(gateway, program, method, path, body, status, code):
    answer = gateway.ask("/v1/targets/%d%s" % (program.pid, path), body, method)
    assert (answer.status, answer.error["code"]) == (status, code), answer
    assert answer.error["message"]


def test_a_job_that_is_none(gateway):
    answer = gateway.ask("/v1/job")
    assert (answer.status, answer.error["code"]) == (404, "not_found"), answer


def test_paused_already(gateway, program):
    at = "/v1/targets/%d" % program.pid
    command = [support.BINARY, str(program.pid), "debug", "--pause", "--json"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        answer = gateway.ask(at + "/pause", {})
        assert (answer.status, answer.error["code"]) == (409, "conflict"), answer
        assert gateway.ask(at + "/resume", {}).status == 200


def test_another_tracer_has_it():
    """A process can have one tracer: here it is this one."""
    libc = ctypes.CDLL(None, use_errno=True)
    with support.Program(PROGRAM) as traced:
        assert traced.line() == "ready"
        with Gateway(traced.pid, "--allow-write") as gateway:
            assert libc.ptrace(PTRACE_SEIZE, traced.pid, None, None) == 0, os.strerror(ctypes.get_errno())
            answer = gateway.ask("/v1/targets/%d/eval" % traced.pid, {"code": "1"})
            assert (answer.status, answer.error["code"]) == (409, "conflict"), answer
            assert "traced by process %d" % os.getpid() in answer.error["message"]
        traced.kill()


def test_no_state_of_a_target_is_our_failure(gateway):
    """Each request about a process without Python, one that is stopped, one that has ended: no 500."""
    tried = 0
    with support.Program(["sleep", "600"]) as other, support.Program(["sleep", "600"]) as gone, \
            support.Program(PROGRAM) as stopped:
        assert stopped.line() == "ready"
        os.kill(stopped.pid, signal.SIGSTOP)
        with Gateway(other.pid, gone.pid, stopped.pid, "--allow-write") as served:
            gone.kill()
            wait_until(lambda: not os.path.exists("/proc/%d" % gone.pid), "it does not end")
            for method, path, values in routes(gateway):
                # A stream of events ends with its first failure, but lasts without one.
                if "{id}" not in path or (path.endswith(("/events", "/repl", "/dap", "/pause"))):
                    continue
                for target in (other, gone, stopped):
                    asked = path.format(id=target.pid, skill="hang")
                    answer = ask(served, method, asked, values)
                    assert answer.status in (200, 201, 404, 409, 422), (method, asked, answer)
                    assert answer.status == 404 or target is not gone, (method, asked, answer)
                    tried += 1
    assert tried > 30


def test_methods_that_an_address_has_not(gateway):
    """405 names the methods that it has."""
    for path in sorted(gateway.ask("/v1/openapi.json").json["paths"]):
        asked = path.format(id="1", profile="p0", skill="hang", terminal="t0", dashboard="service")
        answer = gateway.ask(asked, method="PATCH")
        assert answer.status == 405 and answer.headers["allow"], (path, answer)
    assert gateway.ask("/v1/profiles/p0", method="PATCH").headers["allow"] == "GET, POST, DELETE"

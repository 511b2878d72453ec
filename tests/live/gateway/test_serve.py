# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing serve` as used by programs: the answer to each request."""
import csv
import http.client
import io
import json
import os
import signal
import socket
import subprocess

import pytest

import support
from environment import need
from gateway_client import Gateway, wait_until
from tables import core_of

OK, FAILED, USAGE = range(3)
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.fixture(scope="module")
def program():
    with support.Target(NEWEST, support.HERE / "programs" / "obeys.py") as running:
        running.line()
        yield running


@pytest.fixture(scope="module")
def gateway(program):
    with Gateway(program.pid) as running:
        yield running


def test_what_it_is(gateway):
    answer = gateway.ask("/v1")
    assert answer.status == 200 and answer.headers["content-type"] == "application/json"
    assert answer.json["allow_write"] is False and answer.json["all"] is False


def test_targets_are_those_that_were_named(gateway, program):
    [target] = gateway.ask("/v1/targets").json["targets"]
    assert target["id"] == support.instance(program.pid) and target["kind"] == "process"
    assert target["pid"] == program.pid and target["ended"] is False
    other = gateway.ask("/v1/targets/%d/stacks" % os.getpid())
    assert other.status == 404 and other.error["code"] == "no_process", other


def test_all_processes_without_a_name(program):
    with Gateway() as gateway:
        ids = [target["id"] for target in gateway.ask("/v1/targets").json["targets"]]
        assert support.instance(program.pid) in ids and support.instance(os.getpid()) in ids
        assert gateway.ask("/v1/targets/%d/stacks" % program.pid).status == 200
        assert gateway.ask("/v1/targets/4194303/stacks").error["code"] == "no_process"


def test_stacks_are_those_of_the_command(gateway, program):
    answer = gateway.ask("/v1/targets/%d/stacks?locals=1" % program.pid).json
    told = support.dump(program.pid, "--locals")
    assert answer["target"] == told["target"]
    assert [thread["frames"] for thread in answer["threads"]] == \
        [thread["frames"] for thread in told["threads"]]


def test_source_lines(gateway, program):
    [thread] = [thread for thread in gateway.ask(
        "/v1/targets/%d/stacks?source=true" % program.pid).json["threads"]
        if thread["name"] == "MainThread"]
    assert thread["frames"][-1]["source"]


def test_rows_in_each_format(gateway, program):
    path = "/v1/targets/%d/query" % program.pid
    sql = "SELECT 1 AS one, 'a,b' AS text UNION ALL SELECT 2, NULL"
    rows = [{"one": 1, "text": "a,b"}, {"one": 2, "text": None}]
    assert gateway.ask(path, {"sql": sql}).json == rows
    lines = gateway.ask(path, {"sql": sql, "format": "ndjson"})
    assert [json.loads(line) for line in lines.text.splitlines()] == rows
    assert lines.headers["content-type"] == "application/x-ndjson"
    table = gateway.ask(path, {"sql": sql, "format": "csv"})
    assert list(csv.reader(io.StringIO(table.text))) == [["one", "text"], ["1", "a,b"], ["2", ""]]
    assert table.headers["content-type"].startswith("text/csv")
    assert gateway.ask(path + "?sql=select+1+as+x&format=tsv").text == "x\n1\n"


def test_many_rows_come_as_they_are_made(gateway, program):
    rows = gateway.query(program.pid, "SELECT value FROM generate_series(1, 200000)")
    assert len(rows) == 200000 and rows[-1] == {"value": 200000}


def test_over_all_targets(gateway, program):
    answer = gateway.ask("/v1/query", {"sql": "SELECT pid FROM process.info"})
    assert [row["pid"] for row in answer.json] == [program.pid], answer


@pytest.mark.parametrize("path, body, status, code", [
    ("/v1/targets/ID/query", {"sql": "SELECT * FROM nope"}, 422, "invalid"),
    ("/v1/targets/ID/query", {}, 400, "usage"),
    ("/v1/targets/ID/query", {"sql": "SELECT 1", "format": "xml"}, 400, "usage"),
    ("/v1/targets/ID/query", {"sql": "SELECT 1", "timeout": -1}, 400, "usage"),
    ("/v1/targets/ID/query", {"sql": "SELECT 1", "limit": 1}, 400, "usage"),
    ("/v1/targets/ID/query", {"sql": ["SELECT 1"]}, 400, "usage"),
    ("/v1/targets/ID/query", b"sql=SELECT 1", 400, "usage"),
    ("/v1/targets/ID/query", b'{"sql":"SELECT 1","sql":"SELECT 2"}', 400, "usage"),
    ("/v1/targets/ID/query?sql=SELECT+1%00", None, 400, "usage"),
    ("/v1/targets/ID/query?sql=SELECT+1&sql=SELECT+2", None, 400, "usage"),
    ("/v1/targets/ID/stacks?natve=1", None, 400, "usage"),
    ("/v1/targets/ID/stacks?native=maybe", None, 400, "usage"),
    ("/v1/targets/ID/stacks", {}, 405, "usage"),
    ("/v1/targets/ID/eval", {"code": "1"}, 403, "permission"),
    ("/v1/targets/ID/nothing", None, 404, "not_found"),
    ("/v1/targets/0/stacks", None, 404, "no_process"),
    ("/v1/profiles/p99", None, 404, "not_found"),
])
def test_what_cannot_be_done_says_why(gateway, program, path, body, status, code):
    answer = gateway.ask(path.replace("ID", str(program.pid)), body)
    assert (answer.status, answer.error["code"]) == (status, code), answer
    assert answer.error["message"]


def test_a_query_that_takes_too_long(gateway, program):
    answer = gateway.ask("/v1/targets/%d/query" % program.pid, {"sql": ENDLESS, "timeout": 0.2})
    assert answer.status == 504 and answer.error["code"] == "timeout", answer
    wait_until(lambda: not gateway.children(), "its command runs on")


def test_a_query_ends_when_the_client_leaves(gateway, program):
    body = json.dumps({"sql": ENDLESS, "timeout": 500}).encode()
    connection = gateway.connect()
    connection.sendall(b"POST /v1/targets/%d/query HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"
                       b"Content-Length: %d\r\n\r\n%s" % (
                           program.pid, gateway.host.encode(), gateway.token.encode(), len(body), body))
    wait_until(gateway.children, "the query does not begin")
    connection.close()
    wait_until(lambda: not gateway.children(), "the query runs on")


def test_warnings_are_told(gateway, program):
    answer = gateway.ask("/v1/query", {"sql": "SELECT 1"})
    assert "probing-warning" not in answer.headers
    with support.Target(NEWEST, support.HERE / "programs" / "obeys.py") as other:
        other.line()
        with Gateway(program.pid, other.pid) as both:
            other.kill()
            answer = both.ask("/v1/query", {"sql": "SELECT pid FROM process.info"})
            assert [row["pid"] for row in answer.json] == [program.pid]
            ended = both.ask("/v1/targets/%d/stacks" % other.pid)
            assert ended.status == 404 and "has ended" in ended.error["message"]
            assert [target["ended"] for target in both.ask("/v1/targets").json["targets"]] == \
                [False, True]


def test_values_and_tables(gateway, program):
    answer = gateway.ask("/v1/targets/%d/value?expression=len(__name__)" % program.pid)
    assert answer.status == 200 and answer.json["value"] == "8", answer
    assert gateway.ask("/v1/targets/%d/value?expression=--help" % program.pid).status == 422
    tables = {(table["schema"], table["name"]) for table in gateway.ask("/v1/tables").json}
    assert ("python", "threads") in tables


def test_a_snapshot_is_a_target(gateway, program, tmp_path):
    answer = gateway.ask("/v1/targets/%d/snapshot" % program.pid)
    file = tmp_path / "one.snapshot"
    file.write_bytes(answer.body)
    assert "probing-%d.snapshot" % program.pid in answer.headers["content-disposition"]
    with Gateway(file) as of_file:
        [target] = of_file.ask("/v1/targets").json["targets"]
        assert target["kind"] == "file"
        stacks = of_file.ask("/v1/targets/%s/stacks" % target["id"]).json
        assert stacks["target"]["kind"] == "snapshot" and stacks["target"]["pid"] == program.pid


def test_code_runs_only_if_that_was_allowed(program):
    with Gateway("--allow-write", program.pid) as gateway:
        assert gateway.ask("/v1")  # it says so
        answer = gateway.ask("/v1/targets/%d/eval" % program.pid, {"code": "6 * 7"})
        assert answer.status == 200 and answer.json["value"] == "42", answer


def test_a_recording(gateway):
    with support.Target(NEWEST, support.HERE / "programs" / "profiled.py", 1) as working:
        assert working.line() == "ready"
        working.send(b"go 600\n")
        with Gateway(working.pid) as gateway:
            made = gateway.ask("/v1/targets/%d/profiles" % working.pid,
                               {"duration": 600, "rate": 200})
            assert made.status == 201 and made.json["state"] == "running", made
            path = "/v1/profiles/" + made.json["id"]
            # It can be read while it grows.
            wait_until(lambda: b"profiled.py" in gateway.ask(path + "?format=collapsed").body,
                       "nothing is recorded")
            assert gateway.ask(path + "/stop", b"", "POST").status == 200
            wait_until(lambda: gateway.ask("/v1/profiles").json["profiles"][0]["state"] == "finished",
                       "it does not stop")
            page = gateway.ask(path + "?format=html")
            assert page.body.startswith(b"<!DOCTYPE html>") and b"profiled.py" in page.body
            assert page.headers["content-security-policy"].startswith("sandbox")
            assert gateway.ask(path).body.startswith(b"SQLite format 3")
            assert gateway.ask(path, method="DELETE").status == 200
            assert gateway.ask("/v1/profiles").json["profiles"] == []


def test_addresses_of_other_programs(gateway, program):
    assert gateway.ask("/apis/callstack").json["target"]["pid"] == program.pid
    assert gateway.ask("/query?sql=select+1+as+x&pid=%d" % program.pid).json == [{"x": 1}]
    graph = gateway.ask("/apis/flamegraph?duration=0.2")
    assert graph.status == 200 and graph.body.startswith(b"<!DOCTYPE html>"), graph


def test_connections_are_kept(gateway, program):
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    for path in ("/v1", "/v1/targets/%d/query?sql=select+1" % program.pid, "/v1/nothing", "/v1"):
        connection.request("GET", path, headers={"Authorization": "Bearer " + gateway.token})
        assert connection.getresponse().read()
    assert connection.sock
    connection.close()


def test_a_client_that_has_nothing_more_to_say(gateway, program):
    answer = gateway.raw(b"GET /v1/targets/%d/query?sql=select+41%%2B1+as+x HTTP/1.1\r\nHost: %s\r\n"
                         b"Authorization: Bearer %s\r\nConnection: close\r\n\r\n" % (
                             program.pid, gateway.host.encode(), gateway.token.encode()), end=True)
    assert b'"x":42' in answer, answer


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left(program, tmp_path, number):
    place = tmp_path / "socket"
    with Gateway(program.pid, address="unix:%s" % place, XDG_RUNTIME_DIR=str(tmp_path)) as gateway:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(place))
            body = b'{"duration": 600}'
            connection.sendall(b"POST /v1/targets/%d/profiles HTTP/1.1\r\nHost: localhost\r\n"
                               b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s" % (
                                   program.pid, gateway.token.encode(), len(body), body))
            assert connection.recv(4096).startswith(b"HTTP/1.1 201")
        assert len(os.listdir(tmp_path)) == 2 and gateway.children()
        children = gateway.children()
        assert gateway.stop(number) == (OK, "")
    assert os.listdir(tmp_path) == []
    assert not any(os.path.exists("/proc/%d" % child) for child in children)


def test_a_socket_is_for_its_user(program, tmp_path):
    place = tmp_path / "socket"
    with Gateway(program.pid, address="unix:%s" % place):
        assert os.stat(place).st_mode & 0o777 == 0o600
        second = subprocess.run([support.BINARY, "serve", "-a", "unix:%s" % place], timeout=60,
                                stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
        assert second.returncode == USAGE and b"exists already" in second.stderr


def test_tls(program, tmp_path):
    need("openssl")
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    done = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                           "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                           "-keyout", key, "-out", cert], check=True, stderr=subprocess.PIPE,
                          timeout=60)
    assert not done.returncode
    os.chmod(key, 0o600)
    import ssl
    with Gateway(program.pid, "--cert", cert, "--key", key) as gateway:
        assert gateway.url.startswith("https://")
        connection = http.client.HTTPSConnection(
            "localhost", gateway.port, timeout=60, context=ssl.create_default_context(cafile=cert))
        connection.request("GET", "/v1/targets/%d/query?sql=select+1+as+x" % program.pid,
                           headers={"Authorization": "Bearer " + gateway.token})
        assert json.loads(connection.getresponse().read()) == [{"x": 1}]
        connection.close()


@pytest.mark.parametrize("words", [
    ["--exe", "/bin/true"], ["%d" % os.getpid(), "--sysroot", "/"], ["--address", "0.0.0.0:0"], ["--cert", "x"], ["/no/such/file"], ["--address", "unix:"],
])
def test_what_is_not_served(words):
    done = subprocess.run([support.BINARY, "serve", *words], timeout=60, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode and not done.stdout and done.stderr, done


def test_a_core_file_with_the_places_of_its_files(tmp_path):
    with support.Target(NEWEST, support.HERE / "programs" / "obeys.py") as target:
        target.line()
        exe = os.readlink("/proc/%d/exe" % target.pid)
        core = core_of(target.pid, tmp_path)
    with Gateway(core, "--exe", exe) as gateway:
        told = support.dump(core, "--exe", exe)
        answer = gateway.ask("/v1/targets/f1/stacks").json
        assert [thread["tid"] for thread in answer["threads"]] == [thread["tid"] for thread in told["threads"]]
        assert gateway.query("f1", "SELECT count(*) AS n FROM python.threads")[0]["n"] == len(told["threads"])
        assert gateway.ask("/v1/query", {"sql": "SELECT 1 AS x"}).json == [{"x": 1}]

# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing export otlp`, as a receiver sees it: read field by field, and by OpenTelemetry's own messages."""
import contextlib
import getpass
import http.server
import json
import os
import signal
import struct
import subprocess
import threading
import time

import pytest

import profiles
import support
from environment import need
from gateway_client import wait_until
from otlp_file import Profiles
from pprof_file import fields, first
from terminal import environment

OK, FAILED, USAGE = range(3)
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
PROGRAM = """
import sys, time
sys.path.insert(0, %r)
import probing
with probing.span("outer", file="f", count=3, share=0.5, right=True):
    with probing.span("inner n\\u00e4me"):
        probing.event("within", n=1)
probing.event("outside")
print("ready", flush=True)
number = 0
while sys.stdin.readline():
    number += 1
    with probing.span("more %%d" %% number):
        pass
    print("more", flush=True)
""" % str(support.ROOT / "package")


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.status  # a test that changes it also clears the received data
        self.server.got.append((self.path, dict(self.headers), body))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def receiving(status=200):
    need("curl")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        server.got, server.status = [], status
        server.url = "http://127.0.0.1:%d" % server.server_port
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def program():
    agent = os.path.join(os.path.dirname(support.BINARY), "libprobing-agent.so")
    with support.Program([NEWEST.exe, "-c", PROGRAM], env=environment(PROBING_AGENT=agent)) as running:
        assert running.line() == "ready"
        yield running


def export(*words, **variables):
    done = subprocess.run([support.BINARY, "export", "otlp", *map(str, words)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100, check=False,
                          env=environment(**variables))
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def attributes(message, number):
    found = {}
    for key, value in message:
        if key == number:
            pair = fields(value)
            [(kind, any_value)] = fields(first(pair, 2))
            found[first(pair, 1).decode()] = any_value.decode() if kind == 1 else bool(any_value) if kind == 2 \
                else any_value if kind == 3 else struct.unpack("<d", any_value)[0]
    return found


def resources(body):
    """[(attributes, [messages of the scope])]"""
    found = []
    for _, resource in fields(body):
        parts = fields(resource)
        scope = fields(first(parts, 2))
        assert first(fields(first(scope, 1)), 1) == b"probing"
        found.append((attributes(fields(first(parts, 1)), 1), [fields(value) for key, value in scope if key == 2]))
    return found


def spans(server):
    return [span for path, _, body in list(server.got) if path == "/v1/traces"
            for _, messages in resources(body) for span in messages]


def names(server):
    return [first(span, 5).decode() for span in spans(server)]


def send_all(program, server, count):
    """Spans of the last moments are left for the next time."""
    wait_until(lambda: export(program.pid, "--endpoint", server.url)[0] == OK and len(spans(server)) >= count,
               "the spans do not come")


def test_spans(program):
    with receiving() as server:
        wait_until(lambda: server.got.clear() or export(program.pid, "--endpoint", server.url)[0] == OK and
                   sorted(names(server)) == ["inner n\u00e4me", "outer"], "the spans do not come")
        by_name = {first(span, 5).decode(): span for span in spans(server)}
        outer, inner = by_name["outer"], by_name["inner n\u00e4me"]
        assert len(first(outer, 1)) == 16 and len(first(outer, 2)) == 8
        assert first(outer, 1) == first(inner, 1) and first(inner, 4) == first(outer, 2)
        assert not first(outer, 4, b"") and first(outer, 2) != first(inner, 2)
        assert attributes(outer, 9) == {"thread.id": program.pid, "file": "f", "count": 3, "share": 0.5, "right": True}
        (start, end), (begun, ended) = [[struct.unpack("<Q", first(span, number))[0] for number in (7, 8)]
                                        for span in (outer, inner)]
        assert start <= begun <= ended <= end
        event = fields(first(inner, 11))
        assert first(event, 2) == b"within" and attributes(event, 3) == {"n": 1}
        [(resource, _)] = resources([body for path, _, body in server.got if path == "/v1/traces"][0])
        assert resource["process.pid"] == program.pid and resource["service.name"] == "python"


def test_metrics(program):
    with receiving() as server:
        code, said, error = export(program.pid, OTEL_EXPORTER_OTLP_ENDPOINT=server.url + "/",
                                   OTEL_EXPORTER_OTLP_HEADERS='x-key=a"b\\c=d,y=2', OTEL_SERVICE_NAME="mine")
        assert (code, error) == (OK, "") and "samples" in said
        path, headers, body = server.got[0]
        assert path == "/v1/metrics" and headers["Content-Type"] == "application/x-protobuf"
        assert headers["x-key"] == 'a"b\\c=d' and headers["y"] == "2"
        [(resource, metrics)] = resources(body)
        assert resource["service.name"] == "mine" and resource["process.owner"] == getpass.getuser()
        assert resource["process.executable.name"].startswith("python") and resource["script"].startswith("python"), resource
        by_name = {first(metric, 1).decode(): metric for metric in metrics}
        up = fields(first(fields(first(by_name["probing_up"], 5)), 1))
        assert struct.unpack("<d", first(up, 4))[0] == 1
        cpu = fields(first(by_name["process.cpu.time"], 7))
        assert first(cpu, 2) == 2 and first(cpu, 3) == 1  # cumulative, and never falls
        points = [fields(value) for key, value in cpu if key == 1]
        assert [attributes(point, 7) for point in points] == [{"cpu.mode": "user"}, {"cpu.mode": "system"}]
        assert all(first(point, 2)[::-1] < first(point, 3)[::-1] for point in points)  # little endian


def test_findings():
    source = """
import threading
lock = threading.Lock()
def twice():
    with lock:
        with lock:
            pass
threading.Thread(target=twice).start()
"""
    def found():
        with receiving() as server:
            assert export(program.pid, OTEL_EXPORTER_OTLP_ENDPOINT=server.url)[0] == OK
            metrics = [(resource, metric) for resource, metrics in resources(server.got[0][2]) for metric in metrics]
        return [(resource, fields(first(metric, 5))) for resource, metric in metrics if first(metric, 1) == b"probing_finding"]
    with support.Program([NEWEST.exe, "-c", source]) as program:
        wait_until(found, "no finding was sent")
        [(resource, points)] = found()
        assert resource["process.pid"] == program.pid
        [point] = [fields(value) for key, value in points if key == 1]
        assert attributes(point, 7)["rule"] == "deadlock" and struct.unpack("<d", first(point, 4))[0] == 1


def test_again_and_again_each_span_once(program):
    with receiving() as server:
        sender = subprocess.Popen([support.BINARY, "export", "otlp", str(program.pid), "--every", "100ms",
                                   "--endpoint", server.url], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE)
        try:
            wait_until(lambda: server.got, "nothing is sent")
            for number in range(5):
                program.send(b"\n")
                assert program.line() == "more"
                wait_until(lambda: "more %d" % (number + 1) in names(server), "a span does not come")
            # The receiver is down for a while: ended processes' data comes later.
            server.status = 503
            program.send(b"\n")
            assert program.line() == "more"
            tried = len(server.got)
            wait_until(lambda: len(server.got) > tried + 5, "it does not try")
            server.got.clear()
            server.status = 200
            wait_until(lambda: "more 6" in names(server), "the span is lost")
            program.send(b"\n")
            assert program.line() == "more"
            wait_until(lambda: "more 7" in names(server), "a span does not come")
            assert names(server).count("more 7") == 1
        finally:
            sender.send_signal(signal.SIGINT)
            sender.communicate(timeout=60)
        assert sender.returncode == OK


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """Of two processes."""
    script = tmp_path_factory.mktemp("recorded") / "recorded_for_otlp.py"
    script.write_bytes(profiles.PROGRAM.read_bytes())
    with support.Target(NEWEST, script, 1) as one, support.Target(NEWEST, script, 1) as two:
        for target in one, two:
            assert target.line() == "ready"
            target.send(b"go 600\n")
        file, begun = script.with_name("run.profile"), time.time()
        done = subprocess.run([support.BINARY, "/recorded_for_otlp/", "perf", "--all", "-d", "1s", "--json", "-o", str(file)],
                              stdout=subprocess.PIPE, check=True, timeout=100)
        yield file, {**json.loads(done.stdout), "between": (begun, time.time())}


def test_recordings(recording):
    """A profile for each weight of each process, with what the recording says of it."""
    file, said = recording
    with receiving() as server:
        code, out, error = export(file, OTEL_EXPORTER_OTLP_ENDPOINT=server.url + "/", OTEL_SERVICE_NAME="mine")
        assert (code, out, error) == (OK, "%s was sent to %s/\n" % (file, server.url), "")
        [(path, headers, body)] = server.got  # no other process's metrics
    assert path == "/v1development/profiles" and headers["Content-Type"] == "application/x-protobuf"
    sent = Profiles(body)
    assert {resource["process.pid"] for resource, _, _ in sent.resources} == {each["pid"] for each in said["processes"]}
    for resource, scope, each in sent.resources:
        assert resource["service.name"] == "mine" and scope == b"probing"
        assert resource["process.runtime.name"] == "cpython" and resource["process.runtime.version"].startswith("%d.%d" % NEWEST.version[:2])
        assert [kind for kind, _ in (profile.type for profile in each)] == ["cpu", "wall", "runqueue", "samples"]
        for profile in each:
            assert profile.period_type == ("cpu", "nanoseconds") and profile.period == 10_000_000
            assert said["between"][0] < profile.started / 1e9 < (profile.started + profile.duration) / 1e9 < said["between"][1]
            assert profile.duration == said["duration_ns"]
        threads = {thread["tid"]: thread["name"] for thread in said["threads"] if thread["pid"] == resource["process.pid"]}
        assert {(values["thread.id"], values["thread.name"]) for _, _, values in each[1].samples} == set(threads.items())
    assert sum(value for _, _, each in sent.resources for _, value, _ in each[0].samples) == said["weight_ns"]


def test_recordings_beside_processes(recording, program):
    file, _ = recording
    with receiving() as server:
        assert export(program.pid, file, "--endpoint", server.url)[0] == OK
        assert [path for path, _, _ in server.got][:2] == ["/v1development/profiles", "/v1/metrics"]
    code, _, error = export(file, "--every", "1s")
    assert code == USAGE and "is a recording" in error
    with receiving(404) as server:
        code, out, error = export(file, "--endpoint", server.url)
        assert code == FAILED and "404" in error and not out


def test_what_cannot_be_sent(program):
    with receiving(500) as server:
        code, _, error = export(program.pid, "--endpoint", server.url)
        assert code == FAILED and "answered with status 500" in error
    code, _, error = export(program.pid, "--endpoint", "http://127.0.0.1:9")
    assert code == FAILED and "nothing was sent" in error
    for endpoint in ("file:///etc/passwd", "http://127.0.0.1:9\noutput = x", "-o/tmp/x"):
        code, _, error = export(program.pid, "--endpoint", endpoint)
        assert code != OK and "sent" not in error.replace("nothing was sent", ""), (endpoint, error)
    code, _, error = export(program.pid, OTEL_EXPORTER_OTLP_HEADERS="nothing")
    assert code == USAGE and "NAME=VALUE" in error
    code, _, error = export(program.pid, "--textfile", "x")
    assert code == USAGE and "prometheus" in error


def test_messages_of_opentelemetry(program):
    """The published messages understand every byte."""
    pytest.importorskip("opentelemetry.proto")
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    with receiving() as server:
        send_all(program, server, 2)
        for path, _, body in server.got:
            kind = ExportTraceServiceRequest if path == "/v1/traces" else ExportMetricsServiceRequest
            message = kind.FromString(body)
            # Unknown data would be written last, and invalid data not at all.
            assert kind.FromString(message.SerializeToString()) == message
            assert not fields_unknown(message), path


def test_profiles_of_opentelemetry(recording):
    """The published messages understand every byte, and each number in them names an entry that is there once."""
    service = pytest.importorskip("opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2")
    with receiving() as server:
        assert export(recording[0], "--endpoint", server.url)[0] == OK
        [(_, _, body)] = server.got
    message = service.ExportProfilesServiceRequest.FromString(body)
    assert service.ExportProfilesServiceRequest.FromString(message.SerializeToString()) == message
    assert not fields_unknown(message)
    tables = {field.name: list(value) for field, value in message.dictionary.ListFields()}
    assert len(tables) == len(message.dictionary.DESCRIPTOR.fields)
    entries = {name: [each if isinstance(each, str) else each.SerializeToString() for each in table] for name, table in tables.items()}
    assert all(not table[0] and len(set(table)) == len(table) for table in entries.values())
    used = {name: {0} for name in tables}
    numbers_used(message, used)
    assert used == {name: set(range(len(table))) for name, table in tables.items()}
    for each in message.resource_profiles:
        for profile in each.scope_profiles[0].profiles:
            assert all(len(sample.values) == 1 and sample.values[0] > 0 for sample in profile.samples)


def numbers_used(message, used):
    """By the words that fields have in the published messages: …_strindex, stack_index, attribute_indices, …"""
    for field, value in message.ListFields():
        kind = field.name.rpartition("_")[0] if field.name.endswith(("_index", "_indices")) else \
            "string" if field.name.endswith("strindex") else None
        if kind:
            used[kind + "_table"].update([value] if isinstance(value, int) else value)
        elif field.type == field.TYPE_MESSAGE:
            for part in [value] if hasattr(value, "ListFields") else value:
                numbers_used(part, used)


def fields_unknown(message):
    from google.protobuf.unknown_fields import UnknownFieldSet
    found = list(UnknownFieldSet(message))
    for descriptor, value in message.ListFields():
        if descriptor.type == descriptor.TYPE_MESSAGE:
            for part in [value] if hasattr(value, "ListFields") else value:
                found += fields_unknown(part)
    return found

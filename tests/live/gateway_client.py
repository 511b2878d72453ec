# SPDX-License-Identifier: GPL-3.0-or-later
"""A gateway that is started for a test, and requests to it."""
import http.client
import json
import os
import select
import signal
import socket
import subprocess
import time
import urllib.parse

import support
from terminal import environment


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = dict((name.lower(), value) for name, value in response.getheaders())
        self.cookies = response.headers.get_all("Set-Cookie") or []
        self.body = response.read()

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.text)

    @property
    def error(self):
        return self.json["error"]

    def __repr__(self):
        return "%d %r" % (self.status, self.body[:500])


class Gateway:
    """`probing serve`, at a free port of the loopback unless @words say otherwise."""

    def __init__(self, *words, address="127.0.0.1:0", command=(), **variables):
        command = [*command, support.BINARY, "serve", "--json", *map(str, words)]
        if address:
            command += ["--address", address]
        variables.setdefault("PROBING_AUTH_TOKEN", "")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=environment(**variables))
        assert select.select([self.process.stdout], [], [], 60)[0], "it printed nothing"
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        said = json.loads(line)
        self.url, self.token = said["url"], said["token"] or variables["PROBING_AUTH_TOKEN"]
        self.host = urllib.parse.urlsplit(self.url).netloc
        self.port = urllib.parse.urlsplit(self.url).port

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def ask(self, path, body=None, method=None, token=True, headers=(), host=None):
        """One request on a connection of its own; @body is sent as JSON."""
        sent = {"Host": host or self.host, **dict(headers)}
        if token:
            sent["Authorization"] = "Bearer " + (self.token if token is True else token)
        data = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method or ("GET" if data is None else "POST"), path, data, sent)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def raw(self, data, end=False):
        """All that comes back for these bytes, until the other side closes."""
        with self.connect() as connection:
            connection.sendall(data)
            if end:
                connection.shutdown(socket.SHUT_WR)
            return read_all(connection)

    def query(self, target, sql, **more):
        answer = self.ask("/v1/targets/%s/query" % target, {"sql": sql, **more})
        assert answer.status == 200, answer
        return answer.json

    def children(self):
        """Pids of the commands that run for it."""
        return support.children(self.process.pid)

    def files(self):
        """How many descriptors it has open."""
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def resident(self):
        """Bytes of its memory."""
        with open("/proc/%d/statm" % self.process.pid, encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def alive(self):
        return self.process.poll() is None

    def stop(self, number=signal.SIGINT):
        """Ends it; its exit code and its stderr."""
        if self.alive():
            self.process.send_signal(number)
        error = self.process.communicate(timeout=60)[1]
        return self.process.returncode, error.decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.alive():
            self.process.terminate()
        self.process.communicate(timeout=60)


def read_all(connection):
    data = b""
    try:
        while chunk := connection.recv(1 << 16):
            data += chunk
    except ConnectionResetError:
        pass
    return data


def wait_until(condition, what, timeout=60):
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Serving processes, and a client of that protocol as docs/protocol.md describes it."""
import hashlib
import hmac
import json
import os
import signal
import socket
import struct
import subprocess

import pytest

import support
from agent import Frames, frame
from terminal import environment

HELLO, INTERRUPT, PROOF, RUN, STDIN = 1, 3, 16, 17, 18
HELLO_REPLY, STDOUT, STDERR, DONE, ERROR, WELCOME, TAKEN = 64, 65, 66, 69, 72, 80, 81
INPUT, TERMINAL, COLOUR = 1, 2, 4
TOKEN = "a-token-for-the-tests"


def run(*words, token=TOKEN, stdin=None, timeout=60, cwd=None, **variables):
    """The command with that token in its environment; its output is bytes."""
    variables.setdefault("PROBING_AUTH_TOKEN", token or "")
    given = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
    return subprocess.run([support.BINARY, *map(str, words)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=timeout, check=False, cwd=cwd,
                          env=environment(**variables), **given)


class Service:
    """A process that is served, at `address`."""

    def __init__(self, pid, *words, listen="127.0.0.1:0", token=TOKEN):
        self.pid, self.token = pid, token
        done = run(pid, "inject", "-l", listen, "--json", *words, token=token)
        assert done.returncode == 0, done
        said = json.loads(done.stdout.decode())
        assert said["pid"] == pid, said
        self.address = said["address"]
        self.host, _, port = self.address.rpartition(":")
        self.host, self.port = self.host.strip("[]"), int(port)
        if said["token"]:
            self.token = said["token"]
        self.server = next(server for server in servers(pid)
                           if self.port in listening_ports(server))

    def run(self, *words, **options):
        return run("-t", self.address, *words, token=options.pop("token", self.token), **options)

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=60)

    def kill(self, number=signal.SIGKILL):
        os.kill(self.server, number)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            if self.server in servers(self.pid):
                self.kill(signal.SIGTERM)
        except ProcessLookupError:
            pass


def servers(pid):
    """Processes in the background that serve @pid."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if not name.isdigit():
                continue
            with open("/proc/%s/cmdline" % name, "rb") as file:
                words = file.read().split(b"\0")
            if b"inject" in words and str(pid).encode() in words and \
                    os.path.basename(words[0]) == b"probing" and listening_ports(int(name)):
                found.append(int(name))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            pass
    return found


def listening_ports(pid):
    """Ports of TCP that a process listens at."""
    sockets = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            sockets.add(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
        except FileNotFoundError:
            pass
    ports = set()
    for table in ("tcp", "tcp6"):
        try:
            with open("/proc/%d/net/%s" % (pid, table), encoding="ascii") as file:
                rows = [line.split() for line in file.readlines()[1:]]
        except FileNotFoundError:
            continue
        ports.update(int(row[1].rpartition(":")[2], 16) for row in rows
                     if row[3] == "0A" and "socket:[%s]" % row[9] in sockets)
    return ports


def proof(token, who, client, server):
    return hmac.new(token.encode(), b"probing %s 1" % who + client + server,
                    hashlib.sha256).digest()


def hello(nonce=b"n" * 32, lowest=1, highest=1):
    return frame(HELLO, b"PRBR" + struct.pack("<HH", lowest, highest) + nonce)


def command(*words, flags=0, columns=0, rows=0):
    text = b"".join(word.encode() + b"\0" for word in words)
    return frame(RUN, struct.pack("<IIII", flags, columns, rows, len(words)) + text)


class Client(Frames):
    """A connection to a server, let in if a token is given."""

    def __init__(self, service, token=TOKEN):
        self.socket = service.connect()
        self.rest = b""
        if token:
            self.introduce(token)

    def introduce(self, token, nonce=b"n" * 32):
        self.send(hello(nonce))
        kind, payload = self.receive()
        assert kind == HELLO_REPLY and payload[:8] == b"PRBR\1\0\1\0", (kind, payload)
        self.nonce = payload[8:]
        self.send(frame(PROOF, proof(token, b"client", nonce, self.nonce)))
        kind, payload = self.receive()
        assert kind == WELCOME, (kind, payload)
        assert payload[:32] == proof(token, b"server", nonce, self.nonce)
        self.pid = struct.unpack("<I", payload[32:])[0]

    def until(self, text):
        """All of stdout up to this text."""
        printed = b""
        while text not in printed:
            kind, payload = self.receive()
            assert kind in (STDOUT, TAKEN), (kind, payload, printed)
            printed += payload if kind == STDOUT else b""
        return printed

    def outcome(self):
        """({type: bytes}, (exit code, signal)) of a command."""
        texts = {STDOUT: b"", STDERR: b""}
        while True:
            kind, payload = self.receive()
            if kind == DONE:
                return texts, struct.unpack("<II", payload)
            assert kind in texts or kind == TAKEN, (kind, payload)
            if kind != TAKEN:
                texts[kind] += payload

    def outcome_after(self, data):
        self.send(data)
        return self.outcome()

    def run(self, *words, **options):
        self.send(command(*words, **options))
        return self.outcome()

    def refusal(self):
        """(exit code, message, hint) of the error that comes."""
        kind, payload = self.receive()
        assert kind == ERROR, (kind, payload)
        message, _, hint = payload[4:].decode().partition("\n")
        return struct.unpack("<I", payload[:4])[0], message, hint


@pytest.fixture
def process(target):
    return target("evaluated.py", "idle")


@pytest.fixture
def service(process):
    with Service(process.pid) as served:
        yield served

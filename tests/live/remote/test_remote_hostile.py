# SPDX-License-Identifier: GPL-3.0-or-later
"""Hostile, slow, or many servers and clients: no unauthorised client gets in, authorised ones get their
answers, and the server and the process run on."""
import os
import random
import signal
import socket
import struct
import subprocess
import threading

import pytest

import pauses
import remote
import support
from agent import frame, memory, wait_until
from environment import FAILED, OK, PERMISSION, TIMEOUT, UNSUPPORTED
from remote import process, service  # noqa: F401 (fixtures)
from remote import Client, Service, run
from support import count


def assert_serves(service):
    done = service.run("eval", "numbers")
    assert done.returncode == OK and done.stdout == b"[1, 2, 3]\n", done
    assert len(os.listdir("/proc/%d/fd" % service.server)) < 30
    assert not support.children(service.server)


def wait_for_end(connection):
    """All that comes up to the end of a connection."""
    connection.settimeout(60)
    received = b""
    while True:
        try:
            chunk = connection.recv(65536)
        except ConnectionResetError:
            return received
        if not chunk:
            return received
        received += chunk


def ended(service):
    """Connections that the server has closed leave no descriptor behind."""
    return len(os.listdir("/proc/%d/fd" % service.server)) < 12


GARBAGE = [
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",  # HTTP/1 is answered: test_injected.py
    b"\0" * 4096,
    b"\xff" * 4096,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # of TLS
    b"SSH-2.0-OpenSSH_9\r\n",
    frame(1, b"PRBA\1\0\1\0"),  # the agent's hello
    frame(1, b""),
    frame(1, b"PRBR\1\0\1\0"),  # with no nonce
    frame(17, b"\1\0\0\0"),
    remote.command("eval", "1"),
    remote.hello() + remote.command("eval", "1"),
    remote.hello() + remote.hello(),
    remote.hello() + frame(remote.PROOF, b""),
    remote.hello() + frame(remote.PROOF, b"x" * 33),
    struct.pack("<IHH", 1 << 31, 1, 1),
    struct.pack("<IHH", 1025, 1, 1) + b"x" * 1025,
]


@pytest.mark.parametrize("data", GARBAGE, ids=lambda data: repr(data[:12]))
def test_garbage(service, data):
    with service.connect() as connection:
        connection.sendall(data)
        wait_for_end(connection)
    assert_serves(service)


def test_random_garbage(service):
    chance = random.Random(1)
    whole = remote.hello() + frame(remote.PROOF, b"x" * 32) + remote.command("eval", "1")
    for _ in range(count(60, 2000)):
        data = bytearray(whole[:chance.randrange(1, len(whole))])
        for _ in range(chance.randrange(8)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        with service.connect() as connection:
            connection.sendall(data)
            if chance.randrange(2):
                connection.shutdown(socket.SHUT_WR)
                wait_for_end(connection)
    wait_until(lambda: ended(service))
    service.kill(0)  # it runs; many wrong tokens came from here


def test_garbage_of_a_client_that_was_let_in(process, service):
    chance = random.Random(2)
    for data in [frame(99), frame(remote.RUN), frame(remote.RUN, b"\0" * 16),
                 frame(remote.RUN, struct.pack("<IIII", 0, 0, 0, 2) + b"eval\0"),
                 frame(remote.RUN, struct.pack("<IIII", 0, 0, 0, 1) + b"eval"),
                 frame(remote.RUN, struct.pack("<IIII", 0, 0, 0, 1 << 31) + b"eval\0"),
                 remote.command(*["x"] * 257), remote.command("eval", *["--"] * 200),
                 remote.command("query", "--limit=x", "1"), remote.command("")]:
        with Client(service) as client:
            client.send(data)
            assert client.receive()[0] == remote.ERROR
            assert client.run("eval", "1")[0][remote.STDOUT] == b"1\n"
    for _ in range(count(20, 500)):
        with Client(service) as client:
            client.send(bytes(chance.randrange(256) for _ in range(chance.randrange(1, 400))))
    with Client(service) as client:
        client.send(frame(remote.STDIN, b"x") + frame(remote.INTERRUPT) + frame(remote.STDIN))
        assert client.run("eval", "1")[0][remote.STDOUT] == b"1\n"
    with Client(service) as client:
        client.send(struct.pack("<IHH", (1 << 20) + 1, remote.RUN, 1))
        assert "violates the protocol" in client.refusal()[1] and client.receive() is None
    wait_until(lambda: ended(service))
    assert_serves(service)


def test_slow_clients_have_to_go(service):
    """Byte after byte, or nothing at all: after 10 s it is over, and meanwhile others are served."""
    data = remote.hello()
    slow = [service.connect() for _ in range(10)]
    over = threading.Event()

    def drip(connection):
        for byte in range(len(data)):
            try:
                connection.send(data[byte:byte + 1])
            except OSError:
                return
            if over.wait(1):
                return

    dripping = [threading.Thread(target=drip, args=(connection,)) for connection in slow[:5]]
    for thread in dripping:
        thread.start()
    assert_serves_beside(service)
    for connection in slow:
        wait_for_end(connection)
        connection.close()
    over.set()
    for thread in dripping:
        thread.join()
    wait_until(lambda: ended(service))
    assert_serves(service)


def assert_serves_beside(service):
    assert service.run("eval", "numbers").stdout == b"[1, 2, 3]\n"


def test_strangers_do_not_keep_others_out(service):
    """A silent client makes room for a later one."""
    strangers = [service.connect() for _ in range(200)]
    assert_serves_beside(service)
    for connection in strangers:
        connection.close()
    wait_until(lambda: ended(service))
    assert_serves(service)


def test_wrong_tokens_have_to_wait(process):
    """From one address: some are free, then it takes ever longer, also with the right one."""
    with Service(process.pid) as service:
        said = []
        for _ in range(8):
            with Client(service, token=None) as client:
                client.send(remote.hello())
                assert client.receive()[0] == remote.HELLO_REPLY
                client.send(frame(remote.PROOF, b"x" * 32))
                said.append(client.refusal())
                assert client.receive() is None
        assert all(code == PERMISSION for code, _, _ in said)
        assert [message for _, message, _ in said[:5]] == ["the token is wrong"] * 5
        assert "too many wrong tokens" in said[5][1] and "try again in 1 s" in said[5][2], said
        wait_until(lambda: service.run("eval", "1").returncode == OK)
        # That was right: the next slip is free.
        done = service.run("eval", "1", token="x" * 16)
        assert b"the token is wrong" in done.stderr, done
        assert service.run("eval", "1").returncode == OK


def test_replay(process, service):
    """A recorded proof is worthless on another connection: its nonces differ."""
    recorded = b""
    with Client(service, token=None) as client:
        def send(data, plainly=client.send):
            nonlocal recorded
            recorded += data
            plainly(data)
        client.send = send
        client.introduce(remote.TOKEN)
        client.run("eval", "numbers.append(4)")
    with service.connect() as connection:
        connection.sendall(recorded)
        answer = wait_for_end(connection)
    assert b"the token is wrong" in answer, answer
    assert remote.TOKEN.encode() not in recorded + answer
    assert service.run("eval", "numbers").stdout == b"[1, 2, 3, 4]\n"
    # Neither is a proof of the server that of a client.
    with Client(service, token=None) as client:
        client.send(remote.hello())
        nonce = client.receive()[1][8:]
        client.send(frame(remote.PROOF,
                          remote.proof(remote.TOKEN, b"server", b"n" * 32, nonce)))
        assert client.refusal()[1] == "the token is wrong"


def test_versions(service):
    for lowest, highest in (2, 9), (0, 0):
        with Client(service, token=None) as client:
            client.send(remote.hello(lowest=lowest, highest=highest))
            code, message, hint = client.refusal()
            assert code == UNSUPPORTED and "version 1" in message and "same version" in hint
    with Client(service, token=None) as client:
        client.send(remote.hello(lowest=0, highest=7))
        assert client.receive()[1][:8] == b"PRBR\1\0\1\0"


def test_many_clients_at_once(service):
    """50 at a time, each with its own answer."""
    results = [None] * 50

    def ask(number):
        results[number] = service.run("eval", "print('x' * 100000) or %d" % number, timeout=300)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The agent itself has at most 16 clients; a further one gets a message.
    answered = 0
    for number, done in enumerate(results):
        if done.returncode == OK:
            answered += 1
            assert done.stdout == b"x" * 100000 + b"\n%d\n" % number, done
        else:
            assert b"clients" in done.stderr or b"refuses the connection" in done.stderr, done
    assert answered >= 14, results
    assert_serves(service)


def test_many_dumps_at_once(process, service):
    """50 clients that need no agent all get theirs."""
    clients = [subprocess.Popen(
        [support.BINARY, "-t", service.address, "backtrace"], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=dict(os.environ, PROBING_AUTH_TOKEN=remote.TOKEN))
        for _ in range(50)]
    for client in clients:
        out, err = client.communicate(timeout=300)
        assert client.returncode == OK and b"evaluated.py" in out, (out, err)
    assert_serves(service)


def test_no_more_than_64_clients(service):
    clients = [Client(service) for _ in range(64)]
    with Client(service, token=None) as client:
        client.send(remote.hello())
        nonce = client.receive()[1][8:]
        client.send(frame(remote.PROOF,
                          remote.proof(remote.TOKEN, b"client", b"n" * 32, nonce)))
        code, message, _ = client.refusal()
        assert code == FAILED and "64 clients" in message
    for client in clients:
        client.close()
    wait_until(lambda: ended(service))
    assert_serves(service)


def test_a_client_that_does_not_read(process, service):
    """The server's memory is bounded; the command waits, and others do not."""
    with Client(service) as client:
        client.send(remote.command("eval", "for _ in range(3000): print('x' * 100000)"))
        client.receive()
        before = memory(service.server)
        for _ in range(5):
            assert_serves_beside(service)
        assert memory(service.server) - before < 8 << 20
    wait_until(lambda: not support.children(service.server))
    assert_serves(service)


def test_a_command_that_does_not_read(process, service):
    """Input of a client is buffered up to a bound that it knows; a client that sends more is disconnected."""
    endless = b"import time\nprint('runs')\nwhile True: time.sleep(0.01)\n\n"
    chunk = frame(remote.STDIN, b"#" * 60000)
    with Client(service) as client:
        client.send(remote.command("repl", flags=remote.INPUT) + frame(remote.STDIN, endless))
        client.until(b"runs\n")
        client.send(chunk * 3)
        assert_serves_beside(service)
        # It is heard all the same.
        client.send(frame(remote.INTERRUPT))
        texts, end = client.outcome_after(frame(remote.STDIN))
        assert b"KeyboardInterrupt" in texts[remote.STDERR] and end[0] == OK, (texts, end)
    with Client(service) as client:
        client.send(remote.command("repl", flags=remote.INPUT) + frame(remote.STDIN, endless))
        client.until(b"runs\n")
        before = memory(service.server)
        try:
            client.send(chunk * 400)
        except OSError:  # it was cut off
            pass
        kind = payload = None
        while kind != remote.ERROR:
            frame_of = client.receive()
            if not frame_of:
                break
            kind, payload = frame_of
        assert payload is None or kind != remote.ERROR or b"more than is taken" in payload
        assert memory(service.server) - before < 8 << 20
        wait_until(lambda: not support.children(service.server))
    assert_serves(service)


@pytest.mark.parametrize("step", ["connected", "greeted", "let in", "asked", "answered"])
def test_server_is_killed_at_any_step(process, service, step):
    with Client(service, token=None) as client:
        if step in ("greeted", "let in", "asked", "answered"):
            client.send(remote.hello())
            nonce = client.receive()[1][8:]
        if step in ("let in", "asked", "answered"):
            client.send(frame(remote.PROOF,
                              remote.proof(remote.TOKEN, b"client", b"n" * 32, nonce)))
            assert client.receive()[0] == remote.WELCOME
        if step == "asked":
            client.send(remote.command("debug", "--dump", "--native"))
        if step == "answered":
            client.run("debug", "--dump")
        service.kill()
        while client.receive():
            pass
    # The process that served the client may still be busy for a moment.
    wait_until(lambda: pauses.nobody_traced(process.pid))
    assert run(process.pid, "eval", "numbers").stdout == b"[1, 2, 3]\n"


# Servers that are none

class Impostor:
    """Listens, and treats connections as requested."""

    def __init__(self, answer):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        self.received = b""
        self.thread = threading.Thread(target=self.serve, args=(answer,))
        self.thread.start()

    def serve(self, answer):
        connection, _ = self.socket.accept()
        with connection:
            for part in answer:
                self.received += connection.recv(65536)
                connection.sendall(part)
            connection.shutdown(socket.SHUT_WR)
            self.received += wait_for_end(connection)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.thread.join(60)
        self.socket.close()


GREETING = frame(remote.HELLO_REPLY, b"PRBR\1\0\1\0" + b"s" * 32)


@pytest.mark.parametrize("answer, code, says", [
    ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], FAILED, "is not a probing server, or is broken"),
    ([b"SSH-2.0-OpenSSH_9.2p1\r\n"], FAILED, "is not a probing server, or is broken"),
    ([b""], FAILED, "is gone"),
    ([frame(64, b"PRBA" + b"\0" * 40)], FAILED, "is not a probing server"),
    ([frame(64, b"PRBR\2\0\2\0" + b"s" * 32)], UNSUPPORTED, "version 2 of the protocol"),
    ([GREETING, frame(remote.WELCOME, b"x" * 36)], PERMISSION, "does not know the token"),
    ([GREETING, frame(remote.WELCOME, b"")], PERMISSION, "does not know the token"),
    ([GREETING, frame(remote.ERROR, b"\4\0\0\0no\x1b[31m\nhint")], PERMISSION, "no\\x1b[31m"),
    ([GREETING, frame(remote.ERROR, b"\xff\xff\xff\xffno")], FAILED, "no"),
    ([GREETING, frame(remote.ERROR, b"")], FAILED, ""),
], ids=range(10))
def test_impostors(answer, code, says):
    """One clear message, and they get neither the token nor the command."""
    with Impostor(answer) as impostor:
        done = run("-t", impostor.address, "eval", "print('a secret')")
    assert done.returncode == code and says.encode() in done.stderr, done
    assert done.stderr.count(b"probing: ") == 1 and b"\x1b" not in done.stderr
    assert remote.TOKEN.encode() not in impostor.received and b"secret" not in impostor.received


def test_a_server_that_says_nothing():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        done = run("-t", "127.0.0.1:%d" % listener.getsockname()[1], "backtrace")
    assert done.returncode == TIMEOUT and b"does not answer" in done.stderr, done


def test_the_server_dies_in_an_answer(process, service):
    client = subprocess.Popen(
        [support.BINARY, "-t", service.address, "eval", "print('runs')\nwhile True: 1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=dict(os.environ, PROBING_AUTH_TOKEN=remote.TOKEN))
    assert client.stdout.readline() == b"runs\n"
    service.kill(signal.SIGKILL)
    out, err = client.communicate(timeout=60)
    assert client.returncode == FAILED and out == b"", (out, err)
    assert b"the server at %s is gone" % service.address.encode() in err, err
    wait_until(lambda: run(process.pid, "eval", "--timeout", "5", "1").stdout == b"1\n")

# SPDX-License-Identifier: GPL-3.0-or-later
"""zmq.sockets: ZeroMQ's sockets, their connections, and the messages that wait in them."""
import ctypes.util
import json
import os
import subprocess
import sys

import pytest

import support
from environment import wait_until

ZMQ = ctypes.util.find_library("zmq")
pytestmark = pytest.mark.skipif(not ZMQ, reason="libzmq is not installed")

BOTH = """
import ctypes, os, sys, time
zmq = ctypes.CDLL(%r)
zmq.zmq_ctx_new.restype = zmq.zmq_socket.restype = ctypes.c_void_p
PAIR, SUB, REQ, REP, DEALER, PULL, PUSH, HWM = 0, 2, 3, 4, 5, 7, 8, 23

def made(context, kind, **how):
    made = ctypes.c_void_p(zmq.zmq_socket(context, kind))
    limit = ctypes.c_int(how.get("limit", 1000))
    assert not zmq.zmq_setsockopt(made, HWM, ctypes.byref(limit), 4)
    for bound in how.get("bound", []):
        assert not zmq.zmq_bind(made, bound.encode())
    for to in how.get("to", []):
        assert not zmq.zmq_connect(made, to.encode())
    return made

def send(to, count):
    for number in range(count):
        assert zmq.zmq_send(to, b"x", 1, 1) == 1

def receive(of, count):
    for number in range(count):
        assert zmq.zmq_recv(of, ctypes.create_string_buffer(9), 9, 0) == 1

def ready(name):
    open(os.path.join(sys.argv[2], name), "w").close()

context = ctypes.c_void_p(zmq.zmq_ctx_new())
ask, push = ["ipc://%%s/%%s" %% (sys.argv[2], name) for name in ("ask", "push")]
if sys.argv[1] == "server":
    answers, pulls = made(context, REP, bound=[ask]), made(context, PULL, bound=[push])
    receive(answers, 1)
    receive(pulls, 3)
    ready("server")
    time.sleep(100000)
asks, pushes = made(context, REQ, to=[ask]), made(context, PUSH, to=[push])
nowhere = made(context, DEALER, to=["ipc://%%s/nowhere" %% sys.argv[2]], limit=7)
send(nowhere, 7)
left, right = made(context, PAIR, bound=["inproc://inside"]), made(context, PAIR, to=["inproc://inside"])
send(left, 5)
unused = made(context, SUB)
send(pushes, 10)
send(asks, 1)
ready("client")
receive(asks, 1)
""" % ZMQ


@pytest.fixture(name="pair", scope="module", params=support.one_per_version((3, 8))[-1:], ids=repr)
def started(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("zmq")
    words = [request.param.exe, "-c", BOTH]
    with support.Program(words + ["server", str(folder)], env=request.param.env) as server, \
            support.Program(words + ["client", str(folder)], env=request.param.env) as client:
        wait_until(lambda: (folder / "server").exists() and (folder / "client").exists())
        yield server.pid, client.pid


def ask(pid, query):
    return subprocess.run([support.BINARY, "-t", str(pid), "query", "-f", "json", query], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def rows(pid, query):
    return json.loads(ask(pid, query).stdout)


def sockets(pid):
    found = rows(pid, "SELECT * FROM zmq.sockets")
    assert len({row["context"] for row in found}) == 1
    return {row["type"] if row["peer_socket"] is None else (row["type"], row["sent"]): row for row in found}


def part(row, *names):
    return tuple(row[name] for name in names)


def test_sockets_and_their_peers(pair):
    server, client = pair
    theirs, ours = sockets(server), sockets(client)
    assert set(theirs) == {"REP", "PULL"}
    assert set(ours) == {"REQ", "PUSH", "DEALER", "SUB", ("PAIR", 5), ("PAIR", 0)}
    for name in "REQ", "PUSH":
        assert part(ours[name], "connection", "connected", "peer_pid") == (0, 1, server)
        assert ours[name]["endpoint"].startswith("ipc://") and ours[name]["connection_endpoint"] == ours[name]["endpoint"]
        assert os.readlink("/proc/%d/fd/%d" % (client, ours[name]["connection_fd"])).startswith("socket:")
        assert "eventfd" in os.readlink("/proc/%d/fd/%d" % (client, ours[name]["fd"]))
    for name in "REP", "PULL":
        assert part(theirs[name], "connected", "peer_pid") == (1, client)
    assert part(ours["SUB"], "endpoint", "connection", "connected", "waiting_in") == (None, None, None, None)


def test_messages_that_wait(pair):
    server, client = pair
    wait_until(lambda: sockets(client)["PUSH"]["waiting_out"] == 0)
    theirs, ours = sockets(server), sockets(client)
    assert part(theirs["PULL"], "received", "waiting_in", "sent", "full") == (3, 7, 0, 0)
    assert part(theirs["REP"], "received", "sent") == (1, 0)
    assert part(ours["PUSH"], "sent", "received", "waiting_in") == (10, 0, 0)
    assert part(ours[("PAIR", 5)], "waiting_out", "waiting_in", "full") == (5, 0, 0)
    assert part(ours[("PAIR", 0)], "waiting_out", "waiting_in", "received") == (0, 5, 0)
    assert ours[("PAIR", 5)]["peer_socket"] == ours[("PAIR", 0)]["socket"]
    assert ours[("PAIR", 0)]["peer_socket"] == ours[("PAIR", 5)]["socket"]
    assert part(ours["DEALER"], "connected", "waiting_out", "out_hwm", "full") == (0, 7, 7, 1)


def test_a_wait_is_for_the_peers_of_its_socket_alone(pair):
    server, client = pair
    edges = rows(client, "SELECT * FROM wait.edges WHERE tid = %d" % client)
    assert {row["peer_pid"] for row in edges} == {server, client}
    for row in edges:
        assert row["kind"] == "zmq" and " of ZeroMQ REQ ipc://" in row["waits_for"] and not row["all_known"]


@pytest.mark.usefixtures("pair")
def test_no_sockets_are_none():
    done = ask(os.getpid(), "SELECT * FROM zmq.sockets")
    assert json.loads(done.stdout) == [] and b"no socket of ZeroMQ" in done.stderr


ONE = """
import ctypes, sys
zmq = ctypes.CDLL(%r)
zmq.zmq_ctx_new.restype = zmq.zmq_socket.restype = ctypes.c_void_p
socket = ctypes.c_void_p(zmq.zmq_socket(ctypes.c_void_p(zmq.zmq_ctx_new()), %%d))
assert not zmq.%%s(socket, b"tcp://127.0.0.1:%%s")
print(flush=True)
zmq.zmq_recv(socket, ctypes.create_string_buffer(9), 9, 0)
""" % ZMQ


@pytest.mark.parametrize("kind, call, port, code", [(6, "zmq_bind", "*", 0), (5, "zmq_connect", "1", 21)],
                         ids=["server", "client"])
def test_a_server_without_clients_is_idle(kind, call, port, code):
    """A ROUTER that is bound waits for somebody from outside; a DEALER whose server is not there for nobody."""
    with support.Program([sys.executable, "-c", ONE % (kind, call, port)]) as program:
        program.line()
        wait_until(lambda: "of ZeroMQ" in check(program.pid).stdout.decode() and check(program.pid).returncode == code)
        if not code:
            assert b"it waits for something from outside" in check(program.pid).stdout


def check(pid):
    return subprocess.run([support.BINARY, "check", "--still", "0.2s", str(pid)], check=False, stdout=subprocess.PIPE)

# SPDX-License-Identifier: GPL-3.0-or-later
"""wait.edges and wait.roots: who can end the waits of a process, also through processes without Python."""
import json
import os
import signal
import socket
import subprocess

import pytest

import support
from environment import needs, wait_until

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]


def rows(pid, query):
    done = subprocess.run([support.BINARY, "-t", str(pid), "query", "-f", "json", query], check=True,
                          stdout=subprocess.PIPE)
    return json.loads(done.stdout)


@pytest.fixture
def chain():
    """Python waits for a shell, which waits for Python, which waits for us."""
    inner = "import os, sys; print(flush=True); os.read(%d, 1)"
    source = """
import subprocess, sys, threading
lock = threading.RLock()
def take():
    with lock: pass
p = subprocess.Popen(["sh", "-c", sys.argv[1] + "; true"], pass_fds=(int(sys.argv[2]),))
lock.acquire()
threading.Thread(target=take, name="taker", daemon=True).start()
p.wait()
"""
    theirs, ours = socket.socketpair()
    with theirs, ours:
        theirs.set_inheritable(True)
        words = "'%s' -c '%s'" % (NEWEST.exe, inner % theirs.fileno())
        with support.Program([NEWEST.exe, "-c", source, words, theirs.fileno()], env=NEWEST.env, start_new_session=True,
                             pass_fds=(theirs.fileno(),)) as program:
            program.line()
            try:
                yield program
            finally:
                os.killpg(program.pid, signal.SIGKILL)


def child_of(pid):
    child, = support.children(pid)
    return child


def test_edges_and_roots(chain):
    shell = child_of(chain.pid)
    python = child_of(shell)
    taker = {}

    def is_asleep():
        found = {row["name"]: row for row in rows(chain.pid, "SELECT * FROM wait.edges")}
        taker.update(found.get("taker") or {})
        return {"MainThread", "taker"} <= set(found) and found["taker"]["peer_tid"] is not None
    wait_until(is_asleep)
    assert (taker["kind"], taker["peer_pid"], taker["peer_tid"], taker["only"]) == ("lock", chain.pid, chain.pid, 1)
    [main] = rows(chain.pid, "SELECT * FROM wait.edges WHERE name = 'MainThread'")
    assert (main["kind"], main["peer_pid"], main["peer_tid"]) == ("child", shell, None)
    assert (main["endless"], main["all_known"], main["waits_for"]) == (1, 1, "wait4: child %d (sh)" % shell)
    roots = {row["name"]: row for row in rows(chain.pid, "SELECT * FROM wait.roots")}
    assert {"MainThread", "taker"} == set(roots)
    for name, steps in (("MainThread", 3), ("taker", 4)):
        row = roots[name]
        # We are the other end of its socket.
        assert (row["steps"], row["circle"], row["root_pid"]) == (steps, 0, os.getpid()), row
        assert " → %d sh (child) → %d " % (shell, python) in row["chain"], row


def test_why_names_the_root(chain):
    shell = child_of(chain.pid)

    def says_so():
        done = subprocess.run([support.BINARY, "why", "--json", str(chain.pid)], stdout=subprocess.PIPE, check=False)
        [target] = json.loads(done.stdout)["targets"]
        return (target["chain"] or "").startswith("%d " % chain.pid) and " → %d sh (child) → " % shell in target["chain"]
    wait_until(says_so)


def test_other_targets_have_none(tmp_path, chain):
    file = tmp_path / "made.snapshot"
    subprocess.run([support.BINARY, "-t", str(chain.pid), "snapshot", "-o", file], check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([support.BINARY, "-t", file, "query", "-f", "json", "SELECT * FROM wait.roots"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True)
    assert json.loads(done.stdout or "[]") == []
    assert b"a live process of this machine only" in done.stderr


SERVER = """
import os, socket, sys, time
def there():
    if sys.argv[1] == "unix":
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(sys.argv[2])
        listener.listen(1)
        return listener
    return socket.create_server(("10.99.0.1", 7777))
while True:
    try:
        listener = there()
        break
    except OSError:
        time.sleep(0.05)
connection = listener.accept()[0]
if not os.fork():
    listener.close()
    print(os.getpid(), flush=True)
    time.sleep(100000)
connection.close()
listener.close()
time.sleep(100000)
"""
CLIENT = """
import socket, sys, time
def there():
    if sys.argv[1] == "unix":
        client = socket.socket(socket.AF_UNIX)
        client.connect(sys.argv[2])
        return client
    return socket.create_connection(("10.99.0.1", 7777))
while True:
    try:
        client = there()
        break
    except OSError:
        time.sleep(0.05)
client.recv(1)
"""


def in_network_of(pid, *words):
    subprocess.run(["nsenter", "-t", str(pid), "-n", "ip", *words], check=True)


@needs("no network namespaces here", "unshare", "-n", "ip", "link")
@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_peers_in_another_network(kind, tmp_path):
    """A fork of the server has the other end, in another network namespace than the client."""
    words = [kind, str(tmp_path / "socket")]
    begin = ["unshare", "-n", NEWEST.exe, "-c"]
    with support.Program(begin + [SERVER] + words, env=NEWEST.env, start_new_session=True) as server, \
            support.Program(begin + [CLIENT] + words, env=NEWEST.env) as client:
        try:
            ours = os.readlink("/proc/self/ns/net")
            wait_until(lambda: len({os.readlink("/proc/%d/ns/net" % pid) for pid in (server.pid, client.pid)} - {ours}) == 2)
            in_network_of(server.pid, "link", "add", "name", "one0", "type", "veth", "peer", "name", "two0", "netns", str(client.pid))
            for pid, name, address in (server.pid, "one0", "10.99.0.1/24"), (client.pid, "two0", "10.99.0.2/24"):
                in_network_of(pid, "addr", "add", address, "dev", name)
                in_network_of(pid, "link", "set", name, "up")
            peer = int(server.line())

            def peers():
                return {row["peer_pid"] for row in rows(client.pid, "SELECT * FROM wait.edges")}
            wait_until(lambda: peers() == {client.pid, peer})
        finally:
            os.killpg(server.pid, signal.SIGKILL)


def test_each_process_has_its_own_kind():
    """Of a wait for several objects: a pipe of its own, and a socket of somebody else."""
    source = "import os, select, socket, sys\ntheirs = socket.socket(fileno=int(sys.argv[1]))\nmine = os.pipe()\n" \
        "print(flush=True)\nselect.select([mine[0], theirs], [], [])"
    listening = socket.create_server(("127.0.0.1", 0))
    with listening, socket.create_connection(listening.getsockname()) as ours, listening.accept()[0] as theirs:
        with support.Program([NEWEST.exe, "-c", source, theirs.fileno()], env=NEWEST.env, pass_fds=(theirs.fileno(),)) as program:
            program.line()
            theirs.close()
            wait_until(lambda: rows(program.pid, "SELECT * FROM wait.edges"))
            found = {row["peer_pid"]: row["kind"] for row in rows(program.pid, "SELECT * FROM wait.edges")}
            ours.send(b"x")
    assert found == {program.pid: "pipe", os.getpid(): "socket"}

# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing why` of several processes: those that wait for each other are found, and no others."""
import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time

import pytest

import support
from environment import wait_until
from test_why import NEWEST, findings, until_found

PIPES = """
import multiprocessing as mp, os, signal, socket, subprocess, sys, threading, time
def child(words, *pass_fds, **options):
    return subprocess.Popen([sys.executable, "-c", "import os, sys, threading, time\\n" + words, *map(str, pass_fds)],
                            pass_fds=pass_fds, **options)
ready = lambda: print(flush=True)
"""
FULL = "os.write(1, b'x' * 1000000)"
BETWEEN_PROCESSES = {
    "child with a full pipe": (2, """
p = child(%r, stdout=subprocess.PIPE)
ready(); p.wait()""" % FULL),
    "both read": (2, """
a, b = mp.Pipe()
p = mp.get_context("fork").Process(target=b.recv)
p.start(); ready(); a.recv()"""),
    "queue of a child that is joined": (2, """
q = mp.get_context("fork").Queue()
p = mp.get_context("fork").Process(target=q.put, args=(b"x" * 10000000,))
p.start(); ready(); p.join()"""),
    "inherited end": (2, """
r, w = os.pipe()
p = child("os.read(int(sys.argv[1]), 1)", r, w)
ready(); p.wait()"""),
    "three in a circle": (3, """
pipes = [os.pipe() for _ in range(3)]
for n in (0, 1):
    if not os.fork():
        for k, (r, w) in enumerate(pipes):
            os.close(w) if k != n else os.close(r) if k != (n + 1) % 3 else None
        os.read(pipes[(n + 1) % 3][0], 1)
        os._exit(0)
for k, (r, w) in enumerate(pipes):
    os.close(w) if k != 2 else None
ready(); os.read(pipes[0][0], 1)"""),
    "TCP": (2, """
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
a = socket.create_connection(s.getsockname()); b = s.accept()[0]; s.close()
if not os.fork():
    a.close(); b.recv(1); os._exit(0)
b.close(); ready(); a.recv(1)"""),
    "file lock and child": (2, """
import fcntl
file = open(os.environ["LOCKED"], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
p = child("import fcntl; fcntl.lockf(open(os.environ['LOCKED'], 'w'), fcntl.LOCK_EX)")
ready(); p.wait()"""),
    "itself": (1, """
r, w = os.pipe()
ready(); os.read(r, 1)"""),
    "itself by a socket": (1, """
a, b = mp.Pipe()
p = mp.get_context("fork").Process(target=b.send, args=(1,))
p.start(); a.recv(); p.join()
ready(); a.recv()"""),
}


# In a container there may be processes that cannot be seen from here, and nothing is proven.
SEES_ALL = os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"


@contextlib.contextmanager
def family(source, **variables):
    """A program whose children end with it."""
    with support.Program([NEWEST.exe, "-c", PIPES + source], start_new_session=True,
                         env={**NEWEST.env, **variables}) as program:
        try:
            program.line()
            yield program
        finally:
            os.killpg(program.pid, signal.SIGKILL)


HEALTHY_PROCESSES = {
    "idle pool": "p = mp.get_context('fork').Pool(2)\nready(); sys.stdin.read()",
    "child that computes": "p = child('while True: pass')\nready(); p.wait()",
    "child that sleeps": "p = child('time.sleep(1000)')\nready(); p.wait()",
    "child that reads our input": "p = child('sys.stdin.read()')\nready(); p.wait()",
    "one thread is free": """
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
p = child(%r, stdout=subprocess.PIPE)
ready(); p.wait()""" % FULL,
    "its child has a free thread": """
p = child("threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\\n" + %r, stdout=subprocess.PIPE)
ready(); p.wait()""" % FULL,
    "a limit of time": """
a, b = mp.Pipe()
p = mp.get_context("fork").Process(target=b.recv)
p.start(); ready(); a.poll(1000)""",
    "a limit of the socket": """
import struct
a, b = socket.socketpair()
if not os.fork():
    a.close(); b.recv(1); os._exit(0)
b.close()
a.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 1000, 0))
ready(); os.read(a.fileno(), 1)""",
    "a handler writes": """
r, w = os.pipe()
signal.signal(signal.SIGTERM, lambda *_: os.write(w, b"."))
ready(); os.read(r, 1)""",
    "a handler writes to a socket": """
a, b = socket.socketpair(); b.setblocking(False)
signal.set_wakeup_fd(b.fileno())
signal.signal(signal.SIGTERM, lambda *_: None)
ready(); a.recv(1)""",
    "another thread writes to a socket": """
a, b = socket.socketpair()
threading.Thread(target=lambda: (time.sleep(1000), b.send(b".")), daemon=True).start()
ready(); a.recv(1)""",
    "an idle loop": """
import asyncio
loop = asyncio.new_event_loop()
ready(); loop.run_forever()""",
    "a third process has the end": """
r, w = os.pipe()
if not os.fork():
    os.close(r); time.sleep(1000); os._exit(0)
p = child("os.read(int(sys.argv[1]), 1)", r, w)
ready(); p.wait()""",
    "server and client": """
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen()
def serve(connection):
    connection.recv(1)
if not os.fork():
    a = socket.create_connection(s.getsockname()); s.close(); a.recv(1); os._exit(0)
threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
ready(); s.accept()""",
}


@pytest.fixture(scope="module")
def families(tmp_path_factory):
    """All of them at once: a rule says nothing before they have waited for some seconds."""
    locked = str(tmp_path_factory.mktemp("families") / "locked")
    with contextlib.ExitStack() as stack:
        yield {kind: stack.enter_context(family(source, LOCKED=locked))
               for kind, source in (*((kind, source) for kind, (_, source) in BETWEEN_PROCESSES.items()),
                                    *HEALTHY_PROCESSES.items())}


@pytest.mark.parametrize("kind", BETWEEN_PROCESSES)
def test_processes_that_wait_for_each_other(kind, families):
    program, found = families[kind], {}
    count = BETWEEN_PROCESSES[kind][0]

    def is_sure():
        found.update(until_found(program.pid, "processes"))
        # The kernel forgets how long a thread has slept when it is moved to another group.
        known = SEES_ALL and not any(", idle in " in line["text"] for line in found["evidence"])
        return found["confidence"] == "high" or (not known and found["confidence"] == "medium")

    def all_agree():
        """The other ones say the same; where one of their threads joins another, with that step."""
        everybody = {program.pid, *found["pids"]}
        return all([(each["rule"], each["proof"], {pid, *each["pids"]}) for each in findings(pid)] ==
                   [("processes", found["proof"], everybody)] for pid in found["pids"])
    # A child that began to wait later makes its parent's first finding a weaker one.
    wait_until(lambda: is_sure() and all_agree())
    assert found["kind"] == "deadlock" and found["proof"] == (found["confidence"] == "high"), found
    assert len(found["evidence"]) == count and len(found["pids"]) == count - 1, found
    assert str(program.pid) in found["sentence"]


@pytest.mark.parametrize("kind", HEALTHY_PROCESSES)
def test_processes_that_do_not_wait_for_each_other(kind, families):
    program = families[kind]

    def idle_long():
        main = support.dump(program.pid)["threads"][0]
        return main["state"] != "running" and (main["idle_seconds"] is None or main["idle_seconds"] > 6)
    wait_until(idle_long)
    assert findings(program.pid) == []


def test_processes_that_talk_are_never_stuck():
    """Each waits for the other most of the time."""
    source = """
a, b = mp.Pipe()
def answer():
    while True:
        b.send(b.recv())
mp.get_context("fork").Process(target=answer, daemon=True).start()
ready()
while True:
    a.send(b"x"); a.recv()
"""
    with family(source) as program:
        for _ in range(support.count(40, 2000)):
            # Another test's command may stop it for the moment in which it reads all processes.
            assert [each for each in findings(program.pid) if each["rule"] != "stopped"] == []


def test_a_lock_of_a_manager_whose_client_has_ended():
    """The thread that took it for the client has ended, and nobody else knows of it."""
    source = """
manager = mp.get_context("fork").Manager()
lock = manager.Lock()
def take():
    lock.acquire(); os._exit(0)
client = mp.get_context("fork").Process(target=take)
client.start(); client.join()
print(manager._process.pid, flush=True)
lock.acquire()
"""
    with support.Program([NEWEST.exe, "-W", "ignore", "-c", PIPES + source], env=NEWEST.env) as program:
        manager = int(program.line())
        found = []
        wait_until(lambda: found.extend(findings(manager)) or [each["kind"] for each in found] == ["unknown"] or found.clear())
        [found] = found
    assert "for a lock" in found["evidence"][0]["text"] and "Server.serve_client" in found["evidence"][0]["text"], found


def test_a_standby(tmp_path, monkeypatch):
    """It waits for a file lock until it may take over: the lock and its holder are named, and that is no alarm."""
    monkeypatch.setenv("PROBING_LIMITS", "long=0.3")
    source = tmp_path / "standby.py"
    source.write_text("import fcntl, sys\nf = open(sys.argv[1], 'w')\nprint(flush=True)\nfcntl.flock(f, fcntl.LOCK_EX)\n")
    name = tmp_path / "leader"
    with open(name, "w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with subprocess.Popen([sys.executable, str(source), str(name)], stdout=subprocess.PIPE) as process:
            try:
                process.stdout.readline()
                end = time.monotonic() + 60
                found = []
                while not found and time.monotonic() < end:
                    done = subprocess.run([support.BINARY, "why", str(process.pid)], stdout=subprocess.PIPE, timeout=60, check=False)
                    found = [line for line in done.stdout.decode().splitlines() if line.startswith("locks: ")]
                assert "/leader held by %d (" % os.getpid() in found[0]
                assert "confidence  low" in done.stdout.decode() and "standby" in done.stdout.decode()
                done = subprocess.run([support.BINARY, "check", "--still", "0.3s", str(process.pid)], timeout=60, check=False)
                assert done.returncode == 0
            finally:
                process.kill()

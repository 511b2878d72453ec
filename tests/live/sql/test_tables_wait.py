# SPDX-License-Identifier: GPL-3.0-or-later
"""wait.edges and wait.roots: who can end the waits of a process, also through processes without Python."""
import json
import os
import signal
import socket
import subprocess

import pytest

import support
from environment import wait_until

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
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
        return int(file.read())


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

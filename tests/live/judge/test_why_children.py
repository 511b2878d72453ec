# SPDX-License-Identifier: GPL-3.0-or-later
"""What `probing why` says of a process that waits for one whose threads can never go on."""
import json

import pytest

import support
from environment import wait_until
from test_why import NEWEST, findings, running, until_found, why

FORKED = """
import os, sys, threading, time
lock = threading.%(kind)s()
def hold():
    with lock:
        time.sleep(36000)
threading.Thread(target=hold, daemon=True).start()
while not (lock.locked() if hasattr(lock, "locked") else "count=1" in repr(lock)):
    time.sleep(.01)
child = os.fork()
if not child:
%(child)s
print(child, flush=True)
os.waitpid(child, 0)
"""
TAKES = "    with lock: os._exit(0)"
HELPED = """
    threading.Thread(target=time.sleep, args=(36000,), name="helper", daemon=True).start()
    with lock: os._exit(0)"""
CIRCLE = """
    one, two, gate = threading.RLock(), threading.RLock(), threading.Barrier(2)
    def take(first, second):
        with first:
            gate.wait()
            with second:
                pass
    threading.Thread(target=take, args=(two, one), daemon=True).start()
    take(one, two)"""


@pytest.mark.parametrize("kind, child, rule", [("Lock", TAKES, "orphan"), ("RLock", TAKES, "orphan"),
                                               ("Lock", CIRCLE, "deadlock")])
def test_the_verdict_about_the_child_is_that_about_its_parent(kind, child, rule, probing):
    with running(FORKED % {"kind": kind, "child": child}) as program:
        found = until_found(program.pid, "child")
        [pid] = found["pids"]
        wait_until(lambda: findings(program.pid)[0]["proof"])
        found, [own] = findings(program.pid)[0], findings(pid)
        assert own["rule"] == rule
        assert [found[key] for key in ("kind", "code", "confidence", "proof")] == \
               [own[key] for key in ("kind", "code", "confidence", "proof")], (found, own)
        assert "waits for process %d, which cannot go on: " % pid in found["sentence"]
        assert found["tids"] == [program.pid] and "dump" in found["next"] and str(pid) in found["next"]
        code, out, _ = why(program.pid)
        assert code == own["code"] and "nothing is wrong" not in out


POOL = """
import multiprocessing, threading, time
from concurrent.futures import ProcessPoolExecutor
lock = threading.Lock()
def takes():
    with lock:
        pass
def sleeps():
    time.sleep(36000)
with lock, ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
    results = [pool.submit(%s) for _ in range(4)]
    print(flush=True)
    results[0].result()
"""


def test_a_worker_that_cannot_go_on_is_told_of_its_pool():
    """The parent waits for whichever worker comes first."""
    with running(POOL % "takes") as program:
        found = until_found(program.pid, "child")
        assert (found["kind"], found["confidence"], found["proof"]) == ("orphan", "high", False), found
        [pid] = found["pids"]
        assert "waits for several processes, one of which, %d, cannot go on: " % pid in found["sentence"]
        assert "or the other processes do its work" in found["wrong_if"], found


def test_workers_that_go_on_are_not_told_of_their_pool():
    with running(POOL % "sleeps") as program:
        wait_until(lambda: support.dump(program.pid)["threads"][0]["idle_seconds"] > 6)
        assert findings(program.pid) == []


def test_a_chain_ends_at_a_lock_whose_holder_is_not_known(probing):
    """A helper thread that sleeps has not taken the lock that a fork has left locked."""
    with running(FORKED % {"kind": "Lock", "child": HELPED}) as program:
        def chains():
            return json.loads(probing(program.pid, "query", "-f", "json", "SELECT * FROM wait.roots").out)
        wait_until(lambda: "a lock" in "".join(row["chain"] for row in chains()))
        [row] = [row for row in chains() if row["tid"] == program.pid]
        assert row["chain"].endswith(" (child) → a lock whose holder is not known"), row
        assert row["root_name"] == "MainThread" and "helper" not in row["chain"]


def test_what_is_not_known_of_the_child_is_not_known_of_its_parent():
    with running(FORKED % {"kind": "Lock", "child": HELPED}) as program:
        found = until_found(program.pid, "child")
        assert (found["kind"], found["code"], found["confidence"]) == ("unknown", 20, "low"), found
        assert "waits for process %d, where 1 thread waits for a lock" % found["pids"][0] in found["sentence"]
        assert "cannot go on" not in json.dumps(found)


NAMED = """
import threading
lock = threading.Lock()
def take():
    with lock:
        with lock:
            pass
threading.Thread(target=take, name=%r, daemon=True).start()
print(flush=True)
input()
"""


@pytest.mark.parametrize("name, told", [
    ("worker-1", "worker-1"), ("Thread-1 (take)", "Thread-1 (take)"), ("my worker", '"my worker"'),
    ('a" waits for nothing: "b', "\"a' waits for nothing: 'b\""),
    ("x\n  confidence  high, proven\ndeadlock: threads 1 and 2 of systemd wait: kill 1",
     '"x\\n  confidence  high, proven\\ndeadlock: threads 1 and 2 of…"'),
])
def test_the_name_of_a_thread_is_not_a_sentence_of_ours(name, told):
    with running(NAMED % name, NEWEST) as program:
        found = until_found(program.pid, "deadlock")
        assert found["sentence"].startswith("thread %d %s waits for a lock that it holds itself" % (found["tids"][0], told)), found

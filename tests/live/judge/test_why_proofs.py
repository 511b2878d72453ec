# SPDX-License-Identifier: GPL-3.0-or-later
"""What `probing why` calls proven or high: not what a handler of a signal or a limit of time may end."""
import json
import subprocess

import pytest

import support
from environment import wait_until
from test_why import EACH, NEWEST, running, until_found, why

MAIN_AND_THREAD = """
import signal, threading
one, two, gate = threading.RLock(), threading.RLock(), threading.Barrier(2)
def take(first, second):
    with first:
        gate.wait()
        with second:
            pass
%s
threading.Thread(target=take, args=(two, one), daemon=True).start()
print(flush=True)
take(one, two)
"""
HANDLER = "signal.signal(signal.SIGALRM, lambda *_: 1 / 0)"
ITSELF = """
import signal, threading
lock = threading.Lock()
%s
print(flush=True)
with lock:
    with lock:
        pass
"""
ENDED = """
import signal, threading
lock = threading.RLock()
thread = threading.Thread(target=lock.acquire)
thread.start()
thread.join()
%s
print(flush=True)
lock.acquire()
"""
REUSED = """
import os, threading, time
lock = threading.RLock()
ids = []
def leak():
    lock.acquire()
    ids.append(threading.get_ident())
thread = threading.Thread(target=leak)
thread.start()
thread.join()
while len(os.listdir("/proc/self/task")) > 1:
    time.sleep(0.01)
innocent = threading.Thread(target=time.sleep, args=(1000,), name="innocent", daemon=True)
innocent.start()
assert [innocent.ident] == ids
print(flush=True)
lock.acquire()
"""
BY_ACQUIRE = """
import threading
one, two, gate = threading.RLock(), threading.RLock(), threading.Barrier(2)
def take(first, second):
    first.acquire()
    gate.wait()
    second.acquire()
threading.Thread(target=take, args=(two, one), daemon=True).start()
print(flush=True)
take(one, two)
"""
LIMITED = """
import threading
one, two, gate = threading.Lock(), threading.Lock(), threading.Barrier(2)
def take(first, second, **limit):
    with first:
        gate.wait()
        second.acquire(**limit)
threading.Thread(target=take, args=(two, one), daemon=True).start()
print(flush=True)
take(one, two, timeout=1000)
"""


@EACH
@pytest.mark.parametrize("source, rule", [(MAIN_AND_THREAD, "deadlock"), (ENDED, "orphan")], ids=["circle", "ended"])
def test_a_handler_may_end_the_wait_of_the_main_thread(interpreter, source, rule):
    with running(source % "", interpreter) as program:
        found = until_found(program.pid, rule)
        assert found["proof"] and "handlers" not in found["wrong_if"]
    with running(source % HANDLER, interpreter) as program:
        found = until_found(program.pid, rule)
        assert not found["proof"] and found["wrong_if"].endswith("handlers of signals: one may end its wait")
        assert found["confidence"] == "medium", found


@EACH
def test_a_later_thread_with_the_id_of_the_holder_is_not_blamed(interpreter):
    with running(REUSED, interpreter) as program:
        found = until_found(program.pid, "unknown")
        [line] = found["evidence"]
        assert "MainThread" in line["text"] and "holder unknown; possible: " in line["text"], line
        assert line["text"].endswith(" innocent, or a thread that has ended and had the same id"), line
        roots = subprocess.run([support.BINARY, "query", "-t", str(program.pid), "-f", "csv",
                                "SELECT count(*) FROM wait.roots WHERE root_name = 'innocent'"],
                               stdout=subprocess.PIPE, check=True)
        assert roots.stdout.decode().split()[-1] == "0"


@EACH
def test_a_holder_that_can_be_nobody_else_is_named(interpreter):
    with running(BY_ACQUIRE, interpreter) as program:
        assert "held by" in until_found(program.pid, "deadlock")["evidence"][0]["text"]


def test_a_handler_may_release_a_plain_lock():
    with running(ITSELF % HANDLER) as program:
        assert "handlers of signals" in until_found(program.pid, "deadlock")["wrong_if"]


@EACH
def test_a_circle_that_a_limit_ends_is_not_of_high_confidence(interpreter):
    with running(LIMITED, interpreter) as program:
        found = until_found(program.pid, "deadlock")
        assert (found["confidence"], found["proof"]) == ("medium", False)
        assert "a wait has a limit of time, and ends by itself" in found["sentence"]


def test_a_target_that_has_ended_does_not_keep_the_others_from_being_judged():
    gone = subprocess.Popen(["/bin/true"])
    gone.wait()
    zombie = subprocess.Popen(["/bin/true"], stdout=subprocess.PIPE)
    zombie.stdout.read()
    with running("print(flush=True)\ninput()", NEWEST) as program:
        for words in ((program.pid, gone.pid), (gone.pid, program.pid), (gone.pid, zombie.pid, program.pid)):
            code, out, err = why(*words)
            assert (code, str(gone.pid) in err) == (0, True), (code, out, err)
            assert "nothing is wrong" in out
        code, out, err = why(gone.pid, gone.pid)
        assert code == 6 and out == "", (code, out, err)
    zombie.wait()


JOINED = """
import threading
lock = threading.RLock()
def take():
    with lock:
        pass
with lock:
    thread = threading.Thread(target=take, name="taker")
    thread.start()
    print(flush=True)
    thread.join(%s)
"""


@EACH
@pytest.mark.parametrize("limit", ("", "1000"))
def test_a_lock_and_the_end_of_a_thread(interpreter, limit, probing):
    """The joined thread is known by what threading.Thread notes, also for the table of edges."""
    with running(JOINED % limit, interpreter) as program:
        found = until_found(program.pid, "deadlock")
        assert found["proof"] is (not limit) and found["confidence"] == ("medium" if limit else "high"), found
        edges = {row["kind"]: row for row in json.loads(probing(program.pid, "query", "-f", "json", "SELECT * FROM wait.edges").out)}
        joins, waits = edges["thread"], edges["lock"]
        assert (joins["tid"], joins["peer_tid"], joins["only"]) == (program.pid, waits["tid"], 1), edges
        assert waits["peer_tid"] == program.pid and "Thread.join for thread %d taker" % waits["tid"] in joins["waits_for"], edges


IMPORTS = """
import threading
def work():
    import job
thread = threading.Thread(target=work, daemon=True)
thread.start()
print(flush=True)
%s
"""


def importing(folder, interpreter, then):
    (folder / "job.py").write_text(IMPORTS % then)
    return running("import sys; sys.path.insert(0, %r); import job" % str(folder), interpreter)


@EACH
def test_the_owner_of_an_import_lock_is_named(interpreter, tmp_path):
    with importing(tmp_path, interpreter, "thread.join()") as program:
        found = until_found(program.pid, "deadlock")
        assert found["proof"] and found["confidence"] == "high", found
        assert [each["text"].split(": ", 1)[1] for each in found["evidence"]][1] == \
            "waiting for the import lock of job held by %d MainThread" % program.pid, found


def test_a_module_that_is_being_imported_is_no_deadlock(tmp_path):
    with importing(tmp_path, NEWEST, "import time; time.sleep(1000)") as program:
        wait_until(lambda: "import lock of job held by" in json.dumps(support.dump(program.pid)["threads"]))
        assert json.loads(why("--json", str(program.pid))[1])["targets"][0]["findings"] == []


PUTS = """
import queue, signal
queued = queue.Queue()
queued.put(0)
signal.signal(signal.SIGUSR1, lambda *_: queued.put(1))
queued._get = lambda: signal.raise_signal(signal.SIGUSR1)
print(flush=True)
queued.get()
"""


def test_a_handler_puts_into_the_queue_that_its_thread_gets_from():
    """The call waits for the queue's lock, and not for room."""
    with running(PUTS) as program:
        found = until_found(program.pid, "deadlock")
    assert " waits for a lock that it holds itself, in `Condition.__enter__` " in found["sentence"], found
    assert "waiting for a Lock held by %d MainThread, in Queue.get queue.py:" % program.pid in found["evidence"][0]["text"], found
    assert not found["proof"]

# SPDX-License-Identifier: GPL-3.0-or-later
"""python.greenlets and python.greenlet_frames compared with greenlet's own data."""

import json
import os
import shutil
import subprocess

import pytest

import packages
import support
import tables

SOME = [each for each in support.INTERPRETERS
        if os.path.isdir(packages.FOLDER / ("greenlets-%s" % each)) and each.version >= (3, 7)]
WITH_GREENLETS = pytest.mark.parametrize(
    "interpreter", SOME or [pytest.param(None, id="none")], ids=repr)
STACKS = """
import json, sys, time
from greenlet import greenlet, getcurrent

class Sub(greenlet):
    pass

def leaf(n): getcurrent().parent.switch(n)
def ends(): pass
def deep(n): return deep(n - 1) if n else leaf(n)
def gives(n):
    yield leaf(n)
def looped(n): return [x for x in gives(n)]
class Method:
    def call(self, n): return sorted([1, 2], key=lambda x: deep(n))

made = []
for n in range(12):
    for function in (leaf, deep, looped, Method().call):
        made.append((Sub if n % 2 else greenlet)(function))
        made[-1].switch(n)
dead = greenlet(ends)
dead.switch()
fresh = greenlet(ends)

def frames(g):
    frame, found = g.gr_frame, []
    while frame:
        found.append((frame.f_code.co_name, frame.f_lineno))
        frame = frame.f_back
    return found

def inside():
    told = {id(g): frames(g) for g in made}
    print(json.dumps({"suspended": told, "main": id(main), "main_frames": frames(main),
                      "other": [id(dead), id(fresh), id(getcurrent())]}), flush=True)
    sys.stdin.read()
main = getcurrent()
greenlet(inside).switch()
"""
CHURN = """
import sys, threading
from greenlet import greenlet, getcurrent
def a(n): return a(n - 1) if n else getcurrent().parent.switch()
def b(n): return b(n - 1) if n else getcurrent().parent.switch()
def work():
    while True:
        pair = [greenlet(a), greenlet(b)]
        for g in pair: g.switch(5)
        for g in pair: g.switch()
threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""
GEVENT = """
import sys
import gevent, gevent.event, gevent.lock, gevent.queue, gevent.socket
event, result = gevent.event.Event(), gevent.event.AsyncResult()
semaphore, queue = gevent.lock.Semaphore(0), gevent.queue.Queue()
a, b = gevent.socket.socketpair()
def on_event(): event.wait()
def on_result(): result.get()
def on_semaphore(): semaphore.acquire()
def on_queue(): queue.get()
def on_socket(): a.recv(1)
def sleeps(): gevent.sleep(1000)
def joins(): first.join()
first = gevent.spawn(on_event)
all = [gevent.spawn(f) for f in (on_result, on_semaphore, on_queue, on_socket, sleeps, joins)]
gevent.sleep(0.01)
print(id(event), id(result), id(semaphore), id(queue), id(first), flush=True)
gevent.sleep(1000)
"""


def need(interpreter):
    if interpreter is None:
        pytest.skip("no greenlet here: 'make test-packages' gets it")
    return dict(interpreter.env,
                PYTHONPATH=str(packages.FOLDER / ("greenlets-%s" % interpreter)))


def by_greenlet(target):
    stacks = {}
    for row in tables.query(target, "SELECT * FROM python.greenlet_frames ORDER BY greenlet, depth"):
        stacks.setdefault(row["greenlet"], []).append((row["func"], row["lineno"]))
    return stacks


def check(target, told):
    rows = {row["greenlet"]: row for row in tables.query(target, "SELECT * FROM python.greenlets")}
    assert not [row for row in rows.values() if row["_error"]], rows
    stacks = by_greenlet(target)
    for address, frames in told["suspended"].items():
        expected = [tuple(frame) for frame in frames]
        assert stacks[int(address)] == expected
        row = rows[int(address)]
        assert row["state"] == "suspended" and row["depth"] == len(expected)
        assert (row["func"], row["lineno"]) == expected[0]
        assert row["type"] in ("greenlet.greenlet", "__main__.Sub"), row
    assert stacks[told["main"]] == [tuple(frame) for frame in told["main_frames"]]
    for address in told["other"]:
        if address in rows:  # greenlets without a reference to anything are no garbage collector's
            assert rows[address]["state"] == "other" and address not in stacks


@WITH_GREENLETS
def test_stacks_are_what_greenlet_says(interpreter, tmp_path):
    env = need(interpreter)
    (tmp_path / "stacks.py").write_text(STACKS)
    with support.Program([interpreter.exe, tmp_path / "stacks.py"], env=env) as program:
        told = json.loads(program.line())
        support.wait_for_all_asleep(program.pid, 1)
        check(program.pid, told)
        core = tmp_path / "core"
        subprocess.run(["gcore", "-o", core, str(program.pid)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        check("%s.%d" % (core, program.pid), told)
        saved, without = tmp_path / "saved.snap", tmp_path / "without.snap"
        for path, more in ((saved, ["--heap"]), (without, [])):
            subprocess.run([support.BINARY, "-p", str(program.pid), "snapshot", *more, "-o", path],
                           check=True, stdout=subprocess.DEVNULL)
        check(saved, told)
        done = subprocess.run([support.BINARY, "-t", without, "query", "SELECT * FROM python.greenlets"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert b"python.greenlets: the snapshot does not contain all objects" in done.stderr, done
        one = tables.query(program.pid, "SELECT func FROM python.greenlet_frames(%s)"
                           % list(told["suspended"])[0])
        assert [row["func"] for row in one] == ["leaf"]


@WITH_GREENLETS
def test_stacks_that_change_are_never_mixed(interpreter, tmp_path):
    env = need(interpreter)
    (tmp_path / "churn.py").write_text(CHURN)
    with support.Program([interpreter.exe, tmp_path / "churn.py"], env=env) as program:
        program.line()
        for _ in range(support.count(4, 200)):
            for frames in by_greenlet(program.pid).values():
                names = {name for name, _ in frames} - {"work", "run", "_bootstrap", "<module>",
                                                        "_bootstrap_inner"}
                assert names in ({"a"}, {"b"}, set()), frames


@WITH_GREENLETS
def test_what_gevent_waits_for(interpreter, tmp_path):
    env = need(interpreter)
    if subprocess.run([interpreter.exe, "-c", "import gevent"], env=env,
                      stderr=subprocess.DEVNULL).returncode:
        pytest.skip("no gevent here: 'make test-packages' gets it")
    (tmp_path / "waits.py").write_text(GEVENT)
    with support.Program([interpreter.exe, tmp_path / "waits.py"], env=env) as program:
        event, result, semaphore, queue, first = map(int, program.line().split())
        waits = {}
        while "joins" not in waits:
            waits = {(row["chain"] or "").split(" → ")[0]: row["waits_for"] for row in tables.query(
                program.pid, "SELECT chain, waits_for FROM python.greenlets")}
        for name, address in (("on_event", event), ("on_result", result), ("joins", first),
                              ("on_semaphore", semaphore), ("on_queue", queue)):
            assert waits[name].endswith(" at %#x" % address), (name, waits)
        assert waits["on_socket"].endswith(".recv") and waits["sleeps"] == "gevent.hub.sleep"


def test_without_greenlets(probing, newest):
    with support.Program([newest.exe, "-c", "import sys; print(1, flush=True); sys.stdin.read()"],
                         env=newest.env) as program:
        program.line()
        for table in ("python.greenlets", "python.greenlet_frames"):
            result = probing(program.pid, "query", "SELECT * FROM " + table)
            assert result.code == 0 and "this process has no greenlets" in result.err, result


def test_types_are_looked_at_once(tmp_path):
    """Not once for each of the objects, of which a program has hundred thousands."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    # What is of no known kind has all its bases looked at.
    made = "class A: pass\nclass B(A): pass\nmade = [B() for _ in range(20000)]\nprint(flush=True)\ninput()"
    with support.Program(["/usr/bin/python3", "-c", made]) as program:
        program.line()
        log = tmp_path / "log"
        done = subprocess.run(["strace", "-f", "-e", "trace=process_vm_readv", "-o", log, support.BINARY, str(program.pid), "query",
                               "-f", "csv", "SELECT count(*) FROM python.greenlets"], stdout=subprocess.PIPE, text=True, check=True)
        assert done.stdout.split() == ["count(*)", "0"]
        assert log.read_text().count("process_vm_readv(") < 15000

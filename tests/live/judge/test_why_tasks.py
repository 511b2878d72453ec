# SPDX-License-Identifier: GPL-3.0-or-later
"""The rule `tasks` of `probing why`: locks of asyncio, gevent, eventlet and trio, beside loops that go on; and healthy twins."""
import contextlib
import json
import re

import pytest

import packages
import support
from environment import wait_until
from test_why import why

DEADLOCK, LOCKS, UNKNOWN, STILL = 10, 13, 20, 21
EACH = support.one_per_version((3, 8))
ASYNCIO = """
import asyncio
class Never:
    async def __aenter__(self):
        await asyncio.Event().wait()
    async def __aexit__(self, *_):
        pass
async def both(first, second):
    async with first:
        await asyncio.sleep(0.01)
        async with second:
            pass
async def inside(lock):
    async with lock:
        await asyncio.create_task(wants(lock))
async def wants(lock):
    async with lock:
        pass
async def turns(lock):
    while True:
        async with lock:
            await asyncio.sleep(0.001)
async def limited(first, second):
    async with first:
        await asyncio.sleep(0.01)
        async with asyncio.timeout(1000), second:
            pass
async def main():
    a, b, s = asyncio.Lock(), asyncio.Lock(), asyncio.Semaphore(1)
    tasks = [asyncio.ensure_future(each) for each in (%s)]
    print(flush=True)
    while True:
        await asyncio.sleep(%s)
asyncio.run(main())
"""
GREENLETS = {
    "gevent": """
from gevent import monkey
monkey.patch_all()
from gevent import Timeout, sleep, spawn
from gevent.event import Event
from gevent.lock import BoundedSemaphore
""",
    "eventlet": """
import eventlet
eventlet.monkey_patch()
from eventlet import Timeout, sleep, spawn
from eventlet.event import Event
""",
}
BOTH = """
import threading
def limited(first, second):
    with first:
        sleep(0.01)
        with Timeout(1000):
            with second:
                pass
def both(first, second):
    with first:
        sleep(0.01)
        with second:
            pass
def turns(lock):
    while True:
        with lock:
            sleep(0.001)
a, b = threading.Lock(), threading.Lock()
%s
print(flush=True)
while True:
    sleep(%s)
"""


def findings(pid, rule="tasks"):
    code, out, _ = why("--json", str(pid))
    [target] = json.loads(out)["targets"]
    return code, [each for each in target["findings"] if each["rule"] == rule]


def found(pid, words=""):
    """The finding with these words, once both tasks wait."""
    last = []

    def there():
        last[:] = findings(pid)
        return last[1] and words in last[1][0]["sentence"]
    wait_until(there)
    code, [finding] = last
    return code, finding


def asyncio_program(interpreter, tasks, pause=0.02):
    return support.Program([interpreter.exe, "-c", ASYNCIO % (tasks + ",", pause)], env=interpreter.env)


@pytest.mark.parametrize("interpreter", EACH, ids=repr)
def test_tasks_that_wait_for_each_other(interpreter):
    with asyncio_program(interpreter, "both(a, b), both(b, a), wants(a)") as program:
        program.line()
        code, finding = found(program.pid)
    assert code == DEADLOCK and finding["confidence"] == "medium" and not finding["proof"]
    assert finding["sentence"].startswith("2 tasks wait for each other: task ")
    assert finding["sentence"].count(" in `both` <string>:11") == 2


@pytest.mark.parametrize("interpreter", EACH[-1:], ids=repr)
def test_a_task_that_waits_for_one_that_wants_its_lock(interpreter):
    with asyncio_program(interpreter, "inside(a)") as program:
        program.line()
        code, finding = found(program.pid)
    assert code == DEADLOCK and " in `inside` " in finding["sentence"] and " in `wants` " in finding["sentence"]


@pytest.mark.parametrize("interpreter", EACH[-1:], ids=repr)
def test_a_task_that_wants_its_own_lock(interpreter):
    with asyncio_program(interpreter, "both(a, a)", pause=1000) as program:
        program.line()
        code, finding = found(program.pid)
    assert code == DEADLOCK and finding["sentence"].endswith(" in `both` <string>:11 waits for a lock that it holds itself")


@pytest.mark.parametrize("interpreter", EACH[-1:], ids=repr)
def test_a_task_whose_holder_waits_for_something_else(interpreter):
    with asyncio_program(interpreter, "both(a, Never()), wants(a)") as program:
        program.line()
        code, finding = found(program.pid)
    assert code == UNKNOWN and finding["confidence"] == "low"
    assert "`Never.__aenter__` <string>:5" in json.dumps(finding["evidence"]) and "`wants` " in json.dumps(finding["evidence"])


BLOCKED = """
import asyncio, time
async def main():
    timer = asyncio.ensure_future(asyncio.sleep(%s))
    await asyncio.sleep(0)
    print(flush=True)
    time.sleep(100000)
asyncio.run(main())
"""


READY = BLOCKED.replace("    print(flush=True)", "    ready = asyncio.get_event_loop().call_soon(print)\n    print(flush=True)")


@pytest.mark.parametrize("interpreter", EACH, ids=repr)
@pytest.mark.parametrize("source, keeps, line", [(BLOCKED % 0.1, "a timer is overdue", 7), (READY % 1000, "a callback is to run", 8)])
def test_a_call_that_blocks_the_loop(interpreter, source, keeps, line, monkeypatch):
    monkeypatch.setenv("PROBING_LIMITS", "long=1")
    with support.Program([interpreter.exe, "-c", source], env=interpreter.env) as program:
        program.line()
        code, finding = found(program.pid, "a call has kept the loop of asyncio from going on for ")
    assert code == STILL and finding["confidence"] == "medium" and not finding["proof"], finding
    assert ", and %s: " % keeps in finding["sentence"], finding
    assert finding["sentence"].endswith(" in `main` <string>:%d" % line), finding


@pytest.mark.parametrize("interpreter", EACH[-1:], ids=repr)
def test_a_call_that_keeps_nothing_waiting_is_healthy(interpreter, monkeypatch):
    monkeypatch.setenv("PROBING_LIMITS", "long=1")
    with support.Program([interpreter.exe, "-c", BLOCKED % 1000], env=interpreter.env) as program:
        program.line()
        wait_until(lambda: (support.dump(program.pid)["threads"][0]["idle_seconds"] or 0) > 1.5)
        assert findings(program.pid)[1] == []


@pytest.mark.parametrize("interpreter", EACH, ids=repr)
def test_a_cancelled_timer_keeps_nothing_waiting(interpreter, monkeypatch):
    monkeypatch.setenv("PROBING_LIMITS", "long=1")
    timer = "asyncio.get_event_loop().call_later(0.1, print)\n    timer.cancel()"
    source = READY.replace("asyncio.ensure_future(asyncio.sleep(%s))", timer).replace("call_soon(print)", "call_soon(print).cancel()")
    with support.Program([interpreter.exe, "-c", source], env=interpreter.env) as program:
        program.line()
        wait_until(lambda: (support.dump(program.pid)["threads"][0]["idle_seconds"] or 0) > 1.5)
        assert findings(program.pid)[1] == []


@pytest.mark.parametrize("interpreter", EACH[-1:], ids=repr)
def test_a_blocked_loop_hides_no_deadlock(interpreter, monkeypatch):
    monkeypatch.setenv("PROBING_LIMITS", "long=1")
    source = ASYNCIO % ("both(a, b), both(b, a), blocks(),", 0.02)
    blocks = "async def blocks():\n    import time\n    timer = asyncio.ensure_future(asyncio.sleep(0.3))\n" \
             "    await asyncio.sleep(0.2)\n    time.sleep(100000)\nasync def both("
    with support.Program([interpreter.exe, "-c", source.replace("async def both(", blocks)], env=interpreter.env) as program:
        program.line()
        code, finding = found(program.pid, "2 tasks wait for each other: ")
        wait_until(lambda: (support.dump(program.pid)["threads"][0]["idle_seconds"] or 0) > 1.5)
        code, finding = found(program.pid, "2 tasks wait for each other: ")
    assert code == DEADLOCK, finding


@pytest.mark.parametrize("interpreter", EACH[-1:], ids=repr)
def test_tasks_that_take_turns_are_healthy(interpreter):
    with asyncio_program(interpreter, "*(turns(a) for _ in range(5))") as program:
        program.line()
        assert findings(program.pid)[1] == []


@pytest.mark.parametrize("library", sorted(GREENLETS))
def test_greenlets_that_wait_for_each_other(library):
    source = GREENLETS[library] + BOTH % ("x = spawn(both, a, b), spawn(both, b, a)", 0.02)
    with support.Program([packages.need(library), "-W", "ignore", "-c", source]) as program:
        program.line()
        code, finding = found(program.pid)
    assert code == DEADLOCK and finding["sentence"].startswith("2 greenlets wait for each other: greenlet in `both` <string>:")


def test_rlocks_and_semaphores_of_gevent():
    source = GREENLETS["gevent"] + BOTH % (
        "c, d = threading.RLock(), BoundedSemaphore(1)\nx = spawn(both, c, d), spawn(both, d, c)", 0.02)
    with support.Program([packages.need("gevent"), "-W", "ignore", "-c", source]) as program:
        program.line()
        code, finding = found(program.pid)
    assert code == DEADLOCK and finding["sentence"].startswith("2 greenlets wait for each other")


@pytest.mark.parametrize("interpreter", EACH[-1:], ids=repr)
def test_a_task_that_waits_for_a_semaphore(interpreter, monkeypatch):
    """While nothing runs at all: any task may release it."""
    monkeypatch.setenv("PROBING_LIMITS", "long=2")
    with asyncio_program(interpreter, "both(s, s)", pause=1000) as program:
        program.line()
        code, finding = found(program.pid)
    assert code == UNKNOWN and "their holders are not known" in finding["sentence"], finding


@pytest.mark.parametrize("library", sorted(GREENLETS))
def test_greenlets_whose_lock_is_held(library, monkeypatch):
    monkeypatch.setenv("PROBING_LIMITS", "long=2")
    source = GREENLETS[library] + BOTH % ("a.acquire()\nx = spawn(both, b, a)", 1000)
    with support.Program([packages.need(library), "-W", "ignore", "-c", source]) as program:
        program.line()
        code, _ = found(program.pid, "their holders are not known")
    assert code == UNKNOWN


MAIN_WAITS = """
import eventlet
eventlet.monkey_patch()
from eventlet.queue import Queue
from eventlet.event import Event
import threading
q, e, lock = Queue(), Event(), threading.Lock()
def getter():
    q.get()
print(flush=True)
x = eventlet.spawn(getter)
lock.acquire()
%s
"""


def of_main(wait, words=""):
    """What is found of a program of eventlet whose main greenlet waits, beside one that waits for a queue."""
    with support.Program([packages.need("eventlet"), "-W", "ignore", "-c", MAIN_WAITS % wait]) as program:
        program.line()
        return found(program.pid, words)


@pytest.mark.parametrize("wait", ["q.get()", "e.wait()", "x.wait()", "lock.acquire()", "threading.Event().wait()"])
def test_a_hub_that_resumes_nobody(wait):
    code, finding = of_main(wait, "2 greenlets, and the hub has no timer and no file that could resume them: ")
    assert code == STILL and finding["confidence"] == "medium" and not finding["proof"]
    assert all(words in json.dumps(finding["evidence"]) for words in ("in `<module>` <string>:", "in `getter` <string>:9"))


WAKES = {
    "a timer": "eventlet.spawn_after(1000, q.put, 1)\nq.get()",
    "a client": "eventlet.listen(('127.0.0.1', 0)).accept()",
    "a signal": "import signal\nsignal.signal(signal.SIGUSR1, print)\nq.get()",
    "another thread": "eventlet.patcher.original('threading').Thread(target=eventlet.patcher.original('time').sleep,"
                      " args=(1000,), daemon=True).start()\nq.get()",
}


@pytest.mark.parametrize("who", sorted(WAKES))
def test_a_hub_that_may_resume_one(who):
    with support.Program([packages.need("eventlet"), "-W", "ignore", "-c", MAIN_WAITS % WAKES[who]]) as program:
        program.line()
        wait_until(lambda: "hubs/" in json.dumps(support.dump(program.pid)["threads"][0]["frames"]))
        assert findings(program.pid)[1] == []


@pytest.mark.parametrize("library", sorted(GREENLETS))
def test_greenlets_that_take_turns_are_healthy(library):
    source = GREENLETS[library] + BOTH % ("x = [spawn(turns, a) for _ in range(5)]", 0.02)
    with support.Program([packages.need(library), "-W", "ignore", "-c", source]) as program:
        program.line()
        assert findings(program.pid)[1] == []


@pytest.mark.parametrize("interpreter", EACH[-1:], ids=repr)
def test_a_task_whose_wait_has_a_limit_is_in_no_deadlock(interpreter):
    with asyncio_program(interpreter, "limited(a, b), both(b, a)") as program:
        program.line()
        code, finding = found(program.pid)
    assert code == UNKNOWN, finding


@pytest.mark.parametrize("library", sorted(GREENLETS))
def test_a_greenlet_whose_wait_has_a_limit_is_in_no_deadlock(library):
    source = GREENLETS[library] + BOTH % ("x = spawn(limited, a, b), spawn(both, b, a)", 1000)
    with support.Program([packages.need(library), "-W", "ignore", "-c", source]) as program:
        program.line()
        code, finding = found(program.pid)
    assert code in (UNKNOWN, LOCKS), finding


def test_of_many_programs_some_are_looked_at():
    """Each look lasts 0.2 s at least, and all of them a second: which were left out is said."""
    with contextlib.ExitStack() as stack:
        programs = [stack.enter_context(asyncio_program(EACH[-1], "both(a, b), both(b, a)")) for _ in range(7)]
        for program in programs:
            program.line()
            found(program.pid)
        pids = [str(program.pid) for program in programs]
        code, out, _ = why("--json", *pids)
        targets = json.loads(out)["targets"]
        assert code == DEADLOCK and targets[0]["looked"] and not targets[-1]["looked"]
        assert [bool(target["findings"]) for target in targets] == [target["looked"] for target in targets]
        left = [target["looked"] for target in targets].count(False)
        assert ": lock_file, loop, slow, sqlite, tasks and throttled need a second one; --look 0.25s makes it for each" in why(*pids)[1]
        _, out, _ = why("--json", "--look", "0.25s", *pids)
        assert left and all(target["looked"] and target["findings"] for target in json.loads(out)["targets"])


POOLS = """
from gevent.pool import Pool
pool = Pool(2)
def more():
    sleep(0.01)
    pool.spawn(int)
def joins():
    sleep(0.01)
    pool.join()
def works():
    sleep(100000)
def joins_limited():
    sleep(0.01)
    pool.join(timeout=1000)
x = [pool.spawn(each) for each in (%s)]
sleep(0.1)
"""


@pytest.mark.parametrize("kinds, count", [("more, more", 2), ("joins,", 1), ("more, joins", 2)])
def test_greenlets_that_wait_for_their_own_pool(kinds, count):
    source = GREENLETS["gevent"] + BOTH % (POOLS % kinds, 0.02)
    with support.Program([packages.need("gevent"), "-W", "ignore", "-c", source]) as program:
        program.line()
        code, finding = found(program.pid)
    assert code == DEADLOCK and finding["confidence"] == "medium" and not finding["proof"]
    assert finding["sentence"].startswith("%d greenlet" % count) and " in `%s` <string>:" % kinds.split(",", 1)[0] in json.dumps(finding)


@pytest.mark.parametrize("kinds", ["more, works", "joins, works", "works, works", "joins_limited,", "more, joins_limited"])
def test_greenlets_of_a_pool_that_may_go_on(kinds):
    source = GREENLETS["gevent"] + BOTH % (POOLS % kinds, 0.02)
    with support.Program([packages.need("gevent"), "-W", "ignore", "-c", source]) as program:
        program.line()
        assert findings(program.pid)[1] == []


TAKES_TURNS = "def takes():\n    while True:\n        a.acquire()\n        sleep(0.001)\n        a.release()\n        sleep(0)"


def test_a_lock_that_nobody_seems_to_release():
    """Taken by acquire(), while other greenlets run."""
    source = GREENLETS["gevent"] + BOTH % ("def wants():\n    a.acquire()\na.acquire()\nx = spawn(wants)", 0.02)
    with support.Program([packages.need("gevent"), "-W", "ignore", "-c", source]) as program:
        program.line()
        code, finding = found(program.pid)
    assert code == UNKNOWN and finding["confidence"] == "low", finding
    assert "for a second, and who is to release it is not known: greenlet in `wants` <string>:" in finding["sentence"]


def test_locks_that_nobody_seems_to_release_beside_one_that_takes_turns():
    source = GREENLETS["gevent"] + BOTH % (
        TAKES_TURNS + "\ndef wants(lock):\n    lock.acquire()\nc, d = threading.Lock(), threading.Lock()\nc.acquire()\n"
        "d.acquire()\nx = [spawn(takes) for _ in range(3)], spawn(wants, c), spawn(wants, d)\nsleep(0.1)", 0.02)
    with support.Program([packages.need("gevent"), "-W", "ignore", "-c", source]) as program:
        program.line()
        code, finding = found(program.pid)
    assert code == UNKNOWN and "2 greenlets have waited for locks for a second" in finding["sentence"], finding
    assert len(finding["evidence"]) == 2 and all("in `wants` " in each["text"] for each in finding["evidence"]), finding


def test_greenlets_that_take_turns_by_acquire_are_healthy():
    source = GREENLETS["gevent"] + BOTH % (TAKES_TURNS + "\nx = [spawn(takes) for _ in range(3)]\nsleep(0.1)", 0.02)
    with support.Program([packages.need("gevent"), "-W", "ignore", "-c", source]) as program:
        program.line()
        assert findings(program.pid)[1] == []


CIRCLE = """
import asyncio
async def awaits(others, name):
    await others[name]
async def limited(others, name):
    await asyncio.wait_for(others[name], 1000)
async def main():
    tasks = {}
    for name, next, function in (%s):
        tasks[name] = asyncio.ensure_future(function(tasks, next))
    print(flush=True)
    while True:
        await asyncio.sleep(0.02)
asyncio.run(main())
"""


def circle(interpreter, members):
    return support.Program([interpreter.exe, "-c", CIRCLE % members], env=interpreter.env)


@pytest.mark.parametrize("interpreter", EACH, ids=repr)
def test_tasks_that_await_each_other(interpreter):
    with circle(interpreter, "('a', 'b', awaits), ('b', 'c', awaits), ('c', 'a', awaits)") as program:
        program.line()
        code, finding = found(program.pid)
    assert code == DEADLOCK and finding["confidence"] == "medium" and not finding["proof"]
    assert finding["sentence"].startswith("3 tasks wait for each other: task Task-"), finding
    assert len(finding["evidence"]) == 3 and finding["sentence"].count("in `awaits` <string>:4") == 3, finding


@pytest.mark.parametrize("interpreter", EACH, ids=repr)
@pytest.mark.parametrize("members", ["('a', 'b', awaits), ('b', 'a', limited)", "('a', 'b', awaits), ('b', 'c', awaits), ('c', 'c', "
                                     "lambda *_: asyncio.sleep(1000))"], ids=["limited", "no circle"])
def test_tasks_that_await_others_are_healthy(interpreter, members):
    with circle(interpreter, members) as program:
        program.line()
        assert findings(program.pid)[1] == []


TRIO = """
import trio
async def f(first, second):
    async with first:
        await trio.sleep(0.1)
        with trio.fail_after(%s):
            await g(second)
async def g(lock):
    async with lock:
        print("never")
async def main():
    a, b = trio.Lock(), trio.StrictFIFOLock()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(f, a, b)
        nursery.start_soon(f, %s)
        await trio.sleep(0.2)
        print(flush=True)
        while True:
            await trio.sleep(0.02)
trio.run(main)
"""


@pytest.mark.parametrize("limit, order, kind", [("float('inf')", "b, a", DEADLOCK), ("1000", "b, a", None), ("float('inf')", "a, b", None)])
def test_locks_of_trio(limit, order, kind):
    """In the last case, the holder waits for another lock that it has, too: trio refuses that."""
    with support.Program([packages.need("trio"), "-c", TRIO % (limit, order)]) as program:
        program.line()
        if not kind:
            assert findings(program.pid)[1] == []
            return
        code, finding = found(program.pid)
    assert code == kind and finding["confidence"] == "medium" and not finding["proof"]
    assert finding["sentence"].count("task __main__.f in `f`") == 0 and finding["sentence"].count("in `g` <string>:9") == 2, finding
    assert "waits in Lock held by task __main__.f, in g <string>:9" in json.dumps(finding["evidence"]), finding


# A connector as that of aiohttp, of what matters here, and a program.
CONNECTOR = """
import asyncio
async def connect(waits):
    await waits()
async def _wait_for_available_connection():
    await asyncio.get_event_loop().create_future()
async def _create_connection():
    await asyncio.get_event_loop().create_future()
"""
CLIENT = """
import asyncio, sys
sys.path.insert(0, %r)
from aiohttp import connector
async def get():
    await connector.connect(connector.%s)
async def main():
    tasks = [asyncio.ensure_future(get()) for _ in range(3)]
    await asyncio.sleep(0)
    print(flush=True)
    await asyncio.wait(tasks)
asyncio.run(main())
"""


@pytest.mark.parametrize("interpreter", EACH, ids=repr)
@pytest.mark.parametrize("waits", ["_wait_for_available_connection", "_create_connection"])
def test_tasks_that_wait_for_a_connection_of_a_pool(interpreter, waits, tmp_path, monkeypatch):
    monkeypatch.setenv("PROBING_LIMITS", "long=1")
    folder = tmp_path / "site-packages"
    (folder / "aiohttp").mkdir(parents=True)
    (folder / "aiohttp" / "connector.py").write_text(CONNECTOR)
    with support.Program([interpreter.exe, "-c", CLIENT % (str(folder), waits)], env=interpreter.env) as program:
        program.line()
        wait_until(lambda: (support.dump(program.pid)["threads"][0]["idle_seconds"] or 0) > 1.5)
        told = findings(program.pid, "pool")[1]
    if waits == "_create_connection":
        assert told == []
        return
    [finding] = told
    assert (finding["kind"], finding["confidence"], finding["proof"]) == ("locks", "medium", False)
    assert finding["sentence"].startswith("3 tasks wait for a connection of a pool of aiohttp, all of which are in use: task "), finding
    assert len(finding["evidence"]) == 3 and "in `get` <string>:6" in finding["sentence"], finding


OWN_LOOP = """
import asyncio, concurrent.futures, time
async def answer():
    return 42
async def main():
    loop = asyncio.get_running_loop()
    pool = concurrent.futures.ThreadPoolExecutor(1)
    busy = pool.submit(time.sleep, 1000)
    loop.call_soon(print, 1)
    future = asyncio.run_coroutine_threadsafe(answer(), loop)
    print(flush=True)
    %s.result()
asyncio.run(main())
"""


@pytest.mark.parametrize("interpreter", EACH, ids=repr)
@pytest.mark.parametrize("waits, kind", [("future", DEADLOCK), ("busy", None)])
def test_a_loop_that_waits_for_itself(interpreter, monkeypatch, waits, kind):
    """The other future is of a thread that works."""
    monkeypatch.setenv("PROBING_LIMITS", "long=1")
    with support.Program([interpreter.exe, "-c", OWN_LOOP % waits], env=interpreter.env) as program:
        program.line()
        support.wait_for_sleep(program.pid, "futex")
        if kind:
            code, finding = found(program.pid, "the thread of a loop of asyncio waits")
            assert code == kind and finding["confidence"] == "high" and not finding["proof"]
            assert "called by `main` <string>:12" in finding["sentence"]
        else:
            wait_until(lambda: re.search("MainThread .*idle ([2-9]|[1-9][0-9]) ?[.s]", why(str(program.pid))[1]))
            assert "waits for a coroutine" not in why(str(program.pid))[1]


REACTOR = """
import sys, threading
sys.path.insert(0, %r)
from twisted.internet import base, threads
print(flush=True)
%s
"""
# A reactor as that of twisted, of what matters here.
TWISTED = {
    "base.py": """
class ReactorBase:
    def mainLoop(self, call):
        call()
""",
    "threads.py": """
import queue
def blockingCallFromThread():
    queue.Queue().get()
""",
}


@pytest.mark.parametrize("waits, kind", [("base.ReactorBase().mainLoop(threads.blockingCallFromThread)", DEADLOCK),
                                         ("threads.blockingCallFromThread()", None)])
def test_a_reactor_that_waits_for_itself(tmp_path, monkeypatch, waits, kind):
    monkeypatch.setenv("PROBING_LIMITS", "long=1")
    folder = tmp_path / "twisted" / "internet"
    folder.mkdir(parents=True)
    for name, source in TWISTED.items():
        (folder / name).write_text(source)
    with support.Program([EACH[-1].exe, "-c", REACTOR % (str(tmp_path), waits)], env=EACH[-1].env) as program:
        program.line()
        support.wait_for_sleep(program.pid, "futex")
        if kind:
            code, finding = found(program.pid, "the thread of twisted's reactor waits")
            assert code == kind and finding["confidence"] == "high" and not finding["proof"]
            assert "called by `blockingCallFromThread` threads.py:4" in finding["sentence"]
        else:
            wait_until(lambda: json.loads(why("--json", str(program.pid))[1])["targets"][0]["findings"])
            assert findings(program.pid)[1] == []

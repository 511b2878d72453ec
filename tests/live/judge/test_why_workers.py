# SPDX-License-Identifier: GPL-3.0-or-later
"""The rule `workers` of `probing why`: pools of threads that wait for themselves, and healthy twins."""
import json

import pytest

import support
from environment import wait_until
from test_why import why

DEADLOCK, UNKNOWN = 10, 20
EACH = support.one_per_version((3, 7))
EXECUTOR = """
import concurrent.futures, threading
pool = concurrent.futures.ThreadPoolExecutor(%d)
other = concurrent.futures.ThreadPoolExecutor(4)
all_here, never = threading.Barrier(%d), threading.Event()
def outer():
    all_here.wait()
    return %s
print(flush=True)
results = [pool.submit(outer) for _ in range(%d)]
%s
"""
THREAD_POOL = """
import threading
from multiprocessing.pool import ThreadPool
pool = ThreadPool(2)
all_here = threading.Barrier(2)
def outer(_):
    all_here.wait()
    return pool.apply(int)
print(flush=True)
pool.map(outer, range(2))
"""
LOOP = """
import asyncio, concurrent.futures
async def inner():
    return await asyncio.get_running_loop().run_in_executor(None, int)
def outer(loop):
    return asyncio.run_coroutine_threadsafe(inner(), loop).result()
async def main():
    loop = asyncio.get_running_loop()
    loop.set_default_executor(concurrent.futures.ThreadPoolExecutor(3))
    print(flush=True)
    results = [loop.run_in_executor(None, outer, loop) for _ in range(3)]
    while True:
        await asyncio.sleep(0.02)
asyncio.run(main())
"""
JOIN = "results[0].result()"


def executor(threads, wait, main=JOIN, tasks=None):
    return EXECUTOR % (threads, threads, wait, tasks or threads, main)


def findings(pid):
    code, out, _ = why("--json", str(pid))
    [target] = json.loads(out)["targets"]
    return code, [each for each in target["findings"] if each["rule"] == "workers"]


def found(pid):
    last = []

    def there():
        last[:] = findings(pid)
        return last[1]
    wait_until(there)
    code, [finding] = last
    return code, finding


def started(interpreter, source):
    return support.Program([interpreter.exe, "-c", source], env=interpreter.env)


def asleep(program):
    """Once all threads have waited for longer than `still`."""
    wait_until(lambda: all(thread["idle_seconds"] and thread["idle_seconds"] > 2.5 for thread in support.dump(program.pid)["threads"]))


@pytest.mark.parametrize("interpreter", EACH, ids=repr)
def test_a_pool_that_waits_for_itself(interpreter):
    with started(interpreter, executor(2, "pool.submit(int).result()")) as program:
        program.line()
        code, finding = found(program.pid)
    assert code == DEADLOCK and finding["confidence"] == "high" and finding["proof"], finding
    assert finding["sentence"].startswith("all 2 threads of a pool wait for results of tasks that are queued in the same pool: ")
    assert "called by `outer` <string>:8" in finding["sentence"] and len(finding["tids"]) == 2


NESTED = """
import concurrent.futures
pool = concurrent.futures.ThreadPoolExecutor(3)
def outer(n):
    return pool.submit(outer, n - 1).result() if n else 0
print(flush=True)
pool.submit(outer, 5).result()
"""


@pytest.mark.parametrize("interpreter", EACH, ids=repr)
def test_tasks_that_wait_for_tasks_of_the_same_pool(interpreter):
    """Only the innermost of them waits for one in the queue."""
    with started(interpreter, NESTED) as program:
        program.line()
        code, finding = found(program.pid)
    assert code == DEADLOCK and finding["confidence"] == "high" and finding["proof"], finding
    assert "all 3 threads of a pool wait for results of tasks that are queued or running in the same pool: " in finding["sentence"]


@pytest.mark.parametrize("interpreter", EACH[-1:], ids=repr)
def test_another_thread_may_cancel_the_task(interpreter):
    """It is true, but no proof, while a thread of the program does something else."""
    with started(interpreter, executor(1, "pool.submit(int).result()", "never.wait()")) as program:
        program.line()
        code, finding = found(program.pid)
    assert code == DEADLOCK and finding["confidence"] == "high" and not finding["proof"], finding
    assert finding["sentence"].startswith("the only thread of a pool waits for the result of a task that is queued in the same pool: ")


@pytest.mark.parametrize("interpreter", EACH, ids=repr)
def test_a_thread_pool_that_waits_for_itself(interpreter):
    with started(interpreter, THREAD_POOL) as program:
        program.line()
        code, finding = found(program.pid)
    assert code == DEADLOCK and finding["confidence"] == "high" and not finding["proof"], finding
    assert "called by `outer` <string>:8" in finding["sentence"]


@pytest.mark.parametrize("interpreter", EACH, ids=repr)
def test_a_full_executor_of_a_loop_that_goes_on(interpreter, monkeypatch):
    monkeypatch.setenv("PROBING_LIMITS", "still=2")
    with started(interpreter, LOOP) as program:
        program.line()
        code, finding = found(program.pid)
    assert code == UNKNOWN and finding["confidence"] == "low", finding
    assert "while 3 tasks wait for a thread of the pool" in finding["sentence"] and "`outer` <string>:6" in finding["sentence"]


HEALTHY = {
    "a thread of the pool is free": executor(2, "other.submit(never.wait).result()", tasks=2),
    "they wait for another pool, and no task is queued": executor(2, "other.submit(never.wait).result()"),
    "their waits have a limit": executor(1, "pool.submit(int).result(timeout=1000)"),
    "a thread of the pool does something else": executor(
        2, "(pool.submit(int).result() if threading.current_thread().name[-1] == '0' else never.wait())"),
}


@pytest.mark.parametrize("interpreter", EACH[-1:], ids=repr)
@pytest.mark.parametrize("kind", sorted(HEALTHY))
def test_pools_that_may_go_on(interpreter, kind, monkeypatch):
    monkeypatch.setenv("PROBING_LIMITS", "still=2")
    with started(interpreter, HEALTHY[kind]) as program:
        program.line()
        asleep(program)
        assert findings(program.pid)[1] == []


CALLBACKS = """
import multiprocessing.pool, sys, threading, time
pool = multiprocessing.pool.ThreadPool(2)
print(flush=True)
result = pool.apply_async(abs, (1,), callback=%s)
%s
"""


def results(program):
    _, out, _ = why("--json", str(program.pid))
    [target] = json.loads(out)["targets"]
    return [each for each in target["findings"] if each["rule"] == "results"]


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 7)), ids=repr)
@pytest.mark.parametrize("callback, kind, words", [
    ("lambda _: pool.apply(abs, (2,))", "deadlock", "the thread that collects the results of a pool waits for one of them"),
    ("lambda _: sys.exit()", "orphan", "a pool is waited for whose results nobody collects")], ids=["waits", "ended"])
def test_a_pool_whose_results_nobody_collects(interpreter, monkeypatch, callback, kind, words):
    monkeypatch.setenv("PROBING_LIMITS", "long=1")
    source = CALLBACKS % (callback, "pool.apply_async(time.sleep, (0.1,)).get()")
    with started(interpreter, source) as program:
        program.line()
        wait_until(lambda: results(program))
        [finding] = results(program)
    assert finding["kind"] == kind and finding["sentence"].startswith(words) and not finding["proof"], finding
    assert finding["confidence"] == {"deadlock": "high", "orphan": "medium"}[kind]


@pytest.mark.parametrize("callback, then", [
    ("print", "pool.apply(time.sleep, (1000,))"),  # the result is to come
    ("lambda _: sys.exit()", "threading.Event().wait()"),  # nobody waits for the pool
    # Another pool has the result.
    ("lambda _: multiprocessing.pool.ThreadPool(1).apply(time.sleep, (1000,))", "pool.apply(time.sleep, (1000,))")])
def test_pools_whose_results_are_collected_are_healthy(monkeypatch, callback, then):
    monkeypatch.setenv("PROBING_LIMITS", "long=1,still=1")
    with started(EACH[-1], CALLBACKS % (callback, then)) as program:
        program.line()
        wait_until(lambda: json.loads(why("--json", str(program.pid))[1])["targets"][0]["confidence"] == "low"
                   or support.dump(program.pid)["threads"][0]["idle_seconds"] > 2)
        assert results(program) == []

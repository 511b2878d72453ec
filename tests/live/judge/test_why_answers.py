# SPDX-License-Identifier: GPL-3.0-or-later
"""The rule `answer` of `probing why`: a result that nobody works on; and programs that wait for work, or for a
worker, of which it must say nothing."""
import ctypes.util
import json
import os
import subprocess
import textwrap

import psutil
import pytest

import hangs
import packages
import support
from environment import wait_until

UNKNOWN = 20
ZMQ = ctypes.util.find_library("zmq")
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
EACH = pytest.mark.parametrize("interpreter", support.one_per_version((3, 8)), ids=repr)
# A second is long, and nothing but `answer` speaks of programs in which nothing runs.
LIMITS = dict(os.environ, PROBING_LIMITS="answer=1,still=86400,long=86400")

LOST = """
import multiprocessing, os, signal, sys, time
def work(path):
    with open(path, "w") as file:
        file.write(str(os.getpid()))
    time.sleep(1000)
if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    pool = multiprocessing.Pool(2)
    result = pool.apply_async(work, (sys.argv[1],))
    print(flush=True)
    result.get()  # HERE
"""
AWAITED = """
import asyncio
async def tick():
    while True:
        await asyncio.sleep(0.05)
async def handler():
    await asyncio.Event().wait()  # HERE
async def main():
    ticker = asyncio.ensure_future(tick())
    print(flush=True)
    await asyncio.ensure_future(handler())
asyncio.run(main())
"""
GEVENT = """
import gevent, gevent.event, gevent.lock
def tick():
    while True:
        gevent.sleep(0.05)
gevent.spawn(tick)
lock = gevent.lock.BoundedSemaphore(1)
lock.acquire()
print(flush=True)
%s
"""
TRIO = """
import trio
async def main():
    sends, receives = trio.open_memory_channel(0)
    print(flush=True)
    %s
trio.run(main)
"""
REQUEST = """
import ctypes, sys
zmq = ctypes.CDLL(%r)
zmq.zmq_ctx_new.restype = zmq.zmq_socket.restype = ctypes.c_void_p
socket = ctypes.c_void_p(zmq.zmq_socket(ctypes.c_void_p(zmq.zmq_ctx_new()), %d))
zmq.zmq_connect(socket, b"ipc://nobody")
if %d:
    zmq.zmq_send(socket, b"x", 1, 0)
print(flush=True)
zmq.zmq_recv(socket, ctypes.create_string_buffer(9), 9, 0)
"""
# With low confidence nothing is wrong with them.
FOR_THEMSELVES = {
    "a future that a thread works for": """
        import concurrent.futures, time
        print(flush=True)
        concurrent.futures.ThreadPoolExecutor(1).submit(time.sleep, 1000).result()""",
    "a pool at work": """
        import multiprocessing, time
        multiprocessing.set_start_method("fork")
        pool = multiprocessing.Pool(2)
        print(flush=True)
        pool.map(time.sleep, [1000, 1000])""",
    "an idle pool of processes": """
        import concurrent.futures, threading
        pool = concurrent.futures.ProcessPoolExecutor(2)
        list(pool.map(abs, range(4)))
        print(flush=True)
        threading.Event().wait()""",
    "a scheduler in a thread": """
        import threading, time
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        print(flush=True)
        threading.Event().wait()""",
    "tasks until somebody stops it": """
        import asyncio
        async def tick():
            while True:
                await asyncio.sleep(0.05)
        async def main():
            ticker = asyncio.ensure_future(tick())
            print(flush=True)
            await asyncio.Event().wait()
        asyncio.run(main())""",
}
# Here somebody outside may send, and it is said with medium confidence.
FOR_OTHERS = {
    "an idle pool": """
        import multiprocessing
        multiprocessing.set_start_method("fork")
        pool = multiprocessing.Pool(2)
        pool.map(abs, range(4))
        print(flush=True)
        input()""",
    "a server of asyncio with workers": """
        import asyncio
        async def work(queue):
            await queue.get()
        async def main():
            queue = asyncio.Queue()
            workers = [asyncio.ensure_future(work(queue)) for _ in range(3)]
            server = await asyncio.start_server(print, "127.0.0.1", 0)
            print(flush=True)
            await asyncio.gather(*workers)
        asyncio.run(main())""",
    "a thread that serves": """
        import socketserver, threading
        server = socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(flush=True)
        threading.Event().wait()""",
}


def judged(pid):
    done = subprocess.run([support.BINARY, "why", "--json", str(pid)], env=LIMITS, stdout=subprocess.PIPE, check=False)
    [target] = json.loads(done.stdout)["targets"]
    findings = [each for each in target["findings"] if each["kind"] not in ("memory", "processor")]
    return done.returncode, target, findings


def until_answer(pid):
    found = []

    def is_there():
        found[:] = judged(pid)[2]
        return [each["rule"] for each in found] == ["answer"]
    wait_until(is_there)
    assert (found[0]["kind"], found[0]["confidence"], found[0]["proof"]) == ("unknown", "low", False)
    return found[0]


def started(folder, source, interpreter=NEWEST, *words):
    path, line = hangs.write(folder, source)
    return support.Program([interpreter.exe, path, *words], env=interpreter.env, start_new_session=True), line


@EACH
def test_a_task_that_went_with_its_worker(tmp_path, interpreter):
    """The pool starts another worker, which never hears of the task."""
    held = tmp_path / "held"
    program, line = started(tmp_path, LOST, interpreter, held)
    with program:
        program.line()
        wait_until(lambda: held.exists() and held.read_text())
        # As long as the worker has it, somebody works.
        wait_until(lambda: judged(program.pid)[1]["confidence"] == "low")
        assert judged(program.pid)[2] == []
        os.kill(int(held.read_text()), 9)
        found = until_answer(program.pid)
        assert "hung.py:%d, and nobody can be seen who works on it" % line in found["sentence"]
        assert "its 2 subprocesses" in found["rests_on"]


@EACH
def test_a_future_that_nobody_has(tmp_path, interpreter):
    """Beside a thread that only waits, too: else `unknown` has said it before."""
    source = """
        import concurrent.futures, threading
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        print(flush=True)
        concurrent.futures.Future().result()  # HERE"""
    program, line = started(tmp_path, source, interpreter)
    with program:
        program.line()
        assert "hung.py:%d" % line in until_answer(program.pid)["sentence"]
        assert judged(program.pid)[0] == UNKNOWN


@EACH
def test_an_event_that_a_task_awaits(tmp_path, interpreter):
    program, line = started(tmp_path, AWAITED, interpreter)
    with program:
        program.line()
        found = until_answer(program.pid)
        assert "in `handler` hung.py:%d, in Event.wait" % line in found["sentence"]


@pytest.mark.parametrize("kind", [*FOR_THEMSELVES, *FOR_OTHERS])
def test_programs_that_wait_for_work_are_left_alone(tmp_path, kind):
    program, _ = started(tmp_path, textwrap.dedent({**FOR_THEMSELVES, **FOR_OTHERS}[kind]))
    confidence = "low" if kind in FOR_THEMSELVES else "medium"
    with program:
        program.line()
        # Its threads may not yet be where they wait.
        wait_until(lambda: judged(program.pid)[1]["confidence"] == confidence)
        code, target, findings = judged(program.pid)
        assert findings == [] and target["verdict"] in ("nothing", "memory", "processor"), (code, target)


def test_workers_of_an_idle_pool_wait_for_others(tmp_path):
    program, _ = started(tmp_path, textwrap.dedent(FOR_OTHERS["an idle pool"]))
    with program:
        program.line()
        for worker in psutil.Process(program.pid).children():
            wait_until(lambda: (support.dump(worker.pid)["threads"][0]["idle_seconds"] or 0) > 2)
            _, target, findings = judged(worker.pid)
            assert findings == [] and target["confidence"] == "medium", target


@pytest.mark.parametrize("kind", hangs.IDLE)
def test_idle_programs_are_left_alone(tmp_path, kind):
    program, _ = started(tmp_path, hangs.IDLE[kind])
    with program:
        wait_until(lambda: judged(program.pid)[1]["doing"])
        assert judged(program.pid)[2] == []


@pytest.mark.parametrize("waits", ["lock.acquire()", "gevent.spawn(lock.acquire).join()"])
def test_a_lock_that_no_greenlet_releases(waits):
    with support.Program([packages.need("gevent"), "-c", GEVENT % waits]) as program:
        program.line()
        found = until_answer(program.pid)
        assert "nobody can be seen who is to resume what the program waits for: the main greenlet in `<module>` <string>:10, in " \
            in found["sentence"]


@pytest.mark.parametrize("waits", ["gevent.event.Event().wait()", "gevent.spawn(tick).join()"])
def test_a_greenlet_that_waits_for_the_end_of_the_program_is_healthy(waits):
    with support.Program([packages.need("gevent"), "-c", GEVENT % waits]) as program:
        program.line()
        wait_until(lambda: judged(program.pid)[1]["confidence"] == "low")
        assert judged(program.pid)[2] == []


TWO_STILL = dict(LIMITS, PROBING_LIMITS="answer=1,still=2")


def of_trio(pid):
    done = subprocess.run([support.BINARY, "why", "--json", str(pid)], env=TWO_STILL, stdout=subprocess.PIPE, check=False)
    [target] = json.loads(done.stdout)["targets"]
    return [each for each in target["findings"] if each["kind"] not in ("memory", "processor")]


def test_a_loop_of_trio_without_a_timer():
    """It gives the kernel a limit of a day."""
    with support.Program([packages.need("trio"), "-c", TRIO % "await receives.receive()"]) as program:
        program.line()
        wait_until(lambda: [each["rule"] for each in of_trio(program.pid)] == ["still"])
        assert "task __main__.main in `main` <string>:6, in MemoryReceiveChannel.receive" in json.dumps(of_trio(program.pid))
    with support.Program([packages.need("trio"), "-c", TRIO % "await trio.sleep(100000)"]) as program:
        program.line()
        wait_until(lambda: support.dump(program.pid)["threads"][0]["idle_seconds"] > 3)
        assert of_trio(program.pid) == []


@pytest.mark.skipif(not ZMQ, reason="libzmq is not installed")
def test_a_request_without_a_server(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    request, subscriber = 3, 2
    with support.Program([NEWEST.exe, "-c", REQUEST % (ZMQ, request, True)], env=NEWEST.env) as program:
        program.line()
        assert "is connected to no server, in `<module>` <string>:10" in until_answer(program.pid)["sentence"]
    with support.Program([NEWEST.exe, "-c", REQUEST % (ZMQ, subscriber, False)], env=NEWEST.env) as program:
        program.line()
        wait_until(lambda: (support.dump(program.pid)["threads"][0]["idle_seconds"] or 0) > 2)
        assert judged(program.pid)[2] == []

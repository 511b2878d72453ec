# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks and greenlets that wait, below the thread of their loop or hub."""
import json
import re
import subprocess

import packages
import pytest
import support

TASKS = """
import asyncio, sys

async def worker(event):
    await event.wait()

async def leaf():
    await asyncio.sleep(1000)

async def gathers():
    await asyncio.gather(leaf(), leaf())

async def limited():
    await asyncio.wait_for(leaf(), 2000)

async def main():
    loop, event = asyncio.get_event_loop(), asyncio.Event()
    kept = [loop.create_task(worker(event)) for _ in range(12)]
    kept += [loop.create_task(gathers()), loop.create_task(limited())]
    await asyncio.sleep(0.01)
    if sys.argv[1:] == ["busy"]:
        print("ready", flush=True)
        while True:
            sum(range(100))
    loop.call_soon(lambda: print("ready", flush=True))
    await asyncio.wait(kept)

asyncio.get_event_loop_policy().new_event_loop().run_until_complete(main())
"""


def dump(process, *words):
    return subprocess.check_output([support.BINARY, "dump", str(process.pid), *words], text=True)


def written(tmp_path, text):
    program = tmp_path / "waiting.py"
    program.write_text(text)
    return program


@pytest.mark.every_interpreter
@pytest.mark.parametrize("interpreter", support.one_per_version((3, 8)), ids=repr)
def test_tasks_below_their_loop(interpreter, tmp_path):
    with support.Target(interpreter, written(tmp_path, TASKS)) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "epoll_wait")
        text, plain = dump(process), dump(process, "--no-tasks")
        told, without = (json.loads(dump(process, "--json", *words)) for words in ((), ("--no-tasks",)))
    waits = [each for each in told["tasks"] if (each["waits_for"] or "").startswith("Event.wait")]
    assert len(waits) == 12 and {each["frames"][0]["func"] for each in waits} == {"wait"}, told["tasks"]
    assert {each["tid"] for each in told["tasks"]} == {told["threads"][0]["tid"]} and "tasks" not in without
    limited = [each for each in told["tasks"] if [one["frames"][-1]["func"] for one in each["awaited_by"][:1]] == ["gathers"]]
    assert len(limited) == 2 and {each["frames"][-1]["func"] for each in limited} == {"leaf"}, told["tasks"]
    head, _, tasks = text.partition("<module>")
    assert "BaseEventLoop.run_forever" in head or "run_forever" in head
    assert re.search(r"^    12 tasks  in Event\.wait of 0x\w+  \(Task-\d+, Task-\d+, Task-\d+ and 9 more\)\n"
                     r"        (Event\.)?wait .*locks\.py:\d+\n        worker +waiting\.py:5\n", tasks, re.M), text
    # The awaited chain is one stack, through gather() and wait_for().
    assert re.search(r"^    2 tasks  in sleep\(1000\), .* left  \(Task-\d+, Task-\d+\)\n"
                     r"        sleep .*\n        leaf .*\n        awaited by task Task-\d+\n"
                     r"        gathers +waiting\.py:11\n", tasks, re.M), text
    assert re.search(r"        leaf .*\n(        awaited by task Task-\d+\n)?"
                     r"        wait_for .*\n        limited +waiting\.py:14\n", tasks), text
    assert plain.rstrip("\n").endswith(head.splitlines()[-1] + "<module>" + tasks.splitlines()[0])


WRAPPED = """
import asyncio
async def leaf(event):
    await event.wait()
async def wrapper(event):
    await asyncio.gather(leaf(event))
async def main():
    event = asyncio.Event()
    wrappers = [asyncio.ensure_future(wrapper(event)) for _ in range(12)]
    asyncio.get_event_loop().call_later(0.1, print, "ready", None)
    await asyncio.gather(*wrappers)
import functools
print = functools.partial(print, flush=True)
asyncio.get_event_loop_policy().new_event_loop().run_until_complete(main())
"""


def test_the_same_chains_of_other_tasks_are_one(newest, tmp_path):
    """As after wait_for() before 3.12, which makes a task of its own for each."""
    with support.Target(newest, written(tmp_path, WRAPPED)) as process:
        assert process.line().startswith("ready")
        support.wait_for_sleep(process.pid, "epoll_wait")
        text = dump(process)
    assert re.search(r"^    12 tasks  in Event\.wait of 0x\w+  \(Task-\d+, Task-\d+, Task-\d+ and 9 more\)\n"
                     r"        (Event\.)?wait .*\n        leaf .*\n        awaited by task Task-\d+ and others\n"
                     r"        wrapper .*\n        awaited by task Task-\d+\n        main ", text, re.M), text


def test_the_current_task_is_marked(newest, tmp_path):
    with support.Target(newest, written(tmp_path, TASKS), "busy") as process:
        assert process.line() == "ready"
        text = dump(process)
    assert len(re.findall(r"^    task Task-1  current$", text, re.M)) == 1, text
    assert "    12 tasks  in Event.wait of " in text


GEVENT = """
import gevent, gevent.event, os
event = gevent.event.Event()
def worker():
    event.wait()
def sleeper():
    gevent.sleep(1000)
def last():
    os.write(1, b"ready\\n")
    gevent.sleep(2000)
gevent.joinall([gevent.spawn(worker) for _ in range(12)] + [gevent.spawn(sleeper), gevent.spawn(last)])
"""


def test_greenlets_below_their_hub(tmp_path):
    with support.Program([packages.need("gevent"), "-I", written(tmp_path, GEVENT)]) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "epoll_wait")
        text = dump(process)
        assert "12 greenlets" not in dump(process, "--no-tasks")
    assert re.search(r"Hub\.run .*\n    12 greenlets  in gevent\.\S+Event at 0x\w+\n"
                     r"        worker +waiting\.py:5\n", text), text
    assert re.search(r"    greenlet  in gevent\.hub\.sleep\n.*\n        sleeper +waiting\.py:7\n", text), text
    assert "current" not in text


RUNNING = GEVENT.replace("    gevent.sleep(2000)", "    while True:\n        sum(range(100))")


def test_the_greenlet_that_runs(tmp_path):
    with support.Program([packages.need("gevent"), "-I", written(tmp_path, RUNNING)]) as process:
        assert process.line() == "ready"
        text = dump(process)
    assert re.search(r"^    greenlet  current\n    12 greenlets  in ", text, re.M), text


EVENTLET = """
import eventlet, eventlet.event, os
from eventlet.green import socket as green
event = eventlet.event.Event()
ours, theirs = green.socketpair()
def worker():
    event.wait()
def sleeper():
    eventlet.sleep(1000)
def reader():
    ours.recv(1)
def last():
    os.write(1, b"ready\\n")
    eventlet.sleep(2000)
waiting = [eventlet.spawn(each) for each in [worker] * 12 + [sleeper, reader, last]]
waiting[0].wait()
"""


def test_greenlets_of_eventlet(tmp_path):
    with support.Program([packages.need("eventlet"), "-I", written(tmp_path, EVENTLET)]) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "epoll_wait")
        text = dump(process)
    assert re.search(r"^    12 greenlets  in eventlet\.event\.Event\.wait\n"
                     r"(?:        .*\n)*        worker +waiting\.py:7\n", text, re.M), text
    assert re.search(r"^    greenlet  in eventlet\.greenthread\.sleep\n", text, re.M), text
    assert re.search(r"^    greenlet  in eventlet\.greenio\.base\.GreenSocket\.recv\n", text, re.M), text


TRIO = """
import os, trio
async def worker(event):
    await event.wait()
async def last():
    os.write(1, b"ready\\n")
    await trio.sleep(1000)
async def main():
    event = trio.Event()
    async with trio.open_nursery() as nursery:
        for _ in range(12):
            nursery.start_soon(worker, event)
        nursery.start_soon(last)
trio.run(main)
"""


def test_tasks_of_trio(tmp_path):
    with support.Program([packages.need("trio"), "-I", written(tmp_path, TRIO)]) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "epoll_wait")
        text = dump(process)
        assert "12 tasks" not in dump(process, "--no-tasks")
    assert re.search(r"^    12 tasks  in Event\.wait  \(__main__\.worker\)\n        Event\.wait .*\n"
                     r"        worker +waiting\.py:4\n        awaited by task __main__\.main\n", text, re.M), text
    assert re.search(r"^    task __main__\.last  in sleep\n", text, re.M) and "<init>" not in text, text


def test_tasks_of_uvloop(tmp_path):
    text = TASKS.replace("asyncio.get_event_loop_policy().new_event_loop()", "__import__('uvloop').new_event_loop()")
    with support.Program([packages.need("uvloop"), "-I", written(tmp_path, text)]) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "epoll_wait")
        text = dump(process)
    assert re.search(r"^    12 tasks  in Event\.wait of 0x\w+ ", text, re.M), text


SHARED = """
import asyncio, threading

async def waits(future):
    await future

async def waits_for_the_pool(future):
    await future

async def main():
    loop, plain, gate = asyncio.get_running_loop(), asyncio.get_running_loop().create_future(), threading.Event()
    pool = loop.run_in_executor(None, gate.wait)
    kept = [loop.create_task(made) for _ in range(2000) for made in (waits(plain), waits_for_the_pool(pool))]
    loop.call_later(0.5, lambda: print("ready", flush=True))
    await asyncio.wait(kept)

asyncio.run(main())
"""


def test_thousands_of_tasks_for_two_futures(newest, tmp_path):
    """Each is looked at once, for all that wait for it; and what stands behind it is said of all."""
    with support.Target(newest, written(tmp_path, SHARED)) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "epoll_wait")
        text = dump(process)
    assert re.search(r"^    2000 tasks  in executor, running  \(", text, re.M), text[-3000:]
    assert re.search(r"^    2000 tasks  in (_asyncio\.)?Future at 0x\w+  \(", text, re.M), text[-3000:]

# SPDX-License-Identifier: GPL-3.0-or-later
"""Asyncio tasks of all shapes, in several event loops, at rest; and Python's own data about them, as JSON,
keyed by the address of the task. Runs on Python 3.7 and later."""
import asyncio
import gc
import json
import os
import socket
import sys
import threading
import time
import types
import warnings

warnings.simplefilter("ignore")
VERSION = sys.version_info[:2]
tasks = {}  # label: task
loops = {}  # label: loop
kept = []


def spawn(label, coroutine, **options):
    if VERSION >= (3, 8) and label != "unnamed":
        options["name"] = label
    task = asyncio.get_event_loop().create_task(coroutine, **options)
    tasks[label] = task
    return task


class Name:
    """Qualified names have classes in them."""

    async def nap(self):
        await asyncio.sleep(1000)

    @classmethod
    async def outer(cls):
        await cls().nap()


async def nested(depth):
    if depth:
        await nested(depth - 1)
    else:
        await Name.outer()


async def wait_for_it(awaitable):
    return await awaitable


async def use_gather(*awaitables):
    await asyncio.gather(*awaitables)


async def use_nested_gather(first, second, third):
    await asyncio.gather(asyncio.gather(first, second), third)


async def use_wait(*awaitables):
    await asyncio.wait(awaitables)


async def use_wait_for(awaitable):
    await asyncio.wait_for(awaitable, 5000)


async def use_shield(task):
    await asyncio.shield(task)


async def use_lock(lock):
    async with lock:
        await asyncio.sleep(1000)


async def use_condition(condition):
    async with condition:
        await condition.wait()


async def use_executor(blocker):
    await asyncio.get_event_loop().run_in_executor(None, blocker.wait)


async def numbers():
    yield 1
    await asyncio.sleep(1000)
    yield 2


async def use_generator():
    async for _ in numbers():
        pass


async def stubborn():
    try:
        yield 1
    finally:
        await asyncio.sleep(1000)


async def use_aclose():
    generator = stubborn()
    await generator.asend(None)
    await generator.aclose()


async def use_anext(generator):
    await anext(generator)
    await anext(generator, None)  # noqa: F821


@types.coroutine
def old_style(future):
    yield from future


async def use_old_style(future):
    await old_style(future)


class Awaitable:
    def __init__(self, future):
        self.future = future

    def __await__(self):
        return (yield from self.future)


async def use_awaitable(future):
    await Awaitable(future)


async def use_socket(sock):
    await asyncio.get_event_loop().sock_recv(sock, 10)


async def use_stream(sock):
    reader, writer = await asyncio.open_connection(sock=sock)
    kept.append(writer)
    await reader.readline()


async def fail():
    raise ValueError("on purpose")


async def use_group():
    async with asyncio.TaskGroup() as group:
        for label in ("group-child-1", "group-child-2"):
            tasks[label] = group.create_task(Name.outer(), name=label)


async def use_timeout(event):
    async with asyncio.timeout(5000):
        await event.wait()


async def block(blocker):
    wait_blocked(blocker)


def wait_blocked(blocker):
    blocker.wait()


class OwnTask(asyncio.Task):
    pass


def pair():
    ends = socket.socketpair()
    ends[0].setblocking(False)
    kept.extend(ends)
    return ends[0]


async def make_shapes(blocker):
    loop = asyncio.get_event_loop()
    event, lock, queue = asyncio.Event(), asyncio.Lock(), asyncio.Queue()
    future = loop.create_future()
    kept.extend([event, lock, queue, future])
    spawn("nested", nested(10))
    spawn("event", event.wait())
    spawn("queue", queue.get())
    spawn("lock-holder", use_lock(lock))
    spawn("lock", use_lock(lock))
    spawn("condition", use_condition(asyncio.Condition()))
    spawn("semaphore", asyncio.Semaphore(0).acquire())
    spawn("shared", Name.outer())
    spawn("shared-by-1", wait_for_it(tasks["shared"]))
    spawn("shared-by-2", wait_for_it(tasks["shared"]))
    for number in range(3):
        spawn("child-%d" % number, Name.outer())
    spawn("gather", use_gather(tasks["child-0"], tasks["child-1"]))
    spawn("nested-gather", use_nested_gather(*(tasks["child-%d" % i] for i in range(3))))
    spawn("wait-child", Name.outer())
    spawn("wait", use_wait(tasks["wait-child"], tasks["child-2"]))
    spawn("wait_for-child", Name.outer())
    spawn("wait_for", use_wait_for(tasks["wait_for-child"]))
    spawn("shield-child", Name.outer())
    spawn("shield", use_shield(tasks["shield-child"]))
    spawn("executor", use_executor(blocker))
    spawn("generator", use_generator())
    spawn("aclose", use_aclose())
    spawn("old-style", use_old_style(future))
    spawn("awaitable", use_awaitable(future))
    spawn("future", wait_for_it(future))
    spawn("socket", use_socket(pair()))
    spawn("stream", use_stream(pair()))
    spawn("done", asyncio.sleep(0))
    spawn("failed", fail())
    spawn("cancelled", Name.outer())
    spawn("unnamed", Name.outer())
    spawn("ünïcode \U0001f40d", Name.outer())
    tasks["own-class"] = OwnTask(Name.outer())
    if VERSION >= (3, 10):
        spawn("anext", use_anext(numbers()))
    if VERSION >= (3, 11):
        spawn("group", use_group())
        spawn("timeout", use_timeout(event))
    await asyncio.sleep(0.05)
    tasks["cancelled"].cancel()
    await asyncio.sleep(0.05)


async def make_python_tasks():
    """Tasks of the classes written in Python."""
    loop = asyncio.get_event_loop()
    loop.set_task_factory(lambda loop, coro, **options: asyncio.tasks._PyTask(
        coro, loop=loop, **options))
    future = asyncio.futures._PyFuture(loop=loop)
    kept.append(future)
    spawn("python", nested(2))
    spawn("python-future", wait_for_it(future))
    spawn("python-child", Name.outer())
    spawn("python-parent", wait_for_it(tasks["python-child"]))
    spawn("python-done", asyncio.sleep(0))
    await asyncio.sleep(0.05)


async def make_eager_tasks():
    loop = asyncio.get_event_loop()
    if VERSION >= (3, 12):
        loop.set_task_factory(asyncio.eager_task_factory)
    spawn("eager", nested(1))
    spawn("eager-parent", wait_for_it(spawn("eager-child", Name.outer())))
    await asyncio.sleep(0.05)


async def make_running_task(blocker, begun):
    task = spawn("blocked", Name.outer())
    kept.append(task)
    await asyncio.sleep(0.05)
    spawn("running", block(blocker))
    begun.set()


def serve(label, *steps):
    """Runs a loop in this thread."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loops[label] = (loop, threading.get_ident(), getattr(threading, "get_native_id", int)())
    for step in steps:
        loop.run_until_complete(step)
    loop.call_soon(ready.release)
    loop.run_forever()


def frame_of(link):
    for prefix in ("cr", "gi", "ag"):
        if hasattr(link, prefix + "_frame"):
            return getattr(link, prefix + "_frame")
    return None


def next_of(link):
    for attribute in ("cr_await", "gi_yieldfrom", "ag_await"):
        if hasattr(link, attribute):
            return getattr(link, attribute)
    if type(link).__name__ in ("coroutine_wrapper", "async_generator_asend", "FutureIter",
                               "async_generator_athrow", "anext_awaitable"):
        inner = [found for found in gc.get_referents(link)
                 if hasattr(found, "__await__") or hasattr(found, "__anext__") or
                 type(found).__name__ == "coroutine_wrapper"]
        return inner[0] if inner else None
    return None


def chain_of(task):
    chain, link = [], task.get_coro() if hasattr(task, "get_coro") else task._coro
    while link is not None:
        frame = frame_of(link)
        if frame:
            chain.append([link.__qualname__, frame.f_code.co_filename, frame.f_lineno])
        link = next_of(link)
    return chain


def state_of(task, current):
    if not task.done():
        return "running" if task in current else "pending"
    if task.cancelled():
        return "cancelled"
    return "failed" if task.exception() else "done"


def describe(label, task, current):
    state = state_of(task, current)
    loop = next(entry for entry in loops.values() if entry[0] is task.get_loop())
    waiter = task._fut_waiter if state == "pending" else None
    coro = task.get_coro() if hasattr(task, "get_coro") else task._coro
    return {
        "label": label,
        "name": task.get_name() if hasattr(task, "get_name") else None,
        "state": state,
        "coro": coro.__qualname__ if state in ("pending", "running") else None,
        "chain": chain_of(task) if state == "pending" else None,
        "loop": id(loop[0]),
        "tid": loop[2],
        "future": None if waiter is None else id(waiter),
    }


def main():
    blocker, begun = threading.Event(), threading.Event()
    for arguments in (("shapes", make_shapes(blocker)), ("python", make_python_tasks()),
                      ("eager", make_eager_tasks())):
        threading.Thread(target=serve, args=arguments, daemon=True).start()
        ready.acquire()
    threading.Thread(target=serve, daemon=True,
                     args=("running", make_running_task(blocker, begun))).start()
    begun.wait()
    # Nobody wakes up the loop, so that it does not begin.
    tasks["unstarted"] = asyncio.Task(Name.outer(), loop=loops["shapes"][0])
    time.sleep(0.2)
    current = [asyncio.current_task(loop[0]) for loop in loops.values()]
    if VERSION >= (3, 14):
        current = [tasks["running"]]
    print("ready")
    print(json.dumps({str(id(task)): describe(label, task, current)
                      for label, task in tasks.items()}), flush=True)
    sys.stdin.read()
    os._exit(0)  # threads of the executor would be waited for


ready = threading.Semaphore(0)
main()

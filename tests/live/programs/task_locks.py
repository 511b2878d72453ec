# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks that hold locks of asyncio, and tasks that want them."""
import asyncio


async def use(lock, body):
    async with lock:
        await asyncio.sleep(0.001)
        await body


async def want(lock):
    async with lock:
        pass


async def take(lock):
    await lock.acquire()
    await asyncio.sleep(1000)


async def retake(lock):
    async with lock:
        lock.release()
        await asyncio.sleep(1000)


async def wait(condition):
    async with condition:
        await condition.wait()


def start(tasks, name, coroutine):
    task = asyncio.ensure_future(coroutine)
    if hasattr(task, "set_name"):
        task.set_name(name)
    tasks.append(task)


async def main():
    one, two, acquired, retaken, own = [asyncio.Lock() for _ in range(5)]
    pool, condition, tasks = asyncio.Semaphore(2), asyncio.Condition(), []
    start(tasks, "one then two", use(one, want(two)))
    start(tasks, "two then one", use(two, want(one)))
    start(tasks, "own", use(own, want(own)))
    start(tasks, "acquires", take(acquired))
    start(tasks, "retakes", retake(retaken))
    start(tasks, "pool 1", use(pool, asyncio.sleep(1000)))
    start(tasks, "pool 2", use(pool, asyncio.sleep(1000)))
    start(tasks, "waits in condition", wait(condition))
    await asyncio.sleep(0.1)
    start(tasks, "takes retaken", take(retaken))
    start(tasks, "condition", use(condition, asyncio.sleep(1000)))
    await asyncio.sleep(0.1)
    for name, lock in ("acquired", acquired), ("retaken", retaken), ("pool", pool), ("condition", condition):
        start(tasks, "wants " + name, want(lock))
    await asyncio.sleep(0.1)
    print(flush=True)
    await asyncio.sleep(1000)


asyncio.new_event_loop().run_until_complete(main())

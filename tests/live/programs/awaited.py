# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks that measure themselves: awaited.py, until "stop" comes on stdin.

"go SECONDS" makes it use a processor for so long, in tasks that await each other in all the usual ways,
and print as JSON what each chain of tasks and functions has used, by its own clock: keys are what a
profile calls them, outermost first."""
import asyncio
import json
import sys
import time

NAMES = hasattr(asyncio.Task, "set_name")  # from 3.8 on
clock = getattr(time, "thread_time", time.process_time)
spent = {}


def burn(seconds, *chain):
    begin = clock()
    while clock() < begin + seconds:
        sum(range(100))
    key = ";".join(link if NAMES or not link.startswith("[") else "[task]" for link in chain + ("burn",))
    spent[key] = spent.get(key, 0) + clock() - begin


async def inner(seconds, *chain):
    await asyncio.sleep(0)
    burn(seconds, *chain, "inner")
    await asyncio.sleep(0)


async def worker(seconds, *chain):
    await inner(seconds, *chain, "worker")


async def direct():
    """Awaits a coroutine, and then a task."""
    await worker(0.002, "[task]", "main", "[task direct]", "direct")
    await spawn(worker(0.003, "[task]", "main", "[task direct]", "direct", "[task]"))


async def gathered():
    here = "[task]", "main", "[task gathered]", "gathered"
    await asyncio.gather(worker(0.004, *here, "[task]"), spawn(worker(0.001, *here, "[task second]"), "second"))


async def waited():
    here = "[task]", "main", "[task waited]", "waited"
    await asyncio.wait([spawn(worker(0.002, *here, "wait", "_wait", "[task]"))])
    await asyncio.shield(spawn(worker(0.002, *here, "[task]")))


async def timed():
    """wait_for() makes a coroutine a task up to 3.11."""
    here = "[task]", "main", "[task timed]", "timed", "wait_for"
    await asyncio.wait_for(spawn(worker(0.002, *here, "[task third]"), "third"), 600)
    own = () if sys.version_info >= (3, 12) else ("[task]",)
    await asyncio.wait_for(worker(0.002, *(here + own)), 600)


async def grouped():
    here = "[task]", "main", "[task grouped]", "grouped"
    async with asyncio.TaskGroup() as group:
        group.create_task(worker(0.003, *here, "[task fourth]"), name="fourth")
        group.create_task(worker(0.001, *here, "[task]"))


SHAPES = (direct, gathered, waited, timed) + ((grouped,) if hasattr(asyncio, "TaskGroup") else ())  # from 3.11 on


def spawn(coroutine, name=None):
    task = asyncio.get_running_loop().create_task(coroutine)
    if name and NAMES:
        task.set_name(name)
    return task


async def main(seconds):
    end = clock() + seconds
    while clock() < end:
        await asyncio.gather(*(spawn(each(), each.__name__) for each in SHAPES))


def run(seconds):
    spent.clear()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(main(seconds))
    loop.close()
    print(json.dumps(spent), flush=True)


print("ready", flush=True)
for line in sys.stdin:
    order = line.split()
    if order[0] != "go":
        break
    run(float(order[1]))

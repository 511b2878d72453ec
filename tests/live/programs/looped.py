# SPDX-License-Identifier: GPL-3.0-or-later
"""An event loop of asyncio with a task that waits for a queue, for code that runs in the loop."""
import asyncio

LOOPS = []


async def fail():
    raise KeyError("told")


async def main():
    global queue
    queue = asyncio.Queue()
    LOOPS.append(asyncio.get_event_loop())
    print("ready", flush=True)
    while True:
        print("got %r" % await queue.get(), flush=True)


loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
loop.run_until_complete(main())

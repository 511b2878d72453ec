# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests that are known by a context variable: of a thread, and of tasks."""
import asyncio
import contextvars
import threading
import time

request = contextvars.ContextVar("request")


def in_thread():
    request.set("of the thread")
    while True:
        time.sleep(0.01)
        beside = request.get()  # noqa: F841


async def handle(number):
    request.set("of task %d" % number)
    while True:
        await asyncio.sleep(0.01)
        task = number  # noqa: F841


async def main():
    print("ready", flush=True)
    await asyncio.gather(handle(1), handle(2))


threading.Thread(target=in_thread, name="beside", daemon=True).start()
asyncio.new_event_loop().run_until_complete(main())

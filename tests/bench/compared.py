# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that tools are compared on: one thread works, one holds a lock for an hour, one wants
it, tasks of asyncio wait, and a list grows. compared.py prints "ready" when all that stands."""
import asyncio
import threading
import time

lock = threading.Lock()
kept = []
stands = threading.Barrier(4)


class Job:
    def __init__(self, name):
        self.name, self.parts = name, [{"size": 640}, {"size": 641}]


def work(job):
    secret = "needle-42"
    while True:
        kept.append(bytearray(1000))
        assert secret and sum(range(3000)) and len(job.parts) == 2
        time.sleep(0.001)


def hold():
    with lock:
        stands.wait()
        time.sleep(3600)


def want():
    stands.wait()
    with lock:
        pass


async def fetch(event):
    await event.wait()


async def serve():
    event = asyncio.Event()
    tasks = [asyncio.ensure_future(fetch(event)) for _ in range(3)]
    await asyncio.sleep(0.1)
    stands.wait()
    await asyncio.gather(*tasks)


for target in (hold, want, lambda: asyncio.run(serve())):
    threading.Thread(target=target, daemon=True).start()
stands.wait()
print("ready", flush=True)
work(Job("first"))

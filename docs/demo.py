# SPDX-License-Identifier: GPL-3.0-or-later
"""A program with something to see: a busy main thread, workers on a queue, a server, a lock, tasks."""

import asyncio
import queue
import socket
import tempfile
import threading
import time


class Trainer:
    def __init__(self, size):
        self.weights = [0.5] * size
        self.step = 0

    def forward(self, batch):
        return sum(w * x for w, x in zip(self.weights, batch))

    def train(self, data):
        while True:
            loss = self.forward(data[self.step % len(data)])
            self.step += 1
            self.weights[self.step % len(self.weights)] -= loss * 1e-9


def load(jobs):
    while True:
        jobs.get()


def serve(server):
    server.accept()


def hold(lock):
    with lock:
        time.sleep(3600)


def want(lock):
    with lock:
        pass


async def poll(log):
    while True:
        log.write("still alive\n")
        log.flush()
        await asyncio.sleep(1)


async def fetch(ready):
    await ready.wait()


async def requests(log):
    ready = asyncio.Event()
    waiting = [asyncio.create_task(fetch(ready), name="fetch-%d" % i) for i in range(2)]
    await asyncio.gather(poll(log), *waiting)


def main():
    jobs, lock = queue.Queue(), threading.RLock()
    server = socket.create_server(("127.0.0.1", 0))
    for i in range(3):
        threading.Thread(target=load, args=(jobs,), name="loader-%d" % i, daemon=True).start()
    threading.Thread(target=serve, args=(server,), name="server", daemon=True).start()
    threading.Thread(target=hold, args=(lock,), name="checkpoint", daemon=True).start()
    threading.Thread(target=want, args=(lock,), name="evaluate", daemon=True).start()
    folder = tempfile.TemporaryDirectory()
    log = open(folder.name + "/requests.log", "w")
    threading.Thread(target=asyncio.run, args=(requests(log),), name="requests", daemon=True).start()
    print("ready", flush=True)
    Trainer(size=4).train([[i * 0.01] * 4 for i in range(3)])


main()

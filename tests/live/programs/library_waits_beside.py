# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that wait for other processes, descriptors and loops, by functions of the standard library.

Whoever starts it ends the processes of its session."""
import asyncio
import concurrent.futures
import multiprocessing
import multiprocessing.connection
import os
import selectors
import socket
import subprocess
import threading
import time

FORK = multiprocessing.get_context("fork")


def start(name, target, *args):
    threading.Thread(target=target, args=args, name=name, daemon=True).start()


def selects(kind, end):
    selector = kind()
    selector.register(end, selectors.EVENT_READ)
    selector.select()


async def sleeps():
    await asyncio.sleep(1000)


def processes():
    child = FORK.Process(target=time.sleep, args=(1000,))
    child.start()
    own, _other = ends = FORK.Pipe()
    lock, event, jobs = FORK.Lock(), FORK.Event(), FORK.JoinableQueue()
    lock.acquire()
    jobs.put(1)
    pool = FORK.Pool(1)
    result = pool.apply_async(time.sleep, (1000,))
    start("process join", child.join)
    start("process join, timed", child.join, 1000)
    start("connection", own.recv)
    start("connections", multiprocessing.connection.wait, [own])
    start("process queue", FORK.Queue().get)
    start("process lock", lock.acquire)
    start("process event", event.wait)
    start("joinable queue", jobs.join)
    start("pool map", pool.map, time.sleep, [1000])
    start("pool result", result.get)
    shell = subprocess.Popen(["sleep", "1000"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    start("subprocess", shell.wait)
    start("communicate", shell.communicate)
    start("epoll", selects, selectors.DefaultSelector, own)
    start("poll", selects, selectors.PollSelector, own)
    return ends, pool, jobs


def loops():
    loop = asyncio.new_event_loop()
    start("loop", loop.run_until_complete, sleeps())
    other = asyncio.new_event_loop()
    start("empty loop", other.run_forever)
    start("future of a loop", lambda: asyncio.run_coroutine_threadsafe(sleeps(), other).result())
    pool = concurrent.futures.ThreadPoolExecutor(1)
    future = pool.submit(time.sleep, 1000)
    start("as completed", lambda: list(concurrent.futures.as_completed([future])))
    start("shutdown", pool.shutdown)
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(1)
    start("accept", listening.accept)
    return listening


GATE = os.pipe()
kept = processes(), loops()
print("ready", flush=True)
os.read(GATE[0], 1)

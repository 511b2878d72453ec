# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that wait in the standard library without any function of ours above it."""
import concurrent.futures
import multiprocessing
import queue
import threading
import time

EVENT, LOCK, SEMAPHORE = threading.Event(), threading.Lock(), threading.Semaphore(0)
BARRIER, CONDITION = threading.Barrier(2), threading.Condition()
EMPTY, UNFINISHED = queue.Queue(), queue.Queue()
UNFINISHED.put(1)
LOCK.acquire()


class Named(threading.Thread):
    """A subclass that has no run() of its own."""


def start(name, target, *args, **more):
    kind = more.get("kind", threading.Thread)
    thread = kind(target=target, args=args, name=name, daemon=True)
    thread.start()
    return thread


def wait_for_condition():
    with CONDITION:
        CONDITION.wait()


def main():
    sleeper = start("sleeper", time.sleep, 1000)
    start("event", EVENT.wait)
    start("event, timed", EVENT.wait, 1000)
    start("event, subclass", EVENT.wait, kind=Named)
    start("get", EMPTY.get)
    start("queue join", UNFINISHED.join)
    start("lock", LOCK.acquire)
    start("semaphore", SEMAPHORE.acquire)
    start("join", sleeper.join)
    start("barrier", BARRIER.wait)
    start("condition of ours", wait_for_condition)
    if hasattr(queue, "SimpleQueue"):
        start("simple", queue.SimpleQueue().get)
    timer = threading.Timer(1000, print)
    timer.name, timer.daemon = "timer", True
    timer.start()
    fed = multiprocessing.Queue()
    fed.put(1)  # starts a thread "QueueFeederThread"
    pool = concurrent.futures.ThreadPoolExecutor(1)
    future = pool.submit(sleeper.join)
    start("result", future.result)
    start("wait", concurrent.futures.wait, [future])
    for thread in threading.enumerate():
        if thread.name.startswith("ThreadPool"):
            thread.name = "worker"
    idle = concurrent.futures.ThreadPoolExecutor(1)
    idle.submit(int).result()
    for thread in threading.enumerate():
        if thread.name.startswith("ThreadPool"):
            thread.name = "idle worker"
    print(hex(id(LOCK)), flush=True)
    time.sleep(1000)
    fed.close()


main()

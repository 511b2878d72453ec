# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that call deep, in all ways there are, and then fall asleep, each in its own way, where
what the calls have left on their C stacks still lies around.

sleepers.py SHARED SECONDS SEED: number N of the shared file is odd while thread N sleeps; the
threads' ids stand in the line that says ready.
"""
import collections
import functools
import mmap
import os
import queue
import random
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time

try:
    import ctypes

    # A library that calls back into Python and sleeps, if this interpreter can do that.
    LIBC = ctypes.CDLL(None)
    COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    COMPARE(lambda a, b: 0)(1, 1)
except Exception:  # not built, or not working
    ctypes = None

SHARED, SECONDS, SEED = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
LOCK = threading.Lock()
LOCK.acquire()
QUIET_READ, QUIET_WRITE = os.pipe()
QUIET_SOCKET, OTHER_SOCKET = socket.socketpair()
QUIET_SOCKET.settimeout(SECONDS)
RAW_SOCKET, OTHER_RAW_SOCKET = socket.socketpair()


class Odd:
    """Special methods that call on."""

    def __init__(self, depth, rng):
        self.depth, self.rng = depth, rng

    def __eq__(self, other):
        return bool(deep(self.depth, self.rng))

    def __hash__(self):
        return deep(self.depth, self.rng) or 1

    def __repr__(self):
        return str(deep(self.depth, self.rng))

    def __getattr__(self, name):
        return deep(self.depth, self.rng)

    def __del__(self):
        if self.depth > 2:
            deep(1, self.rng)

    def __enter__(self):
        return deep(self.depth, self.rng)

    def __exit__(self, *_):
        pass


def generate(depth, rng):
    yield deep(depth, rng)


def delegate(depth, rng):
    yield from generate(depth, rng)


def with_block(depth, rng):
    with Odd(depth, rng) as result:
        return result


def c_sort(depth, rng):
    if not ctypes:
        return deep(depth, rng)
    array = (ctypes.c_int * 3)(3, 1, 2)
    LIBC.qsort(array, 3, 4, COMPARE(lambda a, b: deep(depth - 2, rng) and 0))
    return 0


WAYS = [
    lambda d, r: deep(d, r),
    lambda d, r: sorted([2, 1], key=lambda item: deep(d, r)) and 0,
    lambda d, r: next(delegate(d, r)),
    lambda d, r: [0 for _ in generate(d, r)] and 0,
    lambda d, r: functools.reduce(lambda a, b: deep(d, r), [1, 2]) and 0,
    lambda d, r: len(re.sub("a", lambda match: str(deep(d, r)), "a")) and 0,
    lambda d, r: int(Odd(d, r) == 3),
    lambda d, r: {Odd(d, r): 1} and 0,
    lambda d, r: len(repr([Odd(d, r)])) and 0,
    lambda d, r: Odd(d, r).some_name,
    lambda d, r: list(map(lambda item: deep(d, r), [1]))[0],
    lambda d, r: eval("deep(d, r)", {"deep": deep, "d": d, "r": r}),
    lambda d, r: functools.partial(deep, d)(r),
    lambda d, r: max([1, 2], key=lambda item: deep(d, r)) and 0,
    with_block,
    c_sort,
]


def deep(depth, rng):
    if depth <= 0:
        return 0
    return rng.choice(WAYS)(depth - 1, rng)


def wait_for_child():
    with subprocess.Popen(["sleep", str(SECONDS)]) as child:
        child.wait()


def with_event():
    threading.Event().wait(SECONDS)


def with_queue():
    try:
        queue.Queue().get(timeout=SECONDS)
    except queue.Empty:
        pass


def with_socket():
    try:
        QUIET_SOCKET.recv(1)
    except socket.timeout:
        pass


def with_blocking_socket():
    timer = threading.Timer(SECONDS, OTHER_RAW_SOCKET.send, [b"x"])
    timer.start()
    RAW_SOCKET.recv(1)


def with_pipe():
    reader, writer = os.pipe()
    timer = threading.Timer(SECONDS, os.write, [writer, b"x"])
    timer.start()
    os.read(reader, 1)
    timer.join()
    os.close(reader)
    os.close(writer)


def with_file():
    reader, writer = os.pipe()
    timer = threading.Timer(SECONDS, os.write, [writer, b"x\n"])
    timer.start()
    with open(reader) as file:
        file.readline()
    os.close(writer)


def with_join():
    thread = threading.Thread(target=time.sleep, args=[SECONDS])
    thread.start()
    thread.join()


def with_poll():
    poll = select.poll()
    poll.register(QUIET_READ, select.POLLIN)
    poll.poll(int(SECONDS * 1000))


def with_epoll():
    with select.epoll() as epoll:
        epoll.register(QUIET_READ, select.EPOLLIN)
        epoll.poll(SECONDS)


SLEEPS = [
    lambda: time.sleep(SECONDS),
    lambda: LOCK.acquire(True, SECONDS),
    lambda: select.select([QUIET_READ], [], [], SECONDS),
    lambda: signal.sigtimedwait([signal.SIGUSR2], SECONDS),
    with_event, with_queue, with_socket, with_blocking_socket, with_pipe, with_file, with_join,
    with_poll, with_epoll, wait_for_child,
]
if ctypes:
    SLEEPS += [
        lambda: LIBC.usleep(int(SECONDS * 1000000)),
        lambda: LIBC.poll(None, 0, int(SECONDS * 1000)),
    ]


def fall_asleep(depth, rng, sleep):
    """Some calls deep, so that the frames overwrite others."""
    if depth > 0:
        return [lambda: fall_asleep(depth - 1, rng, sleep),
                lambda: list(map(lambda item: fall_asleep(depth - 1, rng, sleep), [1])),
                lambda: sorted([1], key=lambda item: fall_asleep(depth - 1, rng, sleep)),
                ][rng.randrange(3)]()
    return sleep()


def run(number, numbers):
    rng = random.Random("%d %d" % (SEED, number))
    names = collections.deque(SLEEPS)
    names.rotate(number)
    while True:
        deep(rng.randrange(3, 25), rng)
        numbers[number] += 1
        fall_asleep(rng.randrange(6), rng, names[0])
        numbers[number] += 1
        names.rotate(1)


def main():
    with open(SHARED, "r+b") as file:
        numbers = memoryview(mmap.mmap(file.fileno(), 0)).cast("q")
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
    threading.stack_size(8 << 20)
    sys.setrecursionlimit(5000)
    for number in range(len(SLEEPS)):
        threading.Thread(target=run, args=[number, numbers], name="sleeper-%d" % number,
                         daemon=True).start()
    print("ready", len(SLEEPS), flush=True)
    sys.stdin.read()
    os._exit(0)


main()

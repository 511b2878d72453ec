# SPDX-License-Identifier: GPL-3.0-or-later
"""Two threads that wait for each other's locks, pools, queues, a large dict, held objects."""

import queue
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

first, second = threading.RLock(), threading.RLock()
both = threading.Barrier(2)
go = threading.Event()


class Kept(object):
    pass


class Keeper(object):
    pass


def take(one, other):
    with one:
        both.wait()
        with other:
            pass


def work():
    go.wait()


for name, locks in (("one", (first, second)), ("two", (second, first))):
    threading.Thread(target=take, args=locks, name=name, daemon=True).start()
pool = ThreadPoolExecutor(2, thread_name_prefix="pool")
for _ in range(5):
    pool.submit(work)
idle = ThreadPoolExecutor(1, thread_name_prefix="idle")
idle.submit(len, ()).result()
full = queue.Queue(3)
for _ in range(3):
    full.put(None)
threading.Thread(target=full.put, args=(None,), name="putter", daemon=True).start()
large = {number: str(number) for number in range(50000)}
keeper = Keeper()
keeper.kept = Kept()
keeper.list = [keeper.kept]
print("ready %d" % id(keeper.kept))
sys.stdout.flush()
go.wait()

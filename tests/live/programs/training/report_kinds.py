# SPDX-License-Identifier: GPL-3.0-or-later
"""More kinds of hangs, most of them after public reports (docs/cluster.tsv names them): `report_kinds.py CASE FILE`, as
rank_kinds.py."""
import asyncio
import logging
import multiprocessing
import os
import queue
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from rank_kinds import FILE, LATE, RANK, SIZE, TENSOR, barrier, main, stuck, there

LOCK = threading.Lock()


def validate_on_one():
    """Rank 0 validates and meets the others, who do not."""
    there()
    if RANK == 0:
        dist.barrier()
    dist.all_reduce(TENSOR)
    dist.barrier()


def uneven_inputs():
    """Rank 2 has fewer batches than the others."""
    model = DistributedDataParallel(torch.nn.Linear(4, 4))
    for _ in range(2):
        model(TENSOR).sum().backward()
    there()
    if RANK != LATE:
        model(TENSOR).sum().backward()
    barrier()


def finish_of_logger():
    """The first rank ends its logger, whose server does not answer."""
    if RANK == 0:
        there()
        thread = threading.Thread(target=stuck, name="sender")
        thread.start()
        thread.join()
    barrier()


class Locked(Dataset):
    """Its worker wants a lock that was held at the fork."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        with LOCK:
            return torch.ones(index)


def loader_fork_lock():
    with LOCK:
        next(iter(DataLoader(Locked(), num_workers=1, multiprocessing_context="fork")))


def locked(number):
    with LOCK:
        return number


def dataset_map_pool():
    with LOCK, multiprocessing.get_context("fork").Pool(1) as pool:
        pool.map(locked, [1])


def partial_line():
    """A child prints half a line, and waits."""
    with subprocess.Popen("printf half; exec sleep 600", shell=True, stdout=subprocess.PIPE) as child:
        child.stdout.readline()


def full_pipe():
    """A child prints more than anybody reads."""
    with subprocess.Popen(["sh", "-c", "while :; do echo line; done"], stdout=subprocess.PIPE) as child:
        child.wait()


def broadcast_instead():
    there()
    if RANK == LATE:
        dist.broadcast(TENSOR, 0)
    dist.all_gather([torch.ones(4) for _ in range(SIZE)], TENSOR)


def other_root():
    there()
    dist.broadcast(TENSOR, LATE if RANK == LATE else 0)
    dist.broadcast(TENSOR, 0 if RANK == LATE else LATE)
    dist.barrier()


def store_key():
    store = dist.distributed_c10d._get_default_store()
    store.get("never")


def receive_never_sent():
    """Rank 0 has begun to receive from rank 2, which stays away."""
    if RANK == 0:
        work = dist.irecv(TENSOR, src=LATE)
        there()
        work.wait()
    if RANK == LATE:
        there()
        stuck()
    barrier()


class Held:
    def __del__(self):
        stuck()


def finalizer():
    held = Held()
    del held


def full_log():
    """Its log is a pipe that nobody reads."""
    _, end = os.pipe()
    logger = logging.getLogger("full")
    logger.addHandler(logging.StreamHandler(os.fdopen(end, "w")))
    while True:
        logger.error("line")


def in_signal_handler():
    signal.signal(signal.SIGUSR1, stuck)
    os.kill(os.getpid(), signal.SIGUSR1)


def importing():
    with open(FILE + "_module.py", "w", encoding="ascii") as file:
        file.write("import socket\na, b = socket.socketpair()\na.recv(1)\n")
    sys.path.insert(0, os.path.dirname(FILE))
    __import__(os.path.basename(FILE) + "_module")


def database():
    first = sqlite3.connect(FILE + ".db", isolation_level=None)
    first.execute("CREATE TABLE t (a)")
    first.execute("BEGIN EXCLUSIVE")
    sqlite3.connect(FILE + ".db", timeout=600).execute("INSERT INTO t VALUES (1)")


def silent_server():
    with socket.create_server(("127.0.0.1", 0)) as server:
        urllib.request.urlopen("http://127.0.0.1:%d/" % server.getsockname()[1], timeout=600)


def event_loop():
    async def wait():
        await asyncio.Event().wait()
    asyncio.run(wait())


def full_queue():
    places = queue.Queue(1)
    places.put(1)
    places.put(2)


def lock_of_a_dead():
    """A process that was killed has taken the lock with it."""
    lock = multiprocessing.get_context("fork").Lock()
    process = multiprocessing.get_context("fork").Process(target=lock.acquire)
    process.start()
    process.join()
    lock.acquire()


def threads_barrier():
    threading.Barrier(2).wait()


def debugger():
    """As at a prompt: it reads what nobody types."""
    sys.stdin = os.fdopen(os.pipe()[0])
    input()


def regex():
    re.match("(a+)+$", "a" * 40 + "b")


def long_product():
    a = torch.ones(64, 64)
    while True:
        a = torch.tanh(a @ a)


def monitored():
    if RANK == LATE:
        there()
        stuck()
    there()
    dist.monitored_barrier()


def objects():
    if RANK == LATE:
        there()
        stuck()
    there()
    dist.all_gather_object([None] * SIZE, {"rank": RANK})


def tensor_and_data():
    """Rank 2 stays away from its tensor-parallel group; the others wait in that, or in the data-parallel one."""
    tensor = [dist.new_group(ranks) for ranks in ([0, 1], [2, 3])][RANK // 2]
    data = [dist.new_group(ranks) for ranks in ([0, 2], [1, 3])][RANK % 2]
    there()
    if RANK == LATE:
        stuck()
    dist.all_reduce(TENSOR, group=tensor)
    dist.all_reduce(TENSOR, group=data)
    dist.barrier()


def starved_start():
    """Rank 2 makes a group later than all others, since it loads for long."""
    if RANK == LATE:
        there()
        time.sleep(600)
    there()
    dist.new_group(list(range(SIZE)))


def remote_call():
    """Rank 0 calls a function of rank 2 that never returns; all others are in a barrier."""
    import torch.distributed.rpc as rpc  # pylint: disable=import-outside-toplevel
    rpc.init_rpc("rank%d" % RANK, rank=RANK, world_size=SIZE, rpc_backend_options=rpc.TensorPipeRpcBackendOptions(
        init_method="file://" + FILE + "_rpc"))
    there()
    if RANK == 0:
        rpc.rpc_sync("rank%d" % LATE, stuck, timeout=0)
    dist.barrier()


AWAY = (loader_fork_lock, dataset_map_pool, partial_line, full_pipe, store_key, finalizer, full_log, in_signal_handler,
        importing, database, silent_server, event_loop, full_queue, lock_of_a_dead, threads_barrier, debugger, regex,
        long_product)
if __name__ == "__main__":
    main(globals(), AWAY)

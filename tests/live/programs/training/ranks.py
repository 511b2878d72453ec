# SPDX-License-Identifier: GPL-3.0-or-later
"""One rank of a job on gloo: does what each line of its stdin says, and prints when it is done."""
import os
import sys
import threading
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
tensor = torch.ones(4)


class Slow(Dataset):
    """Its only item comes when the file is there."""

    def __len__(self):
        return 1

    def __getitem__(self, index):
        while not os.path.exists(sys.argv[1]):
            time.sleep(0.05)
        return index


def gather():
    dist.all_reduce(tensor)


def spread():
    dist.broadcast(tensor, 0)


def receive():
    dist.recv(tensor, (dist.get_rank() + 1) % dist.get_world_size())


def load():
    for _ in DataLoader(Slow(), num_workers=1):
        pass
    dist.all_reduce(tensor)


def loop():
    """Computes and meets the others again and again, until one of them has seen the file."""
    stop = torch.zeros(1)
    while not stop:
        sum(range(20000))
        stop[0] = float(os.path.exists(sys.argv[1]))
        dist.all_reduce(stop)


def read_file():
    time.sleep(0.05)


def uneven():
    """As loop(), but rank 1 reads a slow file in each step."""
    stop = torch.zeros(1)
    while not stop:
        if dist.get_rank() == 1:
            read_file()
        stop[0] = float(os.path.exists(sys.argv[1]))
        dist.all_reduce(stop)


def lock():
    """The main thread and a worker wait for each other for ever."""
    first, second = threading.RLock(), threading.RLock()
    both = threading.Barrier(2)

    def take(one, other):
        with one:
            both.wait()
            with other:
                pass

    threading.Thread(target=take, args=(second, first), daemon=True).start()
    take(first, second)


dist.init_process_group("gloo")
print("ready", flush=True)
for line in sys.stdin:
    globals()[line.strip()]()
    print("done", flush=True)

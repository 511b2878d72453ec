# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for a worker of a DataLoader, or for another rank in a collective."""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch.utils.data import DataLoader, Dataset


class Hangs(Dataset):
    """Its second batch never comes."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index >= 4:
            time.sleep(600)
        return index


def load(workers):
    for _ in DataLoader(Hangs(), batch_size=4, num_workers=workers):
        say("loaded")


def rank(number, folder):
    dist.init_process_group("gloo", rank=number, world_size=2,
                            init_method="file://" + os.path.join(folder, "rendezvous"))
    tensor = torch.ones(4)
    dist.all_reduce(tensor)
    say("rank %d %d" % (number, os.getpid()))
    if number:
        time.sleep(600)
    dist.all_reduce(tensor)


def say(words):
    os.write(1, (words + "\n").encode())


if __name__ == "__main__":
    if sys.argv[1] == "load":
        load(int(sys.argv[2]))
    else:
        multiprocessing.spawn(rank, args=(sys.argv[2],), nprocs=2)

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""One rank of the job of `make demo-cluster`: it trains on gloo until rank 5's data does not come."""
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

HANGS_AT = 20


class Images(Dataset):
    """Files of a shared file system; one of them is on a server that no longer answers."""

    def __len__(self):
        return 2 * HANGS_AT

    def __getitem__(self, index):
        if dist.get_rank() == 5 and index == HANGS_AT:
            return self.read("part-17")
        return torch.ones(4)

    def read(self, name):
        while True:
            time.sleep(600)


def train(loader):
    for batch in loader:
        dist.all_reduce(batch)


torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=int(os.environ["RANK"]),
                        world_size=int(os.environ["WORLD_SIZE"]))
train(DataLoader(Images(), num_workers=1))

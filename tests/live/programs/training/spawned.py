# SPDX-License-Identifier: GPL-3.0-or-later
"""A job without a launcher: the program starts its ranks itself, whose environment says nothing of them."""
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing


def load():
    time.sleep(1000)


def work(rank, world, port):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", "tcp://127.0.0.1:%s" % port, rank=rank, world_size=world)
    dist.barrier()
    print("ready", flush=True)
    if rank == 1:
        load()
    dist.all_reduce(torch.ones(4))


if __name__ == "__main__":
    torch.multiprocessing.spawn(work, (3, sys.argv[1]), 3)

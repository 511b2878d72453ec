# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains on several processes by DistributedDataParallel over gloo, on the CPU:
python examples/ddp.py [--steps N] [--ranks N]

It starts its ranks itself, or is started by torchrun --nproc_per_node 2 examples/ddp.py."""
import argparse
import itertools
import os
import socket
import subprocess
import sys

import torch
import torch.distributed as dist
from torch import nn


def train(steps, rank):
    torch.manual_seed(rank)
    model = nn.parallel.DistributedDataParallel(
        nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for step in itertools.count(1) if steps is None else range(1, steps + 1):
        inputs, targets = torch.randn(128, 64), torch.randint(10, (128,))
        loss = criterion(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0 and rank == 0:
            print("step %d: loss %.4f" % (step, loss.item()), flush=True)


def start_ranks(count):
    """Starts this program once for each rank, as torchrun does; the first exit status that is not 0."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env=dict(
        os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(count), LOCAL_WORLD_SIZE=str(count),
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))) for rank in range(count)]
    try:
        return max(abs(rank.wait()) for rank in ranks)
    except KeyboardInterrupt:
        return 130


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--ranks", type=int, default=2)
    arguments = parser.parse_args()
    if "RANK" not in os.environ:
        return start_ranks(arguments.ranks)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    print("rank %d of %d in process %d" % (dist.get_rank(), dist.get_world_size(), os.getpid()), flush=True)
    train(arguments.steps, dist.get_rank())
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: GPL-3.0-or-later
"""One rank of a training with DDP on gloo. "run N" makes N steps; the rank named by the first argument
gets each batch only when the others have theirs."""
import os
import sys
import time

del sys.path[0]  # Other programs of this folder have the names of modules that torch imports.
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402

LATE, FOLDER = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
dist.init_process_group("gloo")
RANK, WORLD = dist.get_rank(), dist.get_world_size()
count = 0


class Data(Dataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        if RANK != LATE:
            return torch.ones(8)
        names = {"%d-%d" % (rank, count) for rank in range(WORLD) if rank != LATE}
        while not names <= set(os.listdir(FOLDER)):
            time.sleep(0.01)
        time.sleep(0.4)  # the others are slow where much else runs
        return torch.ones(8)


model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 8),
                                                                      torch.nn.Linear(8, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line.split()[1])):
        count += 1
        for batch in DataLoader(Data()):
            if RANK != LATE:
                open(os.path.join(FOLDER, "%d-%d" % (RANK, count)), "w").close()
            ready = torch.ones(1)
            dist.all_reduce(ready)
            loss = model(batch).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            dist.broadcast(ready, 1)
    print("done", flush=True)

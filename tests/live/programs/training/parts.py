# SPDX-License-Identifier: GPL-3.0-or-later
"""One of two ranks on gloo, whose steps wait for data and for the other rank.

Rank 1 is late at each operation. Lines of stdin of rank 0: "begin" measures from the next step on, "end" prints
how many seconds passed, and of these how many in the data loader and in torch.distributed.
"""
import json
import select
import sys
import time

del sys.path[0]  # Other programs of this folder have the names of modules that torch imports.
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402

DATA, LATE = 0.02, 0.05


class Data(Dataset):
    def __len__(self):
        return 1 << 30

    def __getitem__(self, _):
        time.sleep(DATA)
        return torch.ones(8)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ready = dist.get_rank(), torch.ones(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters())
    batches, told = iter(DataLoader(Data())), None
    while True:
        begin = time.perf_counter()
        batch = next(batches) if rank == 0 else torch.ones(8)
        data = time.perf_counter() - begin
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(LATE if rank else 0)
        begin = time.perf_counter()
        dist.all_reduce(ready)
        if told:
            told[1] += data
            told[2] += time.perf_counter() - begin
        elif told is None and rank == 0:
            print("ready", flush=True)
            told = []
        if rank == 0 and select.select([sys.stdin], [], [], 0)[0]:
            if sys.stdin.readline() == "begin\n":
                told = [time.perf_counter(), 0, 0]
                print("begun", flush=True)
            else:
                told[0] = time.perf_counter() - told[0]
                print(json.dumps(told), flush=True)
                told = []


main()

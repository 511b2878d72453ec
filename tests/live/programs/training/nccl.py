# SPDX-License-Identifier: GPL-3.0-or-later
"""The only rank of a training on NCCL. "run N" makes N steps; "hold" holds the GIL, in C, until a line
comes."""
import ctypes
import sys

del sys.path[0]  # Other programs of this folder have the names of modules that torch imports.
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

dist.init_process_group("nccl", rank=0, world_size=1, device_id=torch.device("cuda", 0))
tensor = torch.ones(1000, device="cuda")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8).cuda(), device_ids=[0])
optimizer = torch.optim.AdamW(model.parameters())


def step():
    dist.all_reduce(tensor)
    dist.broadcast(tensor, 0)
    model(torch.ones(4, 8, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


step()
torch.cuda.synchronize()
print("ready", flush=True)
while True:
    word = ""
    while not word.endswith("\n"):
        word += sys.stdin.buffer.raw.read(1).decode() or sys.exit(0)
    for _ in range(int(word.split()[1]) if word.startswith("run") else 0):
        step()
    torch.cuda.synchronize()
    if word == "hold\n":
        print("holds", flush=True)
        ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(1), 1)
    print("done", flush=True)

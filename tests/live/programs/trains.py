# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains a small network on the first GPU, the same way each time, until something is written to its stdin.

It says that it is ready after the first step. At its end it prints a checksum of as many losses as
its first word says, for which it goes on if need be.
"""
import select
import sys
import threading
import time
import zlib

del sys.path[0]  # Other programs of this folder have the names of modules that torch imports.
import torch  # noqa: E402

steps = int(sys.argv[1])
torch.manual_seed(7)
torch.use_deterministic_algorithms(True)
device = torch.device("cuda", 0)
model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512))
model.to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.randn(4096, 512, device=device)
wanted = torch.randn(4096, 512, device=device)
losses = []


def train_step(batch):
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.mse_loss(model(batch), wanted)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())


def watch():
    while True:
        time.sleep(1000)


threading.Thread(target=watch, name="watchdog", daemon=True).start()
train_step(inputs)
print("ready", flush=True)
while len(losses) < steps or not select.select([sys.stdin], [], [], 0)[0]:
    train_step(inputs)
print("%08x" % zlib.crc32(repr(losses[:steps]).encode()), flush=True)

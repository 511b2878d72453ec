# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains, and tells of it as programs do, without a word for probing: in variables of train(); "module" in those of the module;
"gone": in none."""
import sys
import time

del sys.path[0]  # Other programs of this folder have the names of modules that torch imports.
import torch  # noqa: E402

torch.manual_seed(1)
torch.set_num_threads(1)
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


class Large:
    """What a frame holds is not held any longer because it was looked at."""
    alive = 0

    def __init__(self):
        Large.alive += 1

    def __del__(self):
        Large.alive -= 1


def once():
    value = model(torch.randn(4, 8)).square().mean()
    optimizer.zero_grad()
    value.backward()
    return value


def train():
    for epoch in range(10 ** 9):
        for _ in range(20):
            batch = Large()
            loss = once()
            acc1, lr, secret = 0.5, torch.tensor(0.01), "not a number"
            optimizer.step()
            del batch
            if Large.alive:
                sys.exit("the batch is still held")
            time.sleep(0.012)
    return loss, acc1, lr, secret


def hidden():
    while True:
        once()
        optimizer.step()
        time.sleep(0.012)


print("ready", flush=True)
if sys.argv[1] == "train":
    train()
elif sys.argv[1] == "module":
    for epoch in range(10 ** 9):
        loss = once().item()
        optimizer.step()
        time.sleep(0.012)
else:
    hidden()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains until stdin has a line "stop"; a number on stdin is the step in which something gives NaN.
Arguments: "module": one module does, "batch": the input has it, "scaler": it gives infinity in that step only, whose gradients are left out, "fine": none does.
Prints the loss and the sum of all parameters of step 400 when it stops."""
import select
import sys

del sys.path[0]  # Other programs of this folder have the names of modules that torch imports.
import torch  # noqa: E402
from torch import nn  # noqa: E402

MODE, KEPT = sys.argv[1], 400
bad = {"at": -1}


class Root(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(8))

    def forward(self, x):
        x = x * self.scale
        if bad["now"] and MODE == "module":
            return torch.sqrt(x.abs() - 1000)
        return x * (float("inf") if bad["now"] and MODE == "scaler" else 1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.root, self.last = nn.Linear(8, 8), Root(), nn.Linear(8, 1)

    def forward(self, x):
        return self.last(self.root(self.first(x)))


def train():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    step, loss = 0, None
    while True:
        step += 1
        bad["now"] = step == bad["at"]
        batch = torch.randn(4, 8)
        if bad["now"] and MODE == "batch":
            batch[1, 2] = float("nan")
        loss = model(batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        if MODE == "scaler" and bad["now"]:
            for each in model.parameters():
                each.grad.zero_()
        optimizer.step()
        if step == KEPT:
            kept = loss.item(), sum(each.sum().item() for each in model.parameters())
        if step % 20 == 0 and step >= KEPT and select.select([sys.stdin], [], [], 0)[0]:
            word = sys.stdin.readline().strip()
            if word == "stop" or not word:
                print(*kept, flush=True)
                return
            bad["at"] = step + int(word)
            print(bad["at"], flush=True)


print("ready", flush=True)
train()

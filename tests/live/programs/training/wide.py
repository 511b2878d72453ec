# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains a model of many small modules, one after the other. argv: how many, and passes in a step. It makes steps from
one line of stdin to the next."""
import select
import sys

del sys.path[0]  # Other programs of this folder have the names of modules that torch imports.
import torch  # noqa: E402
from torch import nn  # noqa: E402


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x * self.weight


class Wide(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.layers = nn.ModuleList([Small() for _ in range(count)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def main():
    torch.set_num_threads(1)
    count, passes = int(sys.argv[1]), int(sys.argv[2])
    net = Wide(count)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-9)
    print("ready", flush=True)
    while sys.stdin.readline():
        while not select.select([sys.stdin], [], [], 0)[0]:
            optimizer.zero_grad()
            for _ in range(passes):
                net(torch.ones(1)).sum().backward()
            optimizer.step()
        sys.stdin.readline()


main()

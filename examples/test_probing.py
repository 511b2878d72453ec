# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains a small network on made-up data in a plain loop: python examples/test_probing.py [--steps N]"""
import argparse
import itertools
import os

import torch
from torch import nn


def train(steps):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for step in itertools.count(1) if steps is None else range(1, steps + 1):
        inputs, targets = torch.randn(256, 64), torch.randint(10, (256,))
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            print("step %d: loss %.4f" % (step, loss.item()), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int)
    arguments = parser.parse_args()
    print("training in process %d" % os.getpid(), flush=True)
    train(arguments.steps)

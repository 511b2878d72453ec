# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains a little model: one step for each byte of stdin, and says "step" after it."""
import os

import torch


def train():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
    os.write(1, b"ready\n")
    while os.read(0, 1):
        optimizer.zero_grad()
        loss = model(torch.ones(8, 4)).pow(2).mean()
        loss.backward()
        optimizer.step()
        os.write(1, b"step\n")


train()

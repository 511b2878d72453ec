# SPDX-License-Identifier: GPL-3.0-or-later
"""Tensors whose values are looked at, until stdin ends. "moving": with a loss of its own for each step."""
import sys

import torch


def train(moving):
    weight = torch.full((4,), 0.5, requires_grad=True)
    step = 0
    while True:
        loss = (weight * step).sum()
        acc1 = loss.detach() / 2
        step += 1
        if not moving:
            return rest(loss, acc1)


def rest(loss, acc1):
    loss, acc1 = loss + 0.0234, torch.tensor([71], dtype=torch.int16)
    bad = torch.tensor([1.0, float("nan"), float("inf"), float("nan")])
    large = torch.arange(3000.0)
    conjugated = torch.tensor([1 + 2j]).conj()
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    empty, meta = torch.empty(0, 2), torch.empty(0, device="meta")
    leaf = torch.tensor(2.5)
    leaves = {"leaf": leaf, "weight": torch.nn.Parameter(torch.zeros(2))}
    print("ready")
    sys.stdout.flush()
    sys.stdin.read()
    return loss, acc1, bad, large, conjugated, nested, empty, meta, leaf, leaves


if sys.argv[1] == "moving":
    print("ready")
    sys.stdout.flush()
train(sys.argv[1] == "moving")

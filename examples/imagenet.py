# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains a convolutional network on made-up images, in the shape of the well-known example for ImageNet:
python examples/imagenet.py [--steps N] [--workers N]

PROBE_TORCH_EXPRS="loss@train,acc1@train" PROBE=1 python examples/imagenet.py records both values at each step.
"""
import argparse
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CLASSES = 10


class Images(Dataset):
    """Noise with a brighter corner that tells the class."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        target = index % CLASSES
        image = torch.rand(3, 32, 32)
        image[:, target, :CLASSES] += 1
        return image, target


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU())
        self.classifier = nn.Linear(32 * 8 * 8, CLASSES)

    def forward(self, images):
        return self.classifier(self.features(images).flatten(1))


def accuracy(output, target):
    """In percent."""
    return (output.argmax(1) == target).float().mean() * 100


def train(loader, model, criterion, optimizer, epoch, steps):
    """One epoch, of at most so many steps; how many were made."""
    model.train()
    end, made = time.time(), 0
    for i, (images, target) in enumerate(loader):
        if steps is not None and made >= steps:
            break
        data_time = time.time() - end
        output = model(images)
        loss = criterion(output, target)
        acc1 = accuracy(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        made += 1
        if i % 20 == 0:
            print("epoch %d [%d/%d] loss %.4f acc1 %.1f data %.0f ms" % (
                epoch, i, len(loader), loss.item(), acc1.item(), data_time * 1000), flush=True)
        end = time.time()
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, help="end after so many; without it, train on")
    parser.add_argument("--workers", type=int, default=2, help="processes that load data [2]")
    parser.add_argument("--batch-size", type=int, default=32)
    arguments = parser.parse_args()
    print("training in process %d" % os.getpid(), flush=True)
    torch.manual_seed(0)
    model = Network()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loader = DataLoader(Images(3200), batch_size=arguments.batch_size, shuffle=True, num_workers=arguments.workers)
    epoch, left = 0, arguments.steps
    while left is None or left > 0:
        made = train(loader, model, criterion, optimizer, epoch, left)
        left = None if left is None else left - made
        epoch += 1


if __name__ == "__main__":
    main()

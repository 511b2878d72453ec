# SPDX-License-Identifier: GPL-3.0-or-later
"""A small model, and a data loader whose two workers never bring their second batch."""

import sys
import time

del sys.path[0]  # Other programs have the names of modules that torch imports.
import torch  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402


class Numbers(Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, number):
        if number >= 2:
            time.sleep(1000)
        return torch.tensor(number)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(10, 20)
        self.inner = torch.nn.Sequential(torch.nn.Linear(20, 4, bias=False), torch.nn.ReLU())


net = Net()
loader = iter(DataLoader(Numbers(), batch_size=2, num_workers=2))
next(loader)
print("loaded")
sys.stdout.flush()
time.sleep(1000)

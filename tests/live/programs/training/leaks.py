# SPDX-License-Identifier: GPL-3.0-or-later
"""Leaks a hundred tensors for each line on stdin, in a list that a closure has, and says so."""
import sys

import torch


def make_keeper():
    kept = []

    def keep(value):
        kept.append(value)
    return keep


keep = make_keeper()
print("ready")
sys.stdout.flush()
for line in sys.stdin:
    for _ in range(100):
        keep(torch.zeros(1000))
    print("leaked")
    sys.stdout.flush()

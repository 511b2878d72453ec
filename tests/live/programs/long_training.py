# SPDX-License-Identifier: GPL-3.0-or-later
"""Tells probing of as many steps as its second word says: the loss is the number of the step, but NaN in step 777."""
import sys

sys.path.insert(0, sys.argv[1])
import probing  # noqa: E402


def train():
    for number in range(1, int(sys.argv[2]) + 1):
        loss = float("nan") if number == 777 else float(number)
        probing.step(number, epoch=number // 1000, loss=loss, lr=1.0 / number, grad_norm=2.0 * number)


probing.watch("number@train")
train()
print("done", flush=True)
sys.stdin.read()

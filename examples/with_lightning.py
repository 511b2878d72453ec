# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains a Lightning module on made-up data: python examples/with_lightning.py [--steps N]"""
import argparse
import os

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))

    def training_step(self, batch, batch_idx):
        inputs, targets = batch
        loss = nn.functional.cross_entropy(self.net(inputs), targets)
        self.log("loss", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=-1)
    arguments = parser.parse_args()
    print("training in process %d" % os.getpid(), flush=True)
    lightning.seed_everything(0)
    data = TensorDataset(torch.randn(6400, 64), torch.randint(10, (6400,)))
    trainer = lightning.Trainer(max_epochs=-1, max_steps=arguments.steps, accelerator="cpu", logger=False,
                                enable_checkpointing=False, enable_progress_bar=False)
    trainer.fit(Classifier(), DataLoader(data, batch_size=64, shuffle=True))


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains a small model, as far as its stdin says, and prints losses to the last bit.

Lines: "run N" makes N steps and prints their losses, "accumulate N" steps of three passes each, "go"
steps until the next line, "churn" the same with another model each time, "raise" a step whose
innermost module raises, "hook", "gradient" and "optimizer" one in which such a hook or the
optimizer's closure does, "anew" begins again with another model, "other N" steps of another
optimizer besides, "told N" steps that probing.step() numbers 10, 20, …
"""
import json
import select
import sys

del sys.path[0]  # Other programs of this folder have the names of modules that torch imports.
if len(sys.argv) > 1:
    sys.path.insert(0, sys.argv[1])
    import probing
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

WIDTH = 8


class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.broken = False

    def forward(self, x):
        if self.broken:
            raise ValueError("broken")
        return x


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(inplace=True), nn.Dropout(0.1))
        self.broken = Broken()

    def forward(self, x):
        return x + self.broken(self.inner(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, WIDTH)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.blocks.append(self.blocks[0])  # the same block twice
        self.rnn = nn.GRUCell(WIDTH, WIDTH)
        self.kept = Block()
        self.head = nn.Linear(WIDTH, 20)

    def forward(self, x):
        x = self.embed(x)
        for block in self.blocks:
            x = block(x)
        state = x[:, 0] * 0
        for i in range(3):
            state = self.rnn(x[:, i], state)
        x = checkpoint(self.kept, x, use_reentrant=True) + state[:, None]
        return self.head(x)


class Trainer:
    def __init__(self):
        self.net = Model()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=0.01)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 100)
        self.second = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1)

    def passes(self, count):
        losses = []
        for _ in range(count):
            batch = torch.randint(0, 20, (4, 5))
            loss = nn.functional.cross_entropy(self.net(batch).view(-1, 20), batch.view(-1))
            loss.backward()
            losses.append(float(loss).hex())
        return losses

    def step(self, count=1):
        self.optimizer.zero_grad()
        losses = self.passes(count)
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimizer.step()
        self.scheduler.step()
        return losses


def fails(*_):
    raise ValueError("broken")


def fail(trainer, where):
    """A step that raises."""
    net = trainer.net
    handles = {"hook": lambda: [net.head.register_forward_hook(fails)],
               "gradient": lambda: [net.embed.weight.register_hook(fails)]}.get(where, list)()
    net.blocks[1].broken.broken = where == "raise"
    try:
        if where == "optimizer":
            trainer.optimizer.step(fails)
        trainer.step()
        return "it did not raise"
    except ValueError as error:
        return str(error)
    finally:
        net.blocks[1].broken.broken = False
        for handle in handles:
            handle.remove()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    trainer = Trainer()
    trainer.step()
    print("ready")
    sys.stdout.flush()
    for line in sys.stdin:
        word, _, number = line.strip().partition(" ")
        result = []
        if word in ("raise", "hook", "gradient", "optimizer"):
            result = fail(trainer, word)
        elif word == "anew":
            torch.manual_seed(1)
            trainer = Trainer()
            trainer.step()
        while word in ("go", "churn") and not select.select([sys.stdin], [], [], 0)[0]:
            if word == "churn":
                trainer = Trainer()
            trainer.step()
        for i in range(int(number or 0)):
            result += trainer.step(3 if word == "accumulate" else 1)
            if word == "other":
                trainer.second.step()
            elif word == "told":
                probing.step(10 * (i + 1))
        print(json.dumps(result))
        sys.stdout.flush()


main()

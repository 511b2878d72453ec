# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains a small transformer on one thread, and knows itself how much time on a processor its modules take.

Lines on stdin: "begin" measures from the next step on, "end" prints what was measured as JSON, "rest"
prints what the model is made of, and waits for more.
"""
import collections
import json
import select
import sys
import time

del sys.path[0]  # Other programs of this folder have the names of modules that torch imports.
import torch  # noqa: E402
from torch import nn  # noqa: E402

WORDS, WIDTH, LENGTH, BATCH = 400, 64, 24, 4


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.norm = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attn(x, x, x, need_weights=False)[0]
        return x + self.mlp(self.norm(x))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(WIDTH, WORDS)
        self.register_buffer("scale", torch.ones(WIDTH))

    def forward(self, x):
        x = self.embed(x) * self.scale
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Times:
    """CPU times of calls of modules, by hooks: the wait for a processor is luck."""

    def __init__(self, model):
        self.names = {module: "model." + name if name else "model"
                      for name, module in model.named_modules()}
        self.open, self.total = {}, collections.Counter()
        self.begun, self.steps = None, 0
        for module in self.names:
            module.register_forward_pre_hook(self.enter)
            module.register_forward_hook(self.leave)

    def enter(self, module, _):
        self.open[module] = time.thread_time()

    def leave(self, module, *_):
        self.total[self.names[module]] += time.thread_time() - self.open[module]

    def part(self, name, begin):
        self.total[name] += time.thread_time() - begin

    def begin(self):
        self.total.clear()
        self.begun, self.steps = time.thread_time(), 0

    def end(self):
        return {"seconds": time.thread_time() - self.begun, "steps": self.steps,
                "total": dict(self.total)}


def told():
    return sys.stdin.readline().strip() if select.select([sys.stdin], [], [], 0)[0] else None


def parts(model, optimizer):
    return {
        "modules": {"model." + name if name else "model": type(module).__name__
                    for name, module in model.named_modules()},
        "parameters": {"model." + name: list(each.shape) for name, each in model.named_parameters()},
        "state": sum(each.nelement() * each.element_size() for state in optimizer.state.values()
                     for each in state.values() if isinstance(each, torch.Tensor)),
    }


def train():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = Transformer()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    times = Times(model)
    print("ready")
    sys.stdout.flush()
    while True:
        batch = torch.randint(0, WORDS, (BATCH, LENGTH))
        output = model(batch)
        loss = nn.functional.cross_entropy(output.view(-1, WORDS), batch.view(-1))
        optimizer.zero_grad()
        begin = time.thread_time()
        loss.backward()
        times.part("backward", begin)
        begin = time.thread_time()
        optimizer.step()
        times.part("optimizer", begin)
        times.steps += 1
        word = told()
        if word == "begin":
            times.begin()
            print("begun")
        elif word == "end":
            print(json.dumps(times.end()))
        elif word == "rest":
            print(json.dumps(parts(model, optimizer)))
            sys.stdout.flush()
            sys.stdin.readline()
        sys.stdout.flush()


train()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains one of some small models; torch.profiler times its modules meanwhile, when it is told to.

Usage: training_models.py MODEL. Lines of stdin: "begin" starts torch.profiler at the next step, "end"
ends it and prints a list of [name, begin in µs since the epoch, duration in µs]: of "step", "backward",
"optimizer" and the paths of modules.
"""
import json
import select
import sys

sys.path = [path for path in sys.path[1:]]  # Files beside this one have names of modules.
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.profiler import ProfilerActivity, profile, record_function  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

WIDTH = 192


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
        self.embed = nn.Embedding(1000, WIDTH)
        self.layers = nn.ModuleList([Block() for _ in range(3)])
        self.head = nn.Linear(WIDTH, 1000)

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)

    def batch(self):
        return torch.randint(0, 1000, (4, 48))


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.relu = nn.ReLU()

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        return self.relu(x + self.bn2(self.conv2(out)))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 32, 3, padding=1)
        self.layer1 = nn.Sequential(Residual(32), Residual(32))
        self.down = nn.Conv2d(32, 64, 3, stride=2)
        self.layer2 = nn.Sequential(Residual(64), Residual(64))
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        x = self.layer2(self.down(self.layer1(self.stem(x))))
        return self.head(x.mean((2, 3)))

    def batch(self):
        return torch.randn(4, 3, 32, 32)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(1000, WIDTH)
        self.cell = nn.GRUCell(WIDTH, 2 * WIDTH)
        self.head = nn.Linear(2 * WIDTH, 1000)

    def forward(self, x):
        x = self.embed(x)
        state = x.new_zeros(x.shape[0], 2 * WIDTH)
        for i in range(x.shape[1]):
            state = self.cell(x[:, i], state)
        return self.head(state)

    def batch(self):
        return torch.randint(0, 1000, (48, 24))


class Recursive(nn.Module):
    """Calls itself."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, depth=3):
        x = torch.relu(self.inner(x))
        return self(x, depth - 1) if depth else x


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Block()
        self.layers = nn.ModuleList([self.first, Block(), self.first])
        self.recursive = Recursive()
        self.head = nn.Linear(WIDTH, 10)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(self.recursive(x))

    def batch(self):
        return torch.randn(4, 48, WIDTH)


class Checkpointed(Transformer):
    def forward(self, x):
        x = self.embed(x).requires_grad_()
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=True)
        return self.head(x)


MODELS = {"transformer": Transformer, "resnet": ResNet, "rnn": Recurrent, "shared": Shared,
          "checkpointing": Checkpointed}


class Ranges:
    """Names the calls of modules for torch.profiler."""

    def __init__(self, model):
        self.names = {module: "model." + name if name else "model"
                      for name, module in model.named_modules()}
        self.open, self.handles = [], []

    def add(self):
        for module in self.names:
            self.handles.append(module.register_forward_pre_hook(self.enter))
            self.handles.append(module.register_forward_hook(self.leave))

    def remove(self):
        while self.handles:
            self.handles.pop().remove()

    def enter(self, module, _):
        self.open.append(record_function("## " + self.names[module]))
        self.open[-1].__enter__()

    def leave(self, *_):
        self.open.pop().__exit__(None, None, None)


def events(profiler):
    found = []
    for event in profiler.profiler.kineto_results.events():
        if event.name().startswith("## "):
            old = hasattr(event, "start_us")
            begin = event.start_us() if old else event.start_ns() / 1e3
            duration = event.duration_us() if old else event.duration_ns() / 1e3
            found.append([event.name()[3:], begin, duration])
    return found


def told():
    return sys.stdin.readline().strip() if select.select([sys.stdin], [], [], 0)[0] else None


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model = MODELS[sys.argv[1]]()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    ranges = Ranges(model)
    profiler = None
    print("ready", flush=True)
    while True:
        batch = model.batch()
        with record_function("## step"):
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            with record_function("## backward"):
                loss.backward()
            with record_function("## optimizer"):
                optimizer.step()
        word = told()
        if word == "begin":
            ranges.add()
            profiler = profile(activities=[ProfilerActivity.CPU])
            profiler.__enter__()
            print("begun", flush=True)
        elif word == "end":
            profiler.__exit__(None, None, None)
            ranges.remove()
            print(json.dumps(events(profiler)), flush=True)


main()

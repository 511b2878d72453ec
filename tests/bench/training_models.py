# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains one of some small models; torch.profiler times its modules meanwhile, when it is told to.

Usage: training_models.py MODEL DEVICE. Lines of stdin: "begin" starts torch.profiler at the next step, "end" ends
it and prints a list of [name, begin in µs since the epoch, duration in µs]: of "step", "backward",
"optimizer" and the paths of modules. "clock" and "profiler" time each call of a module within its forward,
by a clock or by torch.profiler; "end" then prints a list of [path, number of the step, number of the call,
duration in µs]. "steps" only has "end" print when steps began, in seconds since the epoch, and how many µs they took.
"""
import json
import select
import sys
import time

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


class Calls:
    """Times calls of modules within their forward, while other tools have hooks outside of it.

    What those take is no part of a call: of each one, it is the time that is not in its forward.
    """

    def __init__(self, model, profiled):
        self.names = {module: "model." + name if name else "model"
                      for name, module in model.named_modules()}
        self.profiled, self.original = profiled, nn.Module.__call__
        self.open, self.step = [], 0
        self.calls, self.hooks = [], []  # seconds: in its forward; of that, in hooks of calls in it

    def add(self):
        # Names of modules are looked for in variables, unless these begin so.
        def call(_module, *args, **kwargs):
            return self.outside(_module, args, kwargs)

        nn.Module.__call__ = call
        for module in self.names:
            module.forward = self.inside(module.forward)

    def remove(self):
        nn.Module.__call__ = self.original
        for module in self.names:
            del module.forward

    def outside(self, _module, args, kwargs):
        if _module not in self.names:
            return self.original(_module, *args, **kwargs)
        found = [self.names[_module], self.step, len(self.calls), 0.0]
        self.calls.append(found)
        self.hooks.append(0.0)
        self.open.append(found)
        begin = time.perf_counter()
        result = self.original(_module, *args, **kwargs)
        whole = time.perf_counter() - begin
        self.open.pop()
        if self.open:
            self.hooks[self.open[-1][2]] += whole - found[3] + self.hooks[found[2]]
        return result

    def inside(self, forward):
        def timed(*args, **kwargs):
            found = self.open[-1]
            begin = time.perf_counter()
            if self.profiled:
                with record_function("## %d" % found[2]):
                    result = forward(*args, **kwargs)
            else:
                result = forward(*args, **kwargs)
            found[3] = time.perf_counter() - begin
            return result

        return timed

    def told(self, ranges):
        """The calls; by torch.profiler, if these are its ranges."""
        lengths = {int(name): length for name, _, length in ranges if name.isdigit()}
        return [[name, step, number, lengths.get(number, length * 1e6) - 1e6 * hooks]
                for (name, step, number, length), hooks in zip(self.calls, self.hooks)]


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


class Tool:
    """What times calls or steps, until it is told to end."""

    def __init__(self, word, model):
        self.word, self.profiler, self.steps = word, None, []
        self.timer = Ranges(model) if word == "begin" else None if word == "steps" else \
            Calls(model, word == "profiler")
        if self.timer:
            self.timer.add()
        if word in ("begin", "profiler"):
            self.profiler = profile(activities=[ProfilerActivity.CPU])
            self.profiler.__enter__()

    def step(self, number, began):
        self.steps.append([began[0], (time.perf_counter() - began[1]) * 1e6])
        if isinstance(self.timer, Calls):
            self.timer.step = number + 1

    def end(self):
        if self.profiler:
            self.profiler.__exit__(None, None, None)
        if self.timer:
            self.timer.remove()
        found = events(self.profiler) if self.profiler else []
        return found if self.word == "begin" else self.steps if self.word == "steps" else \
            self.timer.told(found)


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    device = torch.device(sys.argv[2])
    model = MODELS[sys.argv[1]]().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    tool, number = None, 0
    print("ready", flush=True)
    while True:
        began = time.time(), time.perf_counter()
        with record_function("## step"):
            batch = model.batch().to(device)
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            with record_function("## backward"):
                loss.backward()
            with record_function("## optimizer"):
                optimizer.step()
        number += 1
        if tool:
            tool.step(number, began)
        word = told()
        if word == "end":
            print(json.dumps(tool.end()), flush=True)
            tool = None
        elif word:
            tool = Tool(word, model)
            tool.step(number, began)
            tool.steps.clear()
            print("begun", flush=True)


main()

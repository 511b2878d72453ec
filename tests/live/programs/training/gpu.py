# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains a transformer on the device that its first word names, so large that the GPU takes the time.

The second word is a factor of its size. Lines of stdin: "run N" makes N steps and prints their losses to
the last bit, "anew" begins again, "go" steps until the next line, "rest" prints what the model is made of,
"profile N" lets torch.profiler time N steps and prints how long the GPU was at modules and parts of a step
(medians, in µs), "capture" captures a graph of a forward pass and replays it, "memory" prints what
torch holds, "compile" trains a compiled model from now on.
"""
import json
import os
import select
import statistics
import sys

del sys.path[0]  # Other programs of this folder have the names of modules that torch imports.
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.profiler import ProfilerActivity, profile, record_function  # noqa: E402

DEVICE, SIZE = torch.device(sys.argv[1]), int(sys.argv[2])
WORDS, WIDTH, HEADS, LENGTH, BATCH = 1000, 64 * SIZE, 8, 32 * SIZE, 2 * SIZE
CUDA = DEVICE.type == "cuda"


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        parts = self.inner(x).view(BATCH, LENGTH, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        query, key, value = parts
        weights = (query @ key.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5).softmax(-1)
        return self.outer((weights @ value).transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn, self.norm = Attention(), nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attn(x)
        return x + self.mlp(self.norm(x))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(WIDTH, WORDS)
        self.head.weight = nn.Parameter(self.embed.weight.detach().clone())
        self.register_buffer("scale", torch.ones(WIDTH))

    def forward(self, x):
        x = self.embed(x) * self.scale
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Ranges:
    """Names the calls of modules for torch.profiler."""

    def __init__(self, model):
        self.names = {module: "model." + name if name else "model"
                      for name, module in model.named_modules()}
        self.open, self.handles = [], []
        for module in self.names:
            self.handles.append(module.register_forward_pre_hook(self.enter))
            self.handles.append(module.register_forward_hook(self.leave))

    def enter(self, module, _):
        self.open.append(record_function("## " + self.names[module]))
        self.open[-1].__enter__()

    def leave(self, *_):
        self.open.pop().__exit__(None, None, None)

    def remove(self):
        for handle in self.handles:
            handle.remove()


class Trainer:
    def __init__(self):
        torch.manual_seed(7)
        self.model = Transformer().to(DEVICE)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.batch = torch.randint(0, WORDS, (BATCH, LENGTH), device=DEVICE)
        self.called = self.model
        self.view = self.model.head.weight[:2]

    def step(self):
        with record_function("## step"):
            output = self.called(self.batch)
            loss = nn.functional.cross_entropy(output.view(-1, WORDS), self.batch.view(-1))
            self.optimizer.zero_grad()
            with record_function("## backward"):
                loss.backward()
            with record_function("## optimizer"):
                self.optimizer.step()
        return loss.detach()

    def parts(self):
        return {
            "modules": {"model." + name if name else "model": type(module).__name__
                        for name, module in self.model.named_modules()},
            "parameters": {"model." + name: list(each.shape)
                           for name, each in self.model.named_parameters()},
            "state": sum(each.nelement() * each.element_size()
                         for state in self.optimizer.state.values()
                         for each in state.values() if isinstance(each, torch.Tensor)),
        }

    def capture(self):
        stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        with torch.no_grad():
            with torch.cuda.stream(stream):
                self.model(self.batch)
            stream.synchronize()
            with torch.cuda.graph(graph):
                result = self.model(self.batch)
            graph.replay()
            torch.cuda.synchronize()
            return bool((result == self.model(self.batch)).all())


def profiled(trainer, count):
    """By name: the median of the range on the GPU; and the mean of the kernels' time in it."""
    ranges = Ranges(trainer.model)
    spans, kernels = {}, {}
    # A GPU that has just been idle is faster than a busy one.
    for _ in range(count):
        trainer.step()
    with profile(activities=[ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * CUDA) as profiler:
        for _ in range(count):
            trainer.step()
        if CUDA:
            torch.cuda.synchronize()
    for event in profiler.profiler.kineto_results.events():
        if event.name().startswith("## ") and "CUDA" in str(event.device_type()):
            spans.setdefault(event.name()[3:], []).append(event.duration_ns() / 1e3)
    for event in profiler.key_averages():
        if event.key.startswith("## ") and "CUDA" not in str(getattr(event, "device_type", "")):
            kernels[event.key[3:]] = getattr(event, "device_time_total", 0) / event.count
    ranges.remove()
    return {name: [statistics.median(spans.get(name, [0])), kernels[name]] for name in kernels}


def main():
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    trainer = Trainer()
    trainer.step()
    print("ready", flush=True)
    for line in sys.stdin:
        word, _, number = line.strip().partition(" ")
        result = []
        if word == "run":
            result = [float(loss).hex() for loss in [trainer.step() for _ in range(int(number))]]
        elif word == "anew":
            trainer = Trainer()
            trainer.step()
        elif word == "rest":
            result = trainer.parts()
        elif word == "profile":
            result = profiled(trainer, int(number))
        elif word == "capture":
            result = trainer.capture()
        elif word == "memory":
            result = [torch.cuda.memory_allocated(), torch.cuda.memory_reserved()]
        elif word == "compile":
            trainer.called = torch.compile(trainer.model, backend="eager")
            trainer.step()
        while word == "go" and not select.select([sys.stdin], [], [], 0)[0]:
            trainer.step()
        print(json.dumps(result), flush=True)


main()

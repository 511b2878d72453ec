# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains a model whose modules look at the clock themselves when their forward begins and returns.

Its long calls take LONG seconds. Lines of stdin: "clock" steps until the next line, "profile" the same with
torch.profiler timing each forward, too. It then prints a list of [module, step, seconds by the clock,
seconds by torch.profiler or null].
"""
import contextlib
import json
import select
import sys
import time

del sys.path[0]  # Other programs of this folder have the names of modules that torch imports.
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.profiler import ProfilerActivity, profile, record_function  # noqa: E402

LONG, WIDTH, LARGE = 0.01, 64, 150
told = {"step": 0, "calls": [], "profiled": False}


def timed(name, forward, x):
    """Its result, and a note of the time it took."""
    begin, number = time.perf_counter(), len(told["calls"])
    told["calls"].append([name, told["step"], None, None])
    with record_function("## %d" % number) if told["profiled"] else contextlib.nullcontext():
        x = forward(x)
    told["calls"][number][2] = time.perf_counter() - begin
    return x


class Short(nn.Module):
    def forward(self, x):
        return timed("net.short", torch.tanh, x)


class Long(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(WIDTH))
        self.large = torch.eye(LARGE)  # torch.profiler keeps each operation

    def inner(self, x):
        end = time.perf_counter() + LONG
        with torch.no_grad():
            while time.perf_counter() < end:
                self.large @ self.large
        return x @ self.weight

    def forward(self, x):
        return timed("net.long", self.inner, x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.long, self.short = Long(), Short()

    def forward(self, x):
        return timed("net", lambda x: self.short(self.long(self.short(self.long(x)))), x)


def by_profiler(profiler):
    for event in profiler.profiler.kineto_results.events():
        if event.name().startswith("## "):
            old = hasattr(event, "duration_us")
            seconds = event.duration_us() / 1e6 if old else event.duration_ns() / 1e9
            told["calls"][int(event.name()[3:])][3] = seconds


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-6)
    batch = torch.randn(8, WIDTH)

    def step():
        told["step"] += 1
        optimizer.zero_grad()
        net(batch).square().mean().backward()
        optimizer.step()

    step()
    print("ready", flush=True)
    for line in sys.stdin:
        told["profiled"], told["calls"] = line.strip() == "profile", []
        profiler = profile(activities=[ProfilerActivity.CPU])
        with profiler if told["profiled"] else contextlib.nullcontext():
            while line.strip() and not select.select([sys.stdin], [], [], 0)[0]:
                step()
        if told["profiled"]:
            by_profiler(profiler)
        print(json.dumps(told["calls"]), flush=True)


main()

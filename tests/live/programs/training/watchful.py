# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains, and watches what is done to it. Lines on stdin: "look" prints what it sees of itself, "profile"
runs torch's profiler itself for a step and prints how often each operator was called, "profiled" how long its steps take then, "losses" and "count" print those so far.

Arguments: "own" profiles each step itself, "fork" starts a process in every fourth step, "hook" has a slow hook of its own,
"idle" trains no more after five steps, "raise" has a forward that raises in every other step, "thread" trains in a
thread that is not the main one."""
import json
import os
import select
import sys
import threading
import time
import warnings

del sys.path[0]  # Other programs of this folder have the names of modules that torch imports.
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.autograd import profiler  # noqa: E402

MODE = sys.argv[1] if len(sys.argv) > 1 else ""
BATCH, WIDTH = 16, 48
seen = []
warnings.showwarning = lambda *what: seen.append(str(what[0]))
REAL = {"fork": os.fork, "prepare": profiler._prepare_profiler, "enable": profiler._enable_profiler,
        "call": nn.Module.__call__}
optim = sys.modules[torch.optim.Optimizer.__module__]
HOOKS = [(torch.nn.modules.module, "_global_forward_hooks"), (torch.nn.modules.module, "_global_forward_pre_hooks"),
         (optim, "_global_optimizer_pre_hooks"), (optim, "_global_optimizer_post_hooks")]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)
        self.fails = False

    def forward(self, x):
        x = torch.relu(self.up(x))
        if self.fails:
            raise ValueError("as planned")
        return self.down(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())
        self.conv = nn.Conv2d(1, 2, 3, padding=1)

    def forward(self, x):
        x = self.blocks(x)  # line of the blocks
        return self.conv(x.view(-1, 1, 6, 8))


def look():
    return {
        "functions": [os.fork is REAL["fork"], profiler._prepare_profiler is REAL["prepare"],
                      profiler._enable_profiler is REAL["enable"], nn.Module.__call__ is REAL["call"],
                      torch.optim.AdamW.step is REAL["step"]],
        "hooks": [len(getattr(module, name, ())) for module, name in HOOKS],
        "enabled": [torch.autograd._profiler_enabled(), getattr(profiler, "_is_profiler_enabled", False)],
        "traced": [sys.getprofile() is None, sys.gettrace() is None],
        "files": len(os.listdir("/proc/self/fd")),
        "shared": [name for name in os.listdir("/dev/shm") if name.startswith("probing-")],
        "warnings": seen,
        "modules": sorted(set(sys.modules) & {"torch.profiler.profiler", "tempfile"}),
    }


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


class Training:
    def __init__(self):
        torch.manual_seed(1)
        torch.set_num_threads(1)
        self.model = Net()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.001)
        self.losses, self.times, self.children = [], [], []

    def step(self):
        began = time.monotonic()
        self.model.blocks[1].fails = MODE == "raise" and len(self.losses) % 2 == 1
        try:
            loss = self.model(torch.randn(BATCH, WIDTH)).square().mean()
            loss.backward()
        except ValueError:
            loss = torch.tensor(0.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.losses.append(loss.item())
        self.times.append(time.monotonic() - began)
        if MODE == "fork" and len(self.losses) % 4 == 0:
            self.fork()

    def fork(self):
        reads, writes = os.pipe()
        child = os.fork()
        if not child:
            os.write(writes, b"1" if torch.autograd._profiler_enabled() else b"0")
            os._exit(0)
        os.close(writes)
        self.children.append(os.read(reads, 1).decode())
        os.close(reads)
        os.waitpid(child, 0)

    def profiled(self):
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as found:
            self.step()
        return {each.key: each.count for each in found.key_averages()}

    def many_profiled(self):
        """Seconds of a step while torch's profiler runs, as programs use it."""
        times, self.times = self.times, []
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True):
            for _ in range(20):
                self.step()
        found, self.times = sorted(self.times), times
        return found[10]

    def answer(self, word):
        if word == "look":
            return look()
        if word == "profile":
            return self.profiled()
        if word == "times":
            times, self.times = sorted(self.times), []
            return {"median": times[len(times) // 2], "count": len(times), "resident": resident()}
        if word == "profiled":
            return self.many_profiled()
        if word == "count":
            return len(self.losses)
        return {"losses": self.losses, "children": self.children}

    def run(self):
        print("ready", flush=True)
        while True:
            if MODE == "own":
                self.own = self.profiled()
            elif MODE != "idle" or len(self.losses) < 5:
                self.step()
            else:
                time.sleep(0.01)
            if select.select([sys.stdin], [], [], 0)[0]:
                word = sys.stdin.readline().strip()
                if not word:
                    return
                print(json.dumps(self.answer(word)), flush=True)


training = Training()
REAL["step"] = torch.optim.AdamW.step  # which torch changes when it makes the first one
if MODE == "hook":
    optim.register_optimizer_step_post_hook(lambda *_: time.sleep(0.02))
if MODE == "thread":
    thread = threading.Thread(target=training.run)
    thread.start()
    thread.join()
else:
    training.run()

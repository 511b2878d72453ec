# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs of thousands of ranks: the answers of a real job's rank, repeated for all of them.

The hosts are an ssh that answers from a file after a delay, or never (programs/far_host.c)."""
import copy
import json
import os
import subprocess

# One rank that is given 1 loads data, all others wait in a collective, below so many frames.
RANK = """
import os, sys, time, types
def all_reduce():
    print("ready", flush=True)
    time.sleep(1000)
def load():
    print("ready", flush=True)
    time.sleep(1000)
# What torch's module is called, without torch.
module = types.FunctionType(all_reduce.__code__, {
    "__name__": "torch.distributed.distributed_c10d", "print": print, "time": time})
def step(depth):
    if depth:
        return step(depth - 1)
    return load() if sys.argv[1] == "1" else module()
step(%d)
"""

# Rank 1 ends as it is told, if it is, and the others wait for all three.
ENDING = """
import os, signal, sys, time, types
class Group:
    pass
def barrier(group=None):
    print("ready", flush=True)
    time.sleep(1000)
module = types.ModuleType("torch.distributed.distributed_c10d")
sys.modules[module.__name__] = module
call = types.FunctionType(barrier.__code__, {"__name__": module.__name__, "print": print, "time": time}, "barrier",
                          (None,))
group = Group()
module._pg_group_ranks = {group: {0: 0, 1: 1, 2: 2}}
module._pg_names = {group: "0"}
if sys.argv[1] == "1" and END is not None:
    print("ready", flush=True)
    if END < 0:
        os.kill(os.getpid(), -END)
    os._exit(END)
call(group=group)
"""


def ending(code):
    """The source of ranks of which rank 1 ends with that code; None: it does not end."""
    return ENDING.replace("END", str(code))


PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "far_host.c")


def vary(rank, frames, number):
    """Gives a rank lines of its own in its inner frames."""
    for thread in rank["threads"]:
        for place in range(min(8, len(thread["frames"]) - 1)):
            frame = dict(frames[thread["frames"][place]])
            frame["line"] += number
            thread["frames"][place] = len(frames)
            frames.append(frame)


def write(folder, looks, count, per_host, late, dead, stacks=1):
    # pylint: disable=too-many-arguments,too-many-positional-arguments
    """Writes an ssh into `folder` and the answers of count/per_host hosts: rank `late` has the stacks of
    the recorded rank 1, all others those of rank 0, with so many different lines. Every dead-th host never answers. Returns the hosts,
    and the ranks that cannot be known."""
    recorded = json.loads(looks)
    hosts, missing = [], []
    for first in range(0, count, per_host):
        host = "host%05d" % (first // per_host)
        hosts.append(host)
        if dead and (first // per_host) % dead == dead - 1:
            missing += range(first, first + per_host)
            continue
        ranks, frames = [], copy.copy(recorded["frames"])
        for number in range(first, first + per_host):
            rank = copy.deepcopy(recorded["ranks"][number == late])
            rank.update(rank=number, local_rank=number - first)
            if number % stacks:
                vary(rank, frames, number % stacks)
            ranks.append(rank)
        with open(os.path.join(folder, host), "w", encoding="utf-8") as file:
            json.dump(dict(recorded, world_size=count, ranks=ranks, frames=frames), file)
    subprocess.run(["cc", "-O1", "-o", os.path.join(folder, "ssh"), PROGRAM], check=True)
    return hosts, missing


def environment(folder):
    """An environment in which ssh leads to those hosts."""
    return dict(os.environ, SIMULATED=folder, PATH="%s:%s" % (folder, os.environ["PATH"]))

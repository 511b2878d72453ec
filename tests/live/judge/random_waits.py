# SPDX-License-Identifier: GPL-3.0-or-later
"""Random programs of several processes whose threads wait for each other, with the truth about each.

A pipe is only read or only written, and a semaphore only waited for, so that a wait ends only if somebody who is free acts. Run as a
program, with a plan in JSON as the argument, this is such a program."""
import ctypes
import json
import mmap
import multiprocessing
import os
import random
import select
import signal
import sys
import threading
import time

FREE = ("sleep", "limited")
SEMAPHORES = 2


def make_plan(number):
    """[{"keeps": [pipes' ends that stay open], "threads": [[action, pipe or process]]}], the parent first."""
    rng = random.Random(number)
    processes, pipes = rng.randint(1, 4), rng.randint(1, 4)
    used = [rng.choice("rw") for _ in range(pipes)]
    plan = [{"keeps": set(), "threads": []} for _ in range(processes)]
    for pipe, use in enumerate(used):
        other = "w" if use == "r" else "r"
        for process in rng.sample(range(processes), rng.randint(1, processes)):
            plan[process]["keeps"].add("%s%d" % (other, pipe))
    for semaphore in range(SEMAPHORES):
        for process in rng.sample(range(processes), rng.randint(1, processes)):
            plan[process]["keeps"].add("s%d" % semaphore)
    for index, process in enumerate(plan):
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            kinds = ["pipe"] * 6 + ["semaphore"] * 2 + ["sleep", "limited"] + (["child"] * 6 if not index and processes > 1 else [])
            kind = rng.choice(kinds)
            if kind == "child":
                process["threads"].append(["child", rng.randrange(1, processes)])
            elif kind == "sleep":
                process["threads"].append(["sleep", 0])
            elif kind == "semaphore":
                semaphore = rng.randrange(SEMAPHORES)
                process["keeps"].add("s%d" % semaphore)
                process["threads"].append(["semaphore", semaphore])
            else:
                pipe = rng.randrange(pipes)
                process["keeps"].add("%s%d" % (used[pipe], pipe))
                action = {"r": "read", "w": "write"}[used[pipe]]
                process["threads"].append(["limited" if (kind, action) == ("limited", "read") else action, pipe])
    return [{"keeps": sorted(process["keeps"]), "threads": process["threads"]} for process in plan]


def enders(plan, index, action, what):
    """The processes that can end a wait."""
    if action == "child":
        return [what]
    end = {"read": "w%d", "write": "r%d", "semaphore": "s%d"}[action] % what
    return [number for number, process in enumerate(plan) if end in process["keeps"]]


def stuck_threads(plan):
    """{(process, thread)} of those that nobody who is free can wake."""
    stuck = {(p, t) for p, process in enumerate(plan) for t, (action, _) in enumerate(process["threads"])
             if action not in FREE}
    while True:
        whole = {p for p, process in enumerate(plan) if all((p, t) in stuck for t in range(len(process["threads"])))}
        left = {(p, t) for p, t in stuck if set(enders(plan, p, *plan[p]["threads"][t])) <= whole}
        if left == stuck:
            return stuck
        stuck = left


def in_circle(plan, process):
    """True if a stuck thread of the process waits for others that wait for its process."""
    stuck = stuck_threads(plan)

    def after(at):
        who = enders(plan, at[0], *plan[at[0]]["threads"][at[1]])
        # Its own process among others is no circle.
        return {other for other in stuck if other[0] in who and (other[0] != at[0] or len(who) == 1)}
    for start in (at for at in stuck if at[0] == process):
        reached, new = set(), after(start)
        while new:
            reached |= new
            new = set().union(*map(after, new)) - reached
        if start in reached:
            return True
    return False


def act(action, what, pipes, children, semaphores):
    if action == "child":
        os.waitpid(children[what], 0)
    elif action == "read":
        os.read(pipes[what][0], 1)
    elif action == "write":
        while True:
            os.write(pipes[what][1], b"x" * 65536)
    elif action == "semaphore":
        semaphores[what].acquire()
    elif action == "limited":
        select.select([pipes[what][0]], [], [], 100000)
    else:
        time.sleep(100000)


def main():
    plan = json.loads(sys.argv[1])
    pipes = [os.pipe() for _ in range(8)]
    semaphores = [multiprocessing.get_context("fork").Semaphore(0) for _ in range(SEMAPHORES)]
    children, number = [0], 0
    for index in range(1, len(plan)):
        pid = os.fork()
        if not pid:
            number = index
            break
        children.append(pid)
    for pipe, ends in enumerate(pipes):
        for end, fd in zip("rw", ends):
            if "%s%d" % (end, pipe) not in plan[number]["keeps"]:
                os.close(fd)
    unmap = ctypes.CDLL(None).munmap
    unmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    for index, semaphore in enumerate(semaphores):
        if "s%d" % index not in plan[number]["keeps"]:
            unmap(semaphore._semlock.handle, mmap.PAGESIZE)
    for action, what in plan[number]["threads"][1:]:
        threading.Thread(target=act, args=(action, what, pipes, children, semaphores)).start()
    if not number:
        print(" ".join(map(str, [os.getpid()] + children[1:])), flush=True)
    act(*plan[number]["threads"][0], pipes, children, semaphores)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    main()

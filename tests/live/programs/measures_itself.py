# SPDX-License-Identifier: GPL-3.0-or-later
# Functions that measure themselves. It says "ready", runs for as many seconds as the first line of stdin says, and
# prints what each function used: "MODE NAME SECONDS". Then it says "end", and waits for its own.
import os
import select
import sys
import threading
import time

cpu, wall = getattr(time, "thread_time", time.process_time), time.monotonic
counters = os.open("/proc/self/task/%d/schedstat" % os.getpid(), os.O_RDONLY)
spent = {}


def spend(mode, name, seconds):
    spent[mode, name] = spent.get((mode, name), 0.0) + seconds


def times():
    """Of the main thread, by mode."""
    passed, ran, queued = wall(), cpu(), int(os.pread(counters, 99, 0).split()[1]) / 1e9
    return {"cpu": ran, "wall": passed, "runqueue": queued, "blocked": passed - ran - queued}


def measure(modes, seconds, *functions):
    end = wall() + seconds
    while wall() < end:
        for function in functions:
            before = times()
            function()
            after = times()
            for mode in modes:
                spend(mode, function.__name__, after[mode] - before[mode])


def burn(seconds):
    end = cpu() + seconds
    while cpu() < end:
        sum(range(100))


# On a processor, and the time that passed.

def short():
    burn(0.003)


def long():
    burn(0.007)


def tiny():
    pass


def many():
    for _ in range(20000):
        tiny()


def waiting():
    burn(0.001)
    time.sleep(0.004)


# Blocked. Nothing else runs meanwhile, so no time goes to waiting for the GIL.

def locked():
    lock.acquire(True, 0.006)


def reads():
    select.select([ends[0]], [], [], 0.002)


def sleeps():
    time.sleep(0.003)


# In the run queue: another process wants the same processor.

def queued():
    burn(0.002)


def queued_long():
    burn(0.006)


def queued_asleep():
    time.sleep(0.002)


def crowd(seconds):
    allowed = os.sched_getaffinity(0)
    parent, end = os.getpid(), wall() + seconds
    try:
        os.sched_setaffinity(0, {min(allowed)})
    except OSError:
        return
    child = os.fork()
    while not child and wall() < end and os.getppid() == parent:
        sum(range(100))
    if not child:
        os._exit(0)
    measure(["runqueue"], seconds, queued, queued_long, queued_asleep)
    os.waitpid(child, 0)
    os.sched_setaffinity(0, allowed)


# The GIL: threads want it all the time, and a thread that finds it has just got it notes that. None loses it
# again before it has done so.

def hold(name):
    if holder[0] != name:
        now = wall()
        spend("gil", holder[0], now - holder[1])
        holder[:] = name, now
    return wall()


def work(name, size, end):
    begun.wait()
    while hold(name) < end:
        sum(range(size))


def small_steps(end):
    work("small_steps", 1000, end)


def steps(end):
    work("steps", 100000, end)


def large_steps(end):
    work("large_steps", 400000, end)


def fight(seconds):
    threads = [threading.Thread(target=function, args=(wall() + seconds,))
               for function in (small_steps, steps, large_steps)]
    for thread in threads:
        thread.start()
    begun.set()
    for thread in threads:
        thread.join()
    hold(None)
    del spent["gil", None]


holder, begun, lock = [None, wall()], threading.Event(), threading.Lock()
ends = os.pipe()
lock.acquire()
sys.stdout.write("ready\n")
sys.stdout.flush()
seconds = float(sys.stdin.readline())
measure(["cpu", "wall"], seconds / 2, short, long, many, waiting)
crowd(seconds / 6)
measure(["blocked"], seconds / 6, locked, reads, sleeps)
if getattr(sys, "_is_gil_enabled", lambda: True)():
    fight(seconds / 6)
sys.stdout.write("".join("%s %s %.6f\n" % (mode, name, spent[mode, name]) for mode, name in spent) + "end\n")
sys.stdout.flush()
sys.stdin.readline()

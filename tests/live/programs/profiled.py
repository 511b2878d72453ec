# SPDX-License-Identifier: GPL-3.0-or-later
"""Functions that measure themselves: profiled.py [IDLE_THREADS], until "stop" comes on stdin.

"go SECONDS" makes it use a processor for so long, and print each function's part of that, in milliseconds.
Between orders it sleeps.
"""
import sys
import threading
import time

clock = getattr(time, "thread_time", time.process_time)
spent = {"short": 0.0, "long": 0.0, "sleepy": 0.0}


# A stop takes effect at the end of a system call, if one ends sooner than the interrupt arrives, which
# takes microseconds on some machines. So there is more to do than to call the clock.
def burn(seconds):
    end = clock() + seconds
    while clock() < end:
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))
        sum(range(100))


def short():
    burn(0.005)


def long():
    burn(0.010)


def sleepy():
    burn(0.002)
    time.sleep(0.001)


def work(seconds):
    end = clock() + seconds
    while clock() < end:
        for function in (short, long, sleepy):
            begin = clock()
            function()
            spent[function.__name__] += clock() - begin
    print(" ".join("%s %.3f" % (name, 1000 * spent[name]) for name in sorted(spent)), flush=True)


def main():
    never = threading.Event()
    for number in range(int(sys.argv[1]) if len(sys.argv) > 1 else 0):
        threading.Thread(target=never.wait, name="idle-%d" % number, daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        order = line.split()
        if order[0] == "go":
            work(float(order[1]))
        else:
            break


main()

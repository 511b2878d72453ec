# SPDX-License-Identifier: GPL-3.0-or-later
"""A target for measuring: THREADS threads, each DEPTH frames deep; all sleep but the main one, which
with a third argument, "idle", sleeps too.

The main thread runs all the time and notes the longest gap between two of its steps; SIGUSR1 makes
it print that, in microseconds, and begin anew.
"""

import signal
import sys
import threading
import time


def deeper(depth, leaf):
    return deeper(depth - 1, leaf) if depth > 1 else leaf()


class Busy:
    longest = 0

    def report(self, *_):
        print("%.1f" % (self.longest / 1e3), flush=True)
        self.longest = 0

    def run(self):
        clock = time.perf_counter_ns
        last = clock()
        while True:
            now = clock()
            if now - last > self.longest:
                self.longest = now - last
            last = now


def sleep():
    time.sleep(3600)


def main():
    threads, depth = int(sys.argv[1]), int(sys.argv[2])
    busy = Busy()
    signal.signal(signal.SIGUSR1, busy.report)
    for _ in range(threads - 1):
        threading.Thread(target=deeper, args=(depth - 4, sleep), daemon=True).start()
    print("ready", flush=True)
    deeper(depth - 3, sleep if sys.argv[3:] == ["idle"] else busy.run)


main()

# SPDX-License-Identifier: GPL-3.0-or-later
"""What it takes to read the memory of a process with ten million objects, whose thread runs meanwhile and looks for
how long it did not. Part of bench.py, or by itself: census.py --probing BINARY"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import time

RECORDS, ROUNDS = 2000000, 3  # of five objects each
PROGRAM = """
import gc, signal, sys, time
gc.disable()
class Service:
    def __init__(self, count):
        self.cache = {"records": [(1000000 + i, "text %d" % i, [i + 0.5]) for i in range(count)]}
service = Service(int(sys.argv[1]))
gaps = []
def report(number, frame):
    print(" ".join("%.1f" % (1e6 * gap) for gap in gaps), flush=True)
    gaps.clear()
signal.signal(signal.SIGUSR1, report)
print(id(service.cache["records"][-7][2]), flush=True)
def main():
    last = time.perf_counter()
    while True:
        now = time.perf_counter()
        if now - last > 20e-6:
            gaps.append(now - last)
        last = time.perf_counter()
main()
"""


class Target:
    def __init__(self, python):
        self.process = subprocess.Popen([python, "-c", PROGRAM, str(RECORDS)], stdout=subprocess.PIPE)
        self.address = int(self.process.stdout.readline())
        self.pid = str(self.process.pid)

    def gaps(self):
        """Since last asked, in µs, the longest first."""
        self.process.send_signal(signal.SIGUSR1)
        return sorted(map(float, self.process.stdout.readline().split()), reverse=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def timed(command):
    """Seconds that passed, seconds on a processor, MB at most."""
    began = time.perf_counter()
    done = subprocess.run(["/usr/bin/time", "-f", "%U %S %M", *command], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, check=True)
    user, system, memory = done.stderr.split()[-3:]
    return time.perf_counter() - began, float(user) + float(system), float(memory) / 1024


def page(args, python):
    """Lines of Markdown."""
    lines = ["", "### The memory of ten million objects", "",
             "| | s | s of a processor | peak MB | the process's longest gap, µs | of so many seconds without, µs |",
             "|---|---|---|---|---|---|"]
    if not os.path.exists("/usr/bin/time"):
        return lines[:2] + ["", "time(1) is not installed."]
    with Target(python) as target:
        for words, command in (
                ("memory", ["memory"]), ("memory --growth", ["memory", "--growth", "10ms"]),
                ("what refers to an object, and the way to it",
                 ["query", "SELECT type, holder FROM python.referrers(%d)" % target.address])):
            figures, during, without = [], [], []
            for _ in range(ROUNDS):
                target.gaps()
                figures.append(timed([args.probing, target.pid, *command]))
                during.append((target.gaps() + [0])[0])
                time.sleep(figures[-1][0])
                without.append((target.gaps() + [0])[0])
            passed, used, memory = (statistics.median(each) for each in zip(*figures))
            lines.append("| %s | %.1f | %.1f | %.0f | %.0f | %.0f |" % (
                words, passed, used, memory, statistics.median(during), statistics.median(without)))
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--probing", required=True)
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args()
    print("\n".join(page(args, args.python)))


if __name__ == "__main__":
    main()

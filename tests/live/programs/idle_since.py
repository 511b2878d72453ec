# SPDX-License-Identifier: GPL-3.0-or-later
"""A thread on each CPU named, asleep for good: prints its CPU, tid and when it went to sleep."""
import os
import sys
import threading
import time


def rest(cpu, report):
    os.sched_setaffinity(0, {cpu})
    inside, _ = os.pipe()
    time.sleep(0.05)  # from here on it has run on this CPU
    report[cpu] = (threading.get_native_id(), time.monotonic())
    os.read(inside, 1)


def main(cpus):
    report = {}
    for cpu in cpus:
        threading.Thread(target=rest, args=(cpu, report), daemon=True).start()
    while len(report) < len(cpus):
        time.sleep(0.01)
    for cpu, (tid, since) in report.items():
        print(cpu, tid, since)
    print("ready", flush=True)
    sys.stdin.read()


main([int(word) for word in sys.argv[1:]])

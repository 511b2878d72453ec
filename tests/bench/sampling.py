# SPDX-License-Identifier: GPL-3.0-or-later
"""What sampling costs: the speed of a process that is sampled beside its speed alone before and
after, and the processor that the sampler itself uses. Part of bench.py.

Usage as a target: sampling.py THREADS. The main thread counts; SIGUSR1 makes it print how far.
"""

import os
import signal
import statistics
import subprocess
import sys
import threading
import time

SECONDS, RATE = 3, 100


class Counted:
    """A process of which one thread runs, in Python and in C, and the others sleep."""

    def __init__(self, python, threads):
        self._process = subprocess.Popen([python, __file__, str(threads)], stdout=subprocess.PIPE,
                                         text=True)
        assert self._process.stdout.readline() == "ready\n"
        self.pid = self._process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def count(self):
        self._process.send_signal(signal.SIGUSR1)
        return int(self._process.stdout.readline()), time.perf_counter()

    def speed(self, command):
        """(steps a second while the command runs, its own share of a processor); None for the
        speed alone. The share is None if the command fails."""
        before, begin = self.count()
        share = None
        if command:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = status
            if not status:
                share = (usage.ru_utime + usage.ru_stime) / (time.perf_counter() - begin)
        else:
            time.sleep(1)
        after, end = self.count()
        return (after - before) / (end - begin), share


def commands_for(args, pid):
    ours = [args.probing, pid, "perf", "-d", "%ds" % SECONDS, "-r", str(RATE), "-o",
            "/tmp/bench-%s.collapsed" % pid]
    commands = {"probing perf": ours, "probing perf --cc": ours + ["--cc"]}
    spy = args.peer.get("py-spy")
    if spy:
        record = [spy, "record", "--pid", pid, "-d", str(SECONDS), "-r", str(RATE), "--format",
                  "raw", "-o", "/tmp/bench-%s.raw" % pid]
        commands["py-spy record"] = record
        commands["py-spy record --native"] = record + ["--native"]
    return commands


def measured(args, python, threads):
    """{name: ([percent of the speed lost…], [percent of a processor…])}"""
    rounds = max(3, args.rounds // 4)
    with Counted(python, threads) as target:
        commands = commands_for(args, str(target.pid))
        results = {name: ([], []) for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                before, _ = target.speed(None)
                with_it, share = target.speed(command)
                after, _ = target.speed(None)
                if share is None:
                    print("%s: fails here, left out" % name, file=sys.stderr)
                    continue
                results[name][0].append(100 * (2 * with_it / (before + after) - 1))
                results[name][1].append(100 * share)
        for ending in ("collapsed", "raw"):
            path = "/tmp/bench-%d.%s" % (target.pid, ending)
            if os.path.exists(path):
                os.unlink(path)
    return {name: values for name, values in results.items() if values[0]}


def page(args, python):
    lines = []
    for threads in (9, 151):
        lines += ["", "### Sampling at %d Hz, %d threads of which one runs" % (RATE, threads), "",
                  "| command | speed of the process, median | worst | own processor |",
                  "|---|---|---|---|"]
        for name, (lost, own) in measured(args, python, threads).items():
            lines.append("| %s | %+.1f %% | %+.1f %% | %.1f %% |" % (
                name, statistics.median(lost), min(lost), statistics.median(own)))
    return lines


def main():
    counter = [0]
    signal.signal(signal.SIGUSR1, lambda *_: print(counter[0], flush=True))
    never = threading.Event()
    for _ in range(int(sys.argv[1]) - 1):
        threading.Thread(target=never.wait, daemon=True).start()
    print("ready", flush=True)
    while True:
        sorted(range(100), key=str)
        counter[0] += 1


if __name__ == "__main__":
    main()

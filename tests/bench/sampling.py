# SPDX-License-Identifier: GPL-3.0-or-later
"""What sampling costs: the speed of a process that is sampled beside its speed alone before and
after, and the processor that the sampler itself uses. Part of bench.py.

The time that the process waited for a processor is left out, so that other programs of the machine
matter little. That in which it was stopped is not.

Usage as a target: sampling.py THREADS [c]. The main thread counts; with "c" the others do, which all
compute in C, without the GIL. SIGUSR1 makes it print how far.
"""

import hashlib
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time

SECONDS = 3


class Counted:
    """A process of which one thread runs, in Python and in C, and the others sleep; or `in_c`: the main
    thread sleeps, and the others run, in C."""

    def __init__(self, python, threads, in_c=False):
        self._process = subprocess.Popen([python, __file__, str(threads)] + ["c"] * in_c,
                                         stdout=subprocess.PIPE, text=True)
        assert self._process.stdout.readline() == "ready\n"
        self.pid = self._process.pid
        self._in_c = in_c

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def count(self):
        """(steps, seconds that it did not wait for a processor). Where more threads run than there are
        processors, most wait for each other: then all seconds count."""
        self._process.send_signal(signal.SIGUSR1)
        steps = int(self._process.stdout.readline())
        if self._in_c:
            return steps, time.perf_counter()
        with open("/proc/%d/task/%d/schedstat" % (self.pid, self.pid), encoding="ascii") as file:
            return steps, time.perf_counter() - int(file.read().split()[1]) / 1e9

    def speed(self, command):
        """(steps a second while the command runs, its own share of a processor, what it prints);
        None for the speed alone. The share is None if the command fails."""
        before, begin = self.count()
        started = time.perf_counter()
        share, out = None, ""
        if command:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                       text=True)
            out = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = status
            process.stdout.close()
            if not status:
                share = (usage.ru_utime + usage.ru_stime) / (time.perf_counter() - started)
        else:
            time.sleep(1)
        after, end = self.count()
        return (after - before) / (end - begin), share, out


def commands_for(args, pid, rate):
    ours = [args.probing, pid, "perf", "-d", "%ds" % SECONDS, "-r", str(rate), "--json"]
    commands = {"probing perf": ours, "probing perf --cc": ours + ["--cc"]}
    if rate == 100:
        commands["probing top"] = [args.probing, pid, "top", "--batch", "-n", str(SECONDS)]
    spy = args.peer.get("py-spy")
    if spy:
        record = [spy, "record", "--pid", pid, "-d", str(SECONDS), "-r", str(rate), "--format",
                  "raw", "-o", "/tmp/bench-%s.raw" % pid]
        commands["py-spy record"] = record
        commands["py-spy record --native"] = record + ["--native"]
    return commands


class Result:
    """What the rounds of one command found."""

    def __init__(self):
        self.lost, self.own, self.costs = [], [], []

    def add(self, lost, own, out):
        self.lost.append(lost)
        self.own.append(own)
        if out.startswith("{"):
            found = json.loads(out)
            self.costs.append(dict(found["cost"], duration_ns=found["duration_ns"]))

    def stops(self):
        """Median and 99th percentile of the pauses, and the share of the time that was stopped."""
        if not self.costs:
            return "– | – | –"
        middle = {key: statistics.median(cost[key] for cost in self.costs)
                  for key in ("pause_p50_us", "pause_p99_us")}
        stopped = sum(cost["pause_total_us"] for cost in self.costs) * 1e3 / sum(
            cost["duration_ns"] for cost in self.costs)
        return "%.0f | %.0f | %.1f %%" % (middle["pause_p50_us"], middle["pause_p99_us"],
                                          100 * stopped)


def measured(args, python, threads, rate, in_c):
    """{name: Result}"""
    rounds = max(3, args.rounds // 4)
    with Counted(python, threads, in_c) as target:
        commands = commands_for(args, str(target.pid), rate)
        results = {name: Result() for name in commands}
        for _ in range(rounds):
            for name, command in list(commands.items()):
                before, _, _ = target.speed(None)
                started = time.monotonic()
                with_it, share, out = target.speed(command)
                if time.monotonic() - started > 5 * SECONDS:
                    print("%s: cannot keep up, measured once" % name, file=sys.stderr)
                    del commands[name]
                after, _, _ = target.speed(None)
                if share is None:
                    print("%s: fails here, left out" % name, file=sys.stderr)
                    continue
                results[name].add(100 * (2 * with_it / (before + after) - 1), 100 * share, out)
        path = "/tmp/bench-%d.raw" % target.pid
        if os.path.exists(path):
            os.unlink(path)
    return {name: result for name, result in results.items() if result.lost}


def overloaded(args, python, rate=100):
    """Beside ten busy loops for each processor: the samples taken, and those that its time on a processor is
    worth. With stops most are missed; by eBPF none should be."""
    lines = ["", "### Sampling at %d Hz with a load of ten on each processor" % rate, "",
             "| command | samples | expected of its time on a processor | missed | stop, p99 µs | own processor |",
             "|---|---|---|---|---|---|"]
    loops = [subprocess.Popen([python, "-c", "while True: pass"]) for _ in range(10 * os.cpu_count())]
    try:
        with Counted(python, 9) as target:
            for source in ("stops", "ebpf"):
                _, share, out = target.speed([args.probing, str(target.pid), "perf", "-d", "%ds" % SECONDS, "-r", str(rate),
                                              "--json", "--source", source])
                if share is None:
                    print("--source %s: fails here, left out" % source, file=sys.stderr)
                    continue
                found = json.loads(out)
                expected = rate * found["process_cpu_ns"] / 1e9
                lines.append("| probing perf --source %s | %d | %.0f | %d | %.0f | %.1f %% |" % (
                    source, found["samples"], expected, found["cost"]["missed"], found["cost"]["pause_p99_us"], 100 * share))
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    return lines


def page(args, python):
    lines = overloaded(args, python)
    for rate, threads, in_c in ((100, 9, False), (100, 151, False), (100, 500, False), (100, 17, True),
                                (1000, 9, False), (1000, 151, False), (1000, 500, False)):
        what = "%d threads that compute in C" % (threads - 1) if in_c else \
            "%d threads of which one runs" % threads
        lines += ["", "### Sampling at %d Hz, %s" % (rate, what), "",
                  "| command | speed of the process, median | worst | own processor "
                  "| stop, median µs | p99 | stopped |", "|---|---|---|---|---|---|---|"]
        for name, result in measured(args, python, threads, rate, in_c).items():
            lines.append("| %s | %+.1f %% | %+.1f %% | %.1f %% | %s |" % (
                name, statistics.median(result.lost), min(result.lost),
                statistics.median(result.own), result.stops()))
    return lines


def compute(counters, index):
    block = bytes(1 << 20)
    while True:
        hashlib.sha256(block)
        counters[index] += 1


def main():
    in_c = len(sys.argv) > 2
    counter = [0] * int(sys.argv[1])
    if in_c:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    signal.signal(signal.SIGUSR1, lambda *_: print(sum(counter), flush=True))
    never = threading.Event()
    for index in range(1, len(counter)):
        function, arguments = (compute, (counter, index)) if in_c else (never.wait, ())
        threading.Thread(target=function, args=arguments, daemon=True).start()
    print("ready", flush=True)
    while in_c:
        signal.sigwait([signal.SIGUSR1])
        print(sum(counter), flush=True)
    while True:
        sorted(range(100), key=str)
        counter[0] += 1


if __name__ == "__main__":
    main()

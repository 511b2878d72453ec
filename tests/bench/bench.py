# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole commands, side by side with other tools on the same targets in the same run.

The tools take turns, so that a machine whose speed drifts slows all of them, each with a few runs
in a row, so that it finds what it uses in the processor's caches and not what another tool left
there. Figures are medians over all runs, with the ratio to ours pair by pair. Prints tables of
Markdown, or writes their figures into a file and what a page beside it shows of them into the page.
Peers that cannot be installed are left out by name.

Usage: bench.py --probing BINARY --peers FOLDER [--rounds N] [--out FILE]
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import allocations
import census
import figures
import gateway
import inject
import looks
import queries
import recordings
import rings
import sampling
import slow_calls
import views

HERE = Path(__file__).resolve().parent
PEERS = ("py-spy", "pystack")
IN_A_ROW = 5


class Target:
    """A Python process with threads of known depth, ready when it says so."""

    def __init__(self, python, threads, depth, *how, script="stacks.py"):
        self.process = subprocess.Popen(
            [python, str(HERE / script), str(threads), str(depth), *how],
            stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def longest_gap(self):
        """Longest time, in microseconds, that the busy thread did not run since last asked."""
        self.process.send_signal(10)
        return float(self.process.stdout.readline())


def run_once(command, env=None):
    """Wall time in milliseconds, exit status."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=env)
    status = process.wait()
    return (time.perf_counter() - start) * 1e3, status


def peak_memory(command):
    """Peak memory in MB by time(1): a process's own figure would include that of this program, of
    which it began as a copy. None without time(1)."""
    if not os.path.exists("/usr/bin/time"):
        return None
    out = subprocess.run(["/usr/bin/time", "-f", "%M"] + command, stdout=subprocess.DEVNULL,
                         stderr=subprocess.PIPE, check=False).stderr
    return int(out.split()[-1]) / 1024


def in_turn(commands, rounds):
    """Runs {name: command} in turn; {name: ([ms…], MB)}, without those that fail."""
    for name in [n for n, c in commands.items() if run_once(c)[1] != 0]:
        print("%s: fails here, left out" % name, file=sys.stderr)
        del commands[name]
    results = {name: ([], peak_memory(command)) for name, command in commands.items()}
    for start in range(0, rounds, IN_A_ROW):
        for name, command in commands.items():
            for _ in range(min(IN_A_ROW, rounds - start)):
                results[name][0].append(run_once(command)[0])
    return results


def table(title, results):
    """Markdown rows: median, best, worst, ratio to ours, memory."""
    lines = ["", "### " + title, "", "| command | median ms | min | max | × ours | peak MB |",
             "|---|---|---|---|---|---|"]
    ours = next(iter(results.values()))[0]
    for name, (times, memory) in results.items():
        ratio = statistics.median(t / o for t, o in zip(times, ours))
        lines.append("| %s | %.1f | %.1f | %.1f | %.1f | %s |" % (
            name, statistics.median(times), min(times), max(times), ratio,
            "%.1f" % memory if memory else "–"))
    return lines


def dumps(args, python, threads, depth, native):
    """The dump commands of all tools on one target."""
    extra = ["--native"] if native else []
    with Target(python, threads, depth) as target:
        pid = str(target.pid)
        commands = {"probing": [args.probing, "-p", pid, "debug", "--dump"] + extra}
        spy, stack = args.peer.get("py-spy"), args.peer.get("pystack")
        if spy:
            commands["py-spy dump"] = [spy, "dump", "--pid", pid] + extra
        if stack:
            commands["pystack remote"] = [stack, "remote", pid] + extra
        if not native and shutil.which("gdb"):
            commands["gdb, all native stacks"] = ["gdb", "-batch", "-nx", "-p", pid, "-ex",
                                                  "thread apply all bt"]
        rounds = {name: args.rounds for name in commands}
        slow = {"gdb, all native stacks"}
        fast = {n: c for n, c in commands.items() if n not in slow}
        results = in_turn(fast, rounds["probing"])
        for name in slow & set(commands):
            results.update(in_turn({name: commands[name]}, min(5, args.rounds)))
        return results


def gaps(args, python):
    """What the target itself notices: the longest time its busy thread stood still."""
    lines = ["", "### Longest stall of a busy thread during one dump, as the thread itself sees it",
             "", "| command | median µs | p90 µs |", "|---|---|---|"]
    with Target(python, 8, 50) as target:
        pid = str(target.pid)
        commands = {
            "nothing (the same time without a dump)": None,
            "probing": [args.probing, "-p", pid, "debug", "--dump"],
            "probing --native": [args.probing, "-p", pid, "debug", "--dump", "--native"],
        }
        if args.peer.get("py-spy"):
            commands["py-spy dump"] = [args.peer["py-spy"], "dump", "--pid", pid]
        if args.peer.get("pystack"):
            commands["pystack remote"] = [args.peer["pystack"], "remote", pid]
        seen = {name: [] for name in commands}
        for _ in range(args.rounds):
            for name, command in commands.items():
                target.longest_gap()
                if command:
                    run_once(command)
                else:
                    time.sleep(0.02)
                seen[name].append(target.longest_gap())
    for name, values in seen.items():
        values.sort()
        lines.append("| %s | %.0f | %.0f |" % (name, statistics.median(values),
                                               values[int(len(values) * 0.9)]))
    return lines


def pauses(args, python):
    """Our own account of how long threads were stopped."""
    stopped, idle_stopped = [], 0
    with Target(python, 8, 50) as target:
        for _ in range(args.rounds * 5):
            out = subprocess.run([args.probing, "-p", str(target.pid), "debug", "--dump",
                                  "--json"], stdout=subprocess.PIPE, check=True).stdout
            for thread in json.loads(out.decode())["threads"]:
                if thread["read"] == "stopped":
                    stopped.append(thread["pause_us"])
                    idle_stopped += thread["state"] == "idle"
    stopped.sort()
    return ["", "### Threads that we stopped (%d dumps)" % (args.rounds * 5), "",
            "| | |", "|---|---|", "| running threads stopped | %d |" % len(stopped),
            "| pause, median | %.0f µs |" % statistics.median(stopped),
            "| pause, p99 | %.0f µs |" % stopped[int(len(stopped) * 0.99)],
            "| sleeping threads stopped | %d |" % idle_stopped]


def cold(args, python):
    """The first time a build is met: an empty cache."""
    times = []
    with Target(python, 8, 50) as target:
        for _ in range(args.rounds):
            with tempfile.TemporaryDirectory() as cache:
                env = dict(os.environ, XDG_CACHE_HOME=cache)
                times.append(run_once([args.probing, "-p", str(target.pid), "debug", "--dump"],
                                      env)[0])
    return {"probing, empty cache": (times, None)}


def listing(args, python):
    """`list` among 300 processes."""
    sleeper = [python, "-c", "import time; print('ready', flush=True); time.sleep(1000)"]
    others = [subprocess.Popen(["sleep", "1000"]) for _ in range(280)]
    pythons = [subprocess.Popen(sleeper, stdout=subprocess.PIPE) for _ in range(20)]
    others += pythons
    try:
        for process in pythons:
            assert process.stdout.readline() == b"ready\n"
        return in_turn({"probing list": [args.probing, "list"]}, args.rounds)
    finally:
        for process in others:
            process.kill()
            process.wait()
        for process in pythons:
            process.stdout.close()


def find_peers(folder):
    """{name: path} of the peers that are there."""
    return {name: str(Path(folder) / "bin" / name) for name in PEERS
            if (Path(folder) / "bin" / name).exists()}


def versions(args, python):
    """What was measured, on what."""
    lines = ["### Versions", "", "| | |", "|---|---|"]
    for name in ["probing"] + list(args.peer):
        path = args.probing if name == "probing" else args.peer[name]
        out = subprocess.run([path, "--version"], stdout=subprocess.PIPE, check=False).stdout
        lines.append("| %s | %s |" % (name, out.decode().strip().splitlines()[0]))
    out = subprocess.run([python, "--version"], stdout=subprocess.PIPE, check=True).stdout
    lines.append("| target | %s |" % out.decode().strip())
    lines.append("| machine | %d processors, Linux %s |" % (os.cpu_count(), platform.release()))
    return lines


def main():
    """Measures everything."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--probing", required=True)
    parser.add_argument("--peers", required=True)
    parser.add_argument("--long-recording", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--out")
    args = parser.parse_args()
    args.peer = find_peers(args.peers)

    page = versions(args, args.python)
    page += table("Dump, 8 threads × 50 frames", dumps(args, args.python, 8, 50, False))
    page += table("Dump, 151 threads × 20 frames", dumps(args, args.python, 151, 20, False))
    page += table("Dump with native frames, 8 threads × 50 frames",
                  dumps(args, args.python, 8, 50, True))
    page += table("The first time a build is met", cold(args, args.python))
    page += table("List, 300 processes of which 20 are Python", listing(args, args.python))
    page += table("Help", in_turn({"probing --help": [args.probing, "--help"]}, args.rounds))
    for title, results in queries.measure(args, args.python, sys.modules[__name__]):
        page += table(title, results)
    for title, results in looks.measure(args, args.python, sys.modules[__name__]):
        page += table(title, results)
    page += inject.page(args, args.python, sys.modules[__name__])
    page += sampling.page(args, args.python)
    page += slow_calls.page(args.probing)
    page += recordings.page(args, args.python)
    page += views.page(args, args.python)
    page += gateway.page(args, args.python)
    page += pauses(args, args.python)
    page += gaps(args, args.python)
    page += rings.page(args)
    page += allocations.page(args, args.python)
    page += census.page(args, args.python)
    if not args.out:
        print("\n".join(page))
        return
    data = Path(args.out)
    figures.write(data, figures.parsed(page))
    text = data.with_suffix(".md").read_text(encoding="utf-8")
    data.with_suffix(".md").write_text(figures.updated(text, figures.read(data)), encoding="utf-8")


if __name__ == "__main__":
    main()

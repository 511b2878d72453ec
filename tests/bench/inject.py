# SPDX-License-Identifier: GPL-3.0-or-later
"""What injection costs: the whole command, and how long the target stands still, by its own account
and by ours. Each run meets a fresh process, each tool in turn."""

import json
import mmap
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SLOW = 5  # rounds of tools that take seconds
SETTLE = 0.02  # seconds of processor time that a target gets before it is measured
QUIET = 0.02  # seconds in which nothing is done to it, to see its own stalls
EVALS = 5  # in each process


class Spinner:
    """A program without Python that runs all the time and notes its longest gap."""

    def __init__(self, program):
        self.file = tempfile.NamedTemporaryFile()
        self.file.truncate(4096)
        self.words = memoryview(mmap.mmap(self.file.fileno(), 4096)).cast("Q")
        self.process = subprocess.Popen([str(program), self.file.name], stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n"
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.file.close()

    def longest_gap(self):
        """Microseconds since last asked."""
        gap, self.words[0] = self.words[0], 0
        return gap / 1e3


def wait_until_settled(pid):
    """A target that is ready goes on to its steady work."""
    clock = ~pid << 3 | 2  # what clock_getcpuclockid() gives
    end = time.clock_gettime(clock) + SETTLE
    while time.clock_gettime(clock) < end:
        time.sleep(0.001)


class Tool:
    """One row: how it is called, and what was seen."""

    def __init__(self, command, target, most=1000):
        self.command, self.target, self.most = command, target, most
        self.times, self.gaps, self.told = [], [], []

    def run(self):
        """Once, on a fresh process; False if it failed."""
        with self.target() as target:
            wait_until_settled(target.pid)
            target.longest_gap()
            start = time.perf_counter()
            if not self.command:
                time.sleep(QUIET)  # that it lasts is what is measured; there is nothing to wait for
                self.gaps.append(target.longest_gap())
                return True
            done = subprocess.run(self.command(target.pid), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
            self.times.append((time.perf_counter() - start) * 1e3)
            self.gaps.append(target.longest_gap())
            try:
                self.told.append(json.loads(done.stdout.decode())["pause_us"])
            except (ValueError, KeyError, TypeError):
                pass
            return done.returncode == 0


def measure_tools(tools, rounds):
    """Runs them in turn, without those that fail at once."""
    for name in [name for name, tool in tools.items() if not tool.run()]:
        print("%s: fails here, left out" % name)
        del tools[name]
    for tool in tools.values():
        tool.times, tool.gaps, tool.told = [], [], []
    for n in range(rounds):
        for tool in tools.values():
            if n < tool.most:
                tool.run()


def table(title, tools):
    """Markdown: the command, and the longest stall that the target saw."""
    lines = ["", "### " + title, "",
             "| command | median ms | min | max | × ours | stall, median µs | stall, max µs | as it says |",
             "|---|---|---|---|---|---|---|---|"]
    ours = next(iter(tools.values())).times
    for name, tool in tools.items():
        took = "– | – | – | –"
        if tool.times:
            took = "%.1f | %.1f | %.1f | %.1f" % (
                statistics.median(tool.times), min(tool.times), max(tool.times),
                statistics.median(t / o for t, o in zip(tool.times, ours)))
        told = "%.0f µs" % statistics.median(tool.told) if tool.told else "–"
        lines.append("| %s | %s | %.0f | %.0f | %s |" % (
            name, took, statistics.median(tool.gaps), max(tool.gaps), told))
    return lines


def compile_c(output, *arguments):
    """With the compiler that built us."""
    subprocess.run(["cc", "-O2", "-o", str(output), *map(str, arguments)], check=True)
    return output


def libraries(args, folder):
    """Loading any library into any program."""
    spinner = compile_c(folder / "spinner", HERE / "spinner.c")
    source = folder / "library.c"
    source.write_text("int bench_library(void) { return 42; }\n")
    library = str(compile_c(folder / "library.so", "-shared", "-fPIC", source))

    def target():
        return Spinner(spinner)

    tools = {"probing inject --library": Tool(lambda pid: [
        args.probing, "-t", str(pid), "inject", "--json", "--library", library], target)}
    pyinjector = Path(args.peers) / "bin" / "inject"  # as its package calls it
    if pyinjector.exists():
        tools["pyinjector"] = Tool(lambda pid: [str(pyinjector), str(pid), library], target)
    if shutil.which("gdb"):
        tools["gdb, call dlopen()"] = Tool(lambda pid: [
            "gdb", "-batch", "-nx", "-p", str(pid), "-ex",
            "call ((void *(*)(const char *, int))dlopen)(\"%s\", 2)" % library], target)
    tools["nothing, for 20 ms"] = Tool(None, target)
    measure_tools(tools, args.rounds)
    return table("Load a library into a running program of one busy thread", tools)


def agents(args, python, bench, folder):
    """Loading what each tool brings into a Python process."""
    original = Path(args.peers) / "original" / "bin"
    memray = Path(args.peers) / "bin" / "memray"

    def target(interpreter):
        return lambda: bench.Target(interpreter, 4, 20)

    tools = {"probing inject": Tool(
        lambda pid: [args.probing, "-t", str(pid), "inject", "--json"], target(python))}
    if (original / "probing").exists():
        tools["original probing inject"] = Tool(
            lambda pid: [str(original / "probing"), "-t", str(pid), "inject"],
            target(str(original / "python")))
    if memray.exists() and shutil.which("gdb"):
        tools["memray attach"] = Tool(
            lambda pid: [str(memray), "attach", "--method", "gdb", "-f", "-o",
                         str(folder / ("memray-%d" % pid)), str(pid)],
            target(str(Path(args.peers) / "bin" / "python")), SLOW)
    tools["nothing, for 20 ms"] = Tool(None, target(python))
    measure_tools(tools, args.rounds)
    return table("Load an agent into a Python process of 4 threads, one busy", tools)


def evals(args, python, bench, title, *how):
    """1 + 1 in a process that has the agent."""
    original = Path(args.peers) / "original" / "bin"
    times = {"probing eval": [], "original probing eval": []}
    command = {"probing eval": (args.probing, python)}
    if (original / "probing").exists():
        command["original probing eval"] = (str(original / "probing"), str(original / "python"))
    for _ in range(max(4, args.rounds // EVALS)):
        for name, (binary, interpreter) in command.items():
            with bench.Target(interpreter, 4, 20, *how) as target:
                where = [binary, "-t", str(target.pid)]
                if bench.run_once(where + ["inject"])[1]:
                    continue
                for _ in range(EVALS):
                    took, status = bench.run_once(where + ["eval", "1+1"])
                    if not status:
                        times[name].append(took)
    return bench.table(title, {name: (found, None) for name, found in times.items() if found})


def page(args, python, bench):
    """The section, as lines of Markdown."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        return (libraries(args, Path(name)) + agents(args, python, bench, Path(name)) +
                evals(args, python, bench, "eval 1+1 in a process whose threads all wait", "idle") +
                # A thread that never rests keeps the GIL for as long as Python lets it.
                evals(args, python, bench,
                      "eval 1+1 in a process of which a thread computes all the time, and gives "
                      "the GIL away after 5 ms"))

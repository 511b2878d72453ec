# SPDX-License-Identifier: GPL-3.0-or-later
"""What SQL costs: whole commands on live targets, and the engine by the row, beside sqlite3's own
shell on the same rows and the original probing, whose engine runs inside of the target."""

import shutil
import subprocess
from pathlib import Path

ROWS = 1000000
JOIN = ("SELECT t.name, b.depth, b.func, l.name, l.value FROM python.threads t "
        "JOIN python.backtrace b USING (tid) "
        "JOIN python.locals l ON l.tid = t.tid AND l.depth = b.depth")


def query(args, pid, sql):
    """Our command."""
    return [args.probing, "-p", str(pid), "query", "-f", "csv", sql]


class Original:
    """A target with the original's engine inside."""

    def __init__(self, folder):
        self.binary = str(Path(folder) / "bin" / "probing")
        self.process = subprocess.Popen(
            ["env", "PROBING=1", str(Path(folder) / "bin" / "python"), "-c",
             "import time; print('ready', flush=True); time.sleep(1000)"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        while "ready" not in self.process.stdout.readline():
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def command(self, sql):
        """Its command line."""
        return [self.binary, "-t", str(self.process.pid), "query", sql]


def constant(args, bench, target):
    """The least a query costs."""
    commands = {"probing": query(args, target.pid, "SELECT 1")}
    if shutil.which("sqlite3"):
        commands["sqlite3"] = ["sqlite3", ":memory:", "SELECT 1"]
    original = Path(args.peers) / "original"
    if not (original / "bin" / "probing").exists():
        return bench.in_turn(commands, args.rounds)
    with Original(original) as other:
        commands["original"] = other.command("SELECT 1")
        return bench.in_turn(commands, args.rounds)


def by_the_row(args, bench):
    """A million rows through the engine, and as CSV."""
    series = "generate_series(1, %d)" % ROWS
    results = []
    for title, sql in (("summed", "SELECT sum(value) FROM " + series),
                       ("as CSV, 5 columns",
                        "SELECT value, value * 2, 'text', value / 3, 'more' FROM " + series)):
        commands = {"probing": [args.probing, "query", "-f", "csv", sql]}
        if shutil.which("sqlite3"):
            commands["sqlite3"] = ["sqlite3", "-csv", ":memory:", sql]
        results.append(("A million rows %s" % title, bench.in_turn(commands, args.rounds)))
    return results


def measure(args, python, bench):
    """(title, results) of each table."""
    with bench.Target(python, 8, 50) as target:
        yield "SELECT 1", constant(args, bench, target)
        yield "Stacks in SQL, 8 threads × 50 frames", bench.in_turn({
            "SELECT * FROM python.stacks": query(args, target.pid, "SELECT * FROM python.stacks"),
            "… WHERE depth < 3": query(args, target.pid,
                                       "SELECT * FROM python.stacks WHERE depth < 3"),
            "debug --dump": [args.probing, "-p", str(target.pid), "debug", "--dump"],
        }, args.rounds)
    with bench.Target(python, 151, 20) as target:
        yield "Threads ⋈ backtrace ⋈ locals, 151 threads × 20 frames", bench.in_turn({
            "probing": query(args, target.pid, JOIN)}, args.rounds)
    yield from by_the_row(args, bench)

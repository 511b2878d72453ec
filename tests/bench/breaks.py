# SPDX-License-Identifier: GPL-3.0-or-later
"""What a breakpoint of Python (`probing break-py` in gdb) costs a program that does not come to it.

For each interpreter a program measures the processor time of loops and calls: before, while a gdb
lets it run with a breakpoint at a line of another function, at a line of the same function that is
not reached, and at one that is, with a condition that is false; and after that gdb was killed. From
3.12 on, a work load is enough; before, code is slowed down that has no breakpoint, so recursive
calls, a loop without any and calls of functions of C are measured one by one. Each time is the
least of some hundred. Writes a table with one row for each interpreter.

Usage: breaks.py --library LIBRARY [--out FILE] [--rounds N]
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from debuggers import interpreters

ROOT = Path(__file__).resolve().parents[2]
HEAD = ("# SPDX-License-Identifier: GPL-3.0-or-later\n"
        "# Written by tests/bench/breaks.py: times as a multiple of those without a breakpoint; "
        "false_condition_us is what one hit takes.\n")
# Empty where a kind of work is not measured: with sys.monitoring, or with tracing.
COLUMNS = ("python", "call_ns", "elsewhere", "recursive_calls", "loop", "c_calls", "same_function",
           "false_condition_us", "after_kill")
CALLS, TURNS = 4000, 5
FIRST_TRACED, FIRST = (3, 6), (3, 12)  # of tracing, of sys.monitoring
# Prints microseconds of processor time of each kind of work, for each line that it is sent.
PROGRAM = """import sys, threading, time
def never():
    return 1
def work(number):
    if number < 0:
        number = never()
    total = number + 1
    for step in (1, 2, 3):
        total += step
    return total
def mixed():
    for number in range(%d):
        work(number)
def fibonacci(number=16):
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)
def loop():
    total = 0
    for number in range(20000):
        total += number * 2
        if total < 0:
            total = 1
def of_c():
    list = []
    for number in range(4000):
        list.append(abs(number))
thread = threading.Thread(target=never)  # before 3.7 there is no GIL without one
thread.start()
thread.join()
for line in sys.stdin:
    kinds = [globals()[name] for name in line.split()]
    best = [1e9] * len(kinds)
    for _ in range(int(sys.argv[1])):
        for at, kind in enumerate(kinds):
            start = time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID)
            kind()
            best[at] = min(best[at], time.clock_gettime(time.CLOCK_THREAD_CPUTIME_ID) - start)
    print(*[each * 1e6 for each in best], flush=True)
""" % CALLS
NEVER, UNREACHED, REACHED = 3, 6, 7
MIXED, ALONE = ["mixed"], ["fibonacci", "loop", "of_c"]


def ask(process, kinds):
    process.stdin.write(" ".join(kinds) + "\n")
    process.stdin.flush()
    return [float(each) for each in process.stdout.readline().split()]


def with_breakpoint(args, process, kinds, number, place, kill=False):
    """The same while gdb has it, the one with that number, and deletes it or is killed."""
    commands = ["source %s" % (ROOT / "gdbplugin" / "probing-gdb.py"),
                "probing break-py %s" % place, "echo set\\n", "continue"]
    commands += [] if kill else ["probing break-py --delete %d" % number]
    env = dict(os.environ, PROBING_LIBRARY=args.library, DEBUGINFOD_URLS="", LC_ALL="C.UTF-8")
    with subprocess.Popen(["gdb", "-nx", "-q", "-batch", "-p", str(process.pid),
                           *[word for each in commands for word in ("-ex", each)]],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, env=env) as gdb:
        try:
            said = []
            while "set\n" not in said:
                said.append(gdb.stdout.readline())
                if not said[-1] or said[-1].startswith(("Error", "probing: ")):
                    raise SystemExit("gdb failed:\n" + "".join(said))
            taken = ask(process, kinds)
            if not kill:
                gdb.send_signal(signal.SIGINT)
                gdb.communicate(timeout=60)
            return taken
        finally:
            gdb.kill()


class Measured:
    """The program, on a Python."""

    def __init__(self, args, python):
        self.args, self.number = args, 0
        self.folder = tempfile.TemporaryDirectory()
        file = Path(self.folder.name) / "measured.py"
        file.write_text(PROGRAM)
        self.process = subprocess.Popen([python, file, str(args.rounds)], stdin=subprocess.PIPE,
                                        text=True, stdout=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()
        self.folder.cleanup()

    def without(self, kinds):
        return ask(self.process, kinds)

    def having(self, kinds, line, condition="", kill=False):
        self.number += 1
        return with_breakpoint(self.args, self.process, kinds, self.number,
                               "measured.py:%d%s" % (line, condition), kill)

    def false(self):
        """A breakpoint that is reached, of which the debugger is killed: (then, afterwards)"""
        reached = self.having(MIXED, REACHED, " if number < 0", kill=True)
        return reached[0], min(self.without(MIXED)[0] for _ in range(TURNS))


def least(turns):
    return [min(times) for times in zip(*turns)]


def row(args, name, python):
    """A line of the table, with sys.monitoring."""
    with Measured(args, python) as measured:
        # In turns, since other programs change how fast a processor is.
        before, never, unreached = least(
            measured.without(MIXED) + measured.having(MIXED, NEVER) +
            measured.having(MIXED, UNREACHED) for _ in range(TURNS))
        reached, after = measured.false()
    return "\t".join([name, "%.0f" % (before * 1000 / CALLS), "%.3f" % (never / before), "", "", "",
                      "%.3f" % (unreached / before), "%.1f" % ((reached - before) / CALLS),
                      "%.3f" % (after / before)])


def traced_row(args, name, python):
    """A line of the table, with tracing."""
    with Measured(args, python) as measured:
        turns = [(measured.without(ALONE + MIXED), measured.having(ALONE, NEVER),
                  measured.having(MIXED, UNREACHED)) for _ in range(TURNS)]
        before, alone, unreached = (least(each) for each in zip(*turns))
        reached, after = measured.false()
    cells = ["%.1f" % (each / base) for each, base in zip(alone + unreached, before)]
    return "\t".join([name, "", "", *cells, "%.1f" % ((reached - before[-1]) / CALLS),
                      "%.3f" % (after / before[-1])])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--out", default=ROOT / "docs" / "breaks.tsv", type=Path)
    parser.add_argument("--rounds", default=600, type=int)
    parser.add_argument("--only", default="", help="versions that begin so")
    args = parser.parse_args()

    lines = ["\t".join(COLUMNS)]
    for name, (python, _, _) in interpreters(FIRST_TRACED).items():
        if not name.startswith(args.only):
            continue
        print(name, file=sys.stderr)
        monitored = tuple(map(int, name.split(",")[0].split("."))) >= FIRST
        lines.append((row if monitored else traced_row)(args, name, python))
    if args.only:
        print("\n".join(lines))
        return
    args.out.write_text(HEAD + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

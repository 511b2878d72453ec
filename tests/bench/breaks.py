# SPDX-License-Identifier: GPL-3.0-or-later
"""What a breakpoint of Python (`probing break-py` in gdb) costs a program that does not come to it.

For each interpreter from 3.12 on a program measures the processor time of loops and calls: before,
while a gdb lets it run with a breakpoint at a line of another function, at a line of the same
function that is not reached, and at one that is, with a condition that is false; and after that gdb
was killed. Each time is the least of some hundred. Writes the table between the marks of the page.

Usage: breaks.py --library LIBRARY [--page FILE] [--rounds N]
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
BEGIN, END = "<!-- made by tests/bench/breaks.py -->", "<!-- end of what breaks.py made -->"
CALLS, TURNS = 4000, 5
# Prints microseconds of processor time of CALLS calls, for each line that it is sent.
PROGRAM = """import sys, time
def never():
    return 1
def work(number):
    if number < 0:
        number = never()
    total = number + 1
    for step in (1, 2, 3):
        total += step
    return total
def measured():
    best = 1e9
    for _ in range(int(sys.argv[1])):
        start = time.thread_time()
        for number in range(%d):
            work(number)
        best = min(best, time.thread_time() - start)
    return best
for line in sys.stdin:
    print(measured() * 1e6, flush=True)
""" % CALLS
NEVER, UNREACHED, REACHED = 3, 6, 7


def ask(process):
    process.stdin.write("go\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def with_breakpoint(args, process, number, place, kill=False):
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
                if not said[-1]:
                    raise SystemExit("gdb failed:\n" + "".join(said))
            taken = ask(process)
            if not kill:
                gdb.send_signal(signal.SIGINT)
                gdb.communicate(timeout=60)
            return taken
        finally:
            gdb.kill()


def row(args, name, python):
    """A line of the table."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "measured.py"
        file.write_text(PROGRAM)
        with subprocess.Popen([python, file, str(args.rounds)], stdin=subprocess.PIPE, text=True,
                              stdout=subprocess.PIPE) as process:
            # In turns, since other programs change how fast a processor is.
            turns = [(ask(process),
                      with_breakpoint(args, process, 2 * turn + 1, "measured.py:%d" % NEVER),
                      with_breakpoint(args, process, 2 * turn + 2, "measured.py:%d" % UNREACHED))
                     for turn in range(TURNS)]
            before, never, unreached = (min(times) for times in zip(*turns))
            reached = with_breakpoint(args, process, 2 * TURNS + 1,
                                      "measured.py:%d if number < 0" % REACHED, kill=True)
            after = min(ask(process) for _ in range(TURNS))
            process.stdin.close()
    cells = ["%.0f" % (before * 1000 / CALLS)]
    cells += ["%+.1f %%" % ((each / before - 1) * 100) for each in (never, unreached)]
    cells += ["%+.1f µs" % ((reached - before) / CALLS),
              "%+.1f %%" % ((after / before - 1) * 100)]
    return "| " + " | ".join([name, *cells]) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--page", default=ROOT / "docs" / "debuggers.md", type=Path)
    parser.add_argument("--rounds", default=600, type=int)
    args = parser.parse_args()

    lines = ["", "| CPython | ns of a call | breakpoint in another function | in this function, not "
             "reached | a condition that is false, each time | after gdb was killed |",
             "|---|---|---|---|---|---|"]
    for name, (python, _, _) in interpreters().items():
        if tuple(map(int, name.split(",")[0].split("."))) >= (3, 12):
            print(name, file=sys.stderr)
            lines.append(row(args, name, python))
    text = args.page.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    args.page.write_text(text[:begin] + "\n".join(lines) + "\n" + text[end:])


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-3.0-or-later
"""What `trace --calls --slower` costs a call that is fast: nanoseconds of its thread's processor time, beside the same
calls alone, for each Python that is here. Part of bench.py; by itself: slow_calls.py PROBING, which prints the table."""
import os
import subprocess
import sys
from pathlib import Path

CALLS, ROUNDS = 100000, 7
PROGRAM = """
import sys, time
def handle(number):
    return number
print("ready", flush=True)
for line in sys.stdin:
    begun = time.thread_time_ns()
    for number in range(%d):
        handle(number)
    print(time.thread_time_ns() - begun, flush=True)
""" % CALLS


def cost(process):
    """Of a call, the least of some rounds: other programs of the machine only add to it."""
    took = []
    for _ in range(ROUNDS):
        process.stdin.write("go\n")
        took.append(int(process.stdout.readline()) / CALLS)
    return min(took)


def measured(probing, interpreter):
    """(alone, timed, alone again), nanoseconds; None if it cannot be traced here."""
    with subprocess.Popen([interpreter.exe, "-c", PROGRAM], env=interpreter.env, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            before = cost(process)
            with subprocess.Popen([probing, str(process.pid), "trace", "--calls", "handle", "--slower", "1s", "--keep"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as trace:
                trace.communicate()
            if trace.returncode:
                return None
            timed = cost(process)
            subprocess.run([probing, str(process.pid), "trace", "clear"], stdout=subprocess.DEVNULL, check=True)
            return before, timed, cost(process)
        finally:
            process.kill()


def page(probing):
    os.environ.setdefault("PROBING_BINARY", str(Path(probing).resolve()))
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "live"))
    import support  # it needs the variable

    lines = ["", "### A fast call of a function whose slow calls are kept, nanoseconds of processor time", "",
             "| Python | alone | with `trace --calls --slower` | after it |", "|---|---|---|---|"]
    for interpreter in support.one_per_version((3, 8)):
        found = measured(probing, interpreter)
        if not found:
            print("%r: slow calls cannot be traced here, left out" % interpreter, file=sys.stderr)
            continue
        lines.append("| %d.%d | %.0f | %.0f | %.0f |" % (*interpreter.version, *found))
    return lines


if __name__ == "__main__":
    print("\n".join(page(sys.argv[1])))

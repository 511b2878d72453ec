# SPDX-License-Identifier: GPL-3.0-or-later
"""What looking at a training costs it: its steps beside those just before, in one run with torch.profiler and py-spy.

Usage: training_costs.py --probing PROGRAM [--python PYTHON] [--rounds N]
"""
import argparse
import json
import shutil
import statistics
import subprocess
import time
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[1] / "live/programs/training/watchful.py"
SECONDS = 3


class Training:
    def __init__(self, python):
        self.process = subprocess.Popen([python, PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.pid = str(self.process.pid)
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, word):
        self.process.stdin.write(word + "\n")
        return json.loads(self.process.stdout.readline())

    def alone(self):
        """ms of a step that nobody looks at."""
        self.ask("times")
        time.sleep(SECONDS)
        return self.ask("times")["median"] * 1e3


def during(command):
    """ms of a step while it runs."""
    def look(training):
        training.ask("times")
        subprocess.run([each.replace("PID", training.pid) for each in command], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
        return training.ask("times")["median"] * 1e3
    return look


def operators(probing):
    def look(training):
        done = subprocess.run([probing, training.pid, "perf", "--torch", "--ops", "--steps", "20", "--json"],
                              stdout=subprocess.PIPE, check=True)
        return statistics.median(json.loads(done.stdout)["steps_ms"])
    return look


def has_kineto(python):
    code = "import sys, torch; sys.exit(not torch.autograd.kineto_available())"
    return not subprocess.run([python, "-c", code], check=False).returncode


def ways(probing, kineto):
    perf = [probing, "PID", "perf", "--torch", "--json", "-d", "%ds" % SECONDS]
    yield "nothing", Training.alone
    yield "perf --torch", during(perf)
    yield "perf --torch --exact", during(perf + ["--exact", "--steps", "1000000"])
    if shutil.which("py-spy"):
        yield "py-spy record", during(["py-spy", "record", "-d", str(SECONDS), "-f", "raw", "-o", "/dev/null", "-p", "PID"])
    yield "torch.profiler", lambda training: training.ask("profiled") * 1e3
    if kineto:
        yield "perf --torch --ops", operators(probing)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--probing", required=True)
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    training, ratios, times = Training(chosen.python), {}, []
    kineto = has_kineto(chosen.python)
    try:
        for _ in range(chosen.rounds):
            for name, look in ways(chosen.probing, kineto):
                before = training.alone()
                times.append(before)
                ratios.setdefault(name, []).append(look(training) / before)
    finally:
        training.process.kill()
    print("a step alone: %.2f ms; beside that, the median of %d rounds:" % (statistics.median(times), chosen.rounds))
    for name, found in ratios.items():
        print("  %-22s %5.2f  (%.2f to %.2f)" % (name, statistics.median(found), min(found), max(found)))


if __name__ == "__main__":
    main()

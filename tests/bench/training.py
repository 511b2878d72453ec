# SPDX-License-Identifier: GPL-3.0-or-later
"""Shares and durations of modules beside torch.profiler's.

The program names the calls of its modules for torch.profiler (tests/bench/training_models.py). Of the
shares, those steps count that lie in the recording. Durations of --exact are compared with those of
steps just before and after, since each tool would time the other's hooks, too: medians, by module.

Usage: training.py --probing PROGRAM [--python PYTHON] [--samples N] [--model NAME …]
"""
import argparse
import bisect
import collections
import json
import os
import statistics
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODELS = ("transformer", "resnet", "rnn", "shared", "checkpointing")
RATE = 500
FEWEST = 20  # calls of a module that are compared
ROUNDS, SECONDS = 3, 2
SHORTEST = 200  # µs: of shorter calls, what a tool adds itself is more than what is asked


class Program:
    def __init__(self, python, model):
        self.process = subprocess.Popen([python, HERE / "training_models.py", model],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        bufsize=1)
        self.pid = str(self.process.pid)
        self.expect("ready")

    def expect(self, line):
        assert self.process.stdout.readline() == line + "\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def during(self, command):
        """What the command prints, and the ranges of torch.profiler meanwhile."""
        self.process.stdin.write("begin\n")
        self.expect("begun")
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        self.process.stdin.write("end\n")
        return json.loads(done.stdout), json.loads(self.process.stdout.readline())


def true_shares(events, begin, end):
    """Of the steps in a time: the share of each name, of calls within themselves the outermost."""
    steps = sorted((start, start + length) for name, start, length in events if name == "step")
    steps = [each for each in steps if begin <= each[0] and each[1] <= end]
    starts = [start for start, _ in steps]
    total, reached = collections.Counter(), {}
    for name, start, length in sorted(events, key=lambda each: (each[1], -each[2])):
        step = bisect.bisect(starts, start) - 1
        if step < 0 or start > steps[step][1] or start < reached.get(name, 0):
            continue
        reached[name] = start + length
        total[name] += length
    if not steps:
        raise SystemExit("training: no whole step lies in the recording: the machine is too busy")
    return {name: length / total["step"] for name, length in total.items()}


def compare_shares(probing, program, samples):
    found, events = program.during([probing, "-p", program.pid, "perf", "--torch", "--json", "-r",
                                    str(RATE), "-d", "%ds" % (samples / RATE * 1.3)])
    seen = collections.Counter()
    for node in found["nodes"]:
        seen[node["path"] or node["name"]] += node["share"]
    # What is between the steps is no part of theirs.
    begin = found["timestamp"] * 1e6
    truth = true_shares(events, begin, begin + found["duration_ns"] / 1e3)
    worst = max((abs(seen[name] - share), name) for name, share in truth.items() if name != "step")
    return found, len(truth) - 1, worst


def compare_calls(probing, program):
    of = collections.defaultdict(list), collections.defaultdict(list)
    for _ in range(ROUNDS):
        _, events = program.during(["sleep", str(SECONDS)])
        for name, _, length in events:
            of[0][name].append(length)
        subprocess.run([probing, "-p", program.pid, "perf", "--torch", "--exact", "--json", "--steps",
                        "30"], stdout=subprocess.DEVNULL, check=True)
    done = subprocess.run(
        [probing, "-p", program.pid, "query", "-f", "json",
         "SELECT module, duration FROM python.torch_calls WHERE stage IN ('forward', 'recompute')"],
        stdout=subprocess.PIPE, check=True)
    for row in json.loads(done.stdout):
        of[1][row["module"]].append(row["duration"] * 1e3)
    theirs, ours = ({name: statistics.median(each) for name, each in one.items() if len(each) >= FEWEST}
                    for one in of)
    ratios = {name: ours[name] / length for name, length in theirs.items()
              if name in ours and length > SHORTEST}
    worst = max((abs(ratio - 1), name) for name, ratio in ratios.items())
    return sum(map(len, of[1].values())), len(ratios), worst


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--probing", required=True)
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--samples", type=int, default=5000)
    parser.add_argument("--model", action="append", choices=MODELS)
    options = parser.parse_args()
    probing = os.path.abspath(options.probing)
    print("| model | samples | parts and modules | largest difference of a share | calls timed | modules "
          "| largest difference of a duration |")
    print("|---|---|---|---|---|---|---|")
    for model in options.model or MODELS:
        with Program(options.python, model) as program:
            found, count, (points, name) = compare_shares(probing, program, options.samples)
            calls, modules, (part, slowest) = compare_calls(probing, program)
        print("| %s | %d (%d independent) | %d | %.1f points (%s) | %d | %d | %.1f %% (%s) |" % (
            model, found["samples"], found["independent_samples"], count, 100 * points, name, calls,
            modules, 100 * part, slowest), flush=True)


if __name__ == "__main__":
    main()

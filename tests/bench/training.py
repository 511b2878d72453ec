# SPDX-License-Identifier: GPL-3.0-or-later
"""Shares and durations of modules beside torch.profiler's.

The program names the calls of its modules for torch.profiler (tests/bench/training_models.py). Of the
shares, those steps count that lie in the recording. Durations of --exact are compared with those that
the program itself tells of the same calls, by a clock and by torch.profiler, both within forward.

Usage: training.py --probing PROGRAM [--python PYTHON] [--samples N] [--steps N] [--model NAME …]
       [--device DEVICE]
"""
import argparse
import bisect
import collections
import json
import os
import statistics
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODELS = ("transformer", "resnet", "rnn", "shared", "checkpointing")
RATE = 500
FEWEST = 20  # calls of a module that are compared
ROUNDS, SECONDS = 5, 4
DETAILS = os.environ.get("DETAILS")
SHORTEST = 200  # µs: of shorter calls, what torch itself does for a call is more than what is asked


class Program:
    def __init__(self, python, model, device="cpu", env=None):
        self.process = subprocess.Popen([python, HERE / "training_models.py", model, device],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        bufsize=1, env=env)
        self.pid = str(self.process.pid)
        self.expect("ready")

    def expect(self, line):
        assert self.process.stdout.readline() == line + "\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def during(self, command, by="begin"):
        """What the command prints, and the ranges of torch.profiler meanwhile, or of a mere clock."""
        self.process.stdin.write(by + "\n")
        self.expect("begun")
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        self.process.stdin.write("end\n")
        return json.loads(done.stdout or "null"), json.loads(self.process.stdout.readline())


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


def compare_shares(probing, program, *how):
    """What was recorded, and by name: torch.profiler's share, ours and its bounds."""
    found, events = program.during([probing, "-p", program.pid, "perf", "--torch", "--json", "-r",
                                    str(RATE), *how])
    seen = collections.defaultdict(lambda: [0, 0, 0])
    for node in found["nodes"]:
        one = seen[node["path"] or node["name"]]
        one[:] = [one[0] + node["share"], one[1] + node["share_low"], one[2] + node["share_high"]]
    # What is between the steps is no part of theirs.
    begin = found["timestamp"] * 1e6
    truth = true_shares(events, begin, begin + found["duration_ns"] / 1e3)
    return found, {name: (share, *seen[name]) for name, share in truth.items() if name != "step"}


def by_call(rows):
    """Of each module and step, the durations in the order in which the calls began."""
    found = collections.defaultdict(list)
    for name, step, _, duration in sorted(rows, key=lambda row: row[1:3]):
        found[name, step].append(duration)
    return found


def compare_calls(probing, program, by, count):
    """By how much calls of each module are longer for us than by the other clock: medians, of modules that
    call none, and of those that call others."""
    begin = time.time()
    _, theirs = program.during([probing, "-p", program.pid, "perf", "--torch", "--exact", "--json",
                                "--steps", str(count)], by)
    done = subprocess.run(
        [probing, "-p", program.pid, "query", "-f", "json",
         "SELECT module, step, seq, 1000 * duration AS us FROM python.torch_calls "
         "WHERE stage IN ('forward', 'recompute') AND timestamp > %f" % begin],
        stdout=subprocess.PIPE, check=True)
    ours = by_call([list(row.values()) for row in json.loads(done.stdout)])
    pairs = collections.defaultdict(list)
    for key, lengths in by_call(theirs).items():
        if len(ours.get(key, [])) == len(lengths):
            pairs[key[0]] += zip(ours[key], lengths)
    found = {}, {}
    for name, each in pairs.items():
        length = statistics.median(length for _, length in each)
        if len(each) >= FEWEST and length > SHORTEST:
            more = statistics.median(our / length - 1 for our, length in each)
            found[any(other.startswith(name + ".") for other in pairs)][name] = more
            if DETAILS:
                print("%-28s %5d calls, %9.1f µs by %s, %+5.2f %%" % (
                    name, len(each), length, by, 100 * more))
    return sum(map(len, pairs.values())), found


def compare_cost(probing, program):
    """How much longer steps are while samples are taken: medians of steps just before and after."""
    found = []
    for _ in range(ROUNDS):
        _, before = program.during(["sleep", str(SECONDS / 2)], "steps")
        taken, steps = program.during([probing, "-p", program.pid, "perf", "--torch", "--json", "-r",
                                       "100", "-d", "%ds" % SECONDS], "steps")
        _, after = program.during(["sleep", str(SECONDS / 2)], "steps")
        end = taken["timestamp"] + taken["duration_ns"] / 1e9
        within = [length for began, length in steps if taken["timestamp"] <= began < end]
        found.append(statistics.median(within) / statistics.median(
            length for _, length in before + after) - 1)
    return statistics.median(found)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--probing", required=True)
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--samples", type=int, default=5000)
    parser.add_argument("--steps", type=int, default=30, help="that are timed")
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--device", default="cpu", help="of the models, as torch names it")
    options = parser.parse_args()
    probing = os.path.abspath(options.probing)
    print("| model | samples | parts and modules | largest difference of a share | calls | to a clock, of modules "
          "without others | with others | to torch.profiler | with others | cost at 100 Hz |")
    print("|---" * 10 + "|")
    for model in options.model or MODELS:
        with Program(options.python, model, options.device) as program:
            found, shares = compare_shares(probing, program, "-d", "%ds" % (options.samples / RATE * 1.3))
            points, name = max((abs(ours - share), name) for name, (share, ours, _, _) in shares.items())
            calls, clock = compare_calls(probing, program, "clock", options.steps)
            _, profiler = compare_calls(probing, program, "profiler", options.steps)
            cost = compare_cost(probing, program)
        worst = ["%.1f %% (%s)" % max((100 * abs(more), name) for name, more in one.items()) if one else "-"
                 for one in (*clock, *profiler)]
        print("| %s | %d (%d independent) | %d | %.1f points (%s) | %d | %s | %.1f %% |" % (
            model, found["samples"], found["independent_samples"], len(shares), 100 * points, name, calls,
            " | ".join(worst), 100 * cost), flush=True)


if __name__ == "__main__":
    main()

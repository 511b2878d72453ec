# SPDX-License-Identifier: GPL-3.0-or-later
"""Shares of the parts of a training step, in the loops that people train with, beside clocks in the program.

Usage: training_kinds.py --probing PROGRAM [--python PYTHON …] [--seconds S] [--steps N] [--kind KIND …]
"""
import argparse
import json
import os
import subprocess
import time
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[1] / "live/programs/training/kinds.py"
KINDS = ("plain", "sgd", "closure", "lbfgs", "trainer", "evaluation", "decorated", "checkpointing", "reentrant",
         "accumulation", "gan", "models", "ema", "hidden", "amp", "loader")
EXACT = {"forward": "forward_ms", "backward": "backward_ms", "optimizer": "optimizer_ms", "data loading": "data_ms",
         "evaluation (no gradient)": "evaluation_ms", "other": "other_ms"}
WIDTH = "384"


def run(*command):
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def start(python, kind):
    process = subprocess.Popen([python, PROGRAM, kind, WIDTH], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.DEVNULL, bufsize=1)
    assert process.stdout.readline() == "ready\n", kind
    return process


def during(process, *command):
    """What the command prints, and the parts that the program was in meanwhile."""
    process.stdin.write("begin\n")
    assert process.stdout.readline() == "begun\n"
    found = run(*command)
    process.stdin.write("end\n")
    return found, json.loads(process.stdout.readline())


def true_shares(times, spans):
    total = {}
    for name, begin, end in times:
        total[name] = total.get(name, 0) + sum(max(0, min(end, last) - max(begin, first)) for first, last in spans)
    return {name: each / sum(total.values()) for name, each in total.items()}


def worst(ours, truth):
    """The largest difference of a part's share, and the part."""
    return max((abs(ours.get(name, 0) - truth.get(name, 0)), name) for name in {*ours, *truth})


def compare_samples(probing, process, seconds):
    found, times = during(process, probing, "-p", str(process.pid), "perf", "--torch", "--json", "-r", "500",
                          "-d", "%gs" % seconds)
    begin = found["timestamp"]
    ours = {node["name"]: node["share"] for node in found["nodes"] if node["parent"] in (None, -1)}
    return worst(ours, true_shares(times, [(begin, begin + found["duration_ns"] / 1e9)]))


def compare_exact(probing, process, steps):
    """In the timed steps. They are long enough that the agent's own time in them is small."""
    since = time.time()
    found, times = during(process, probing, "-p", str(process.pid), "perf", "--torch", "--json", "--exact",
                          "--steps", str(steps))
    rows = run(probing, "-p", str(process.pid), "query", "-f", "json", "SELECT timestamp, duration FROM "
               "python.torch_step_timing WHERE kind = 'sampled' AND timestamp > %f" % since)
    spans = [(row["timestamp"] - row["duration"] / 1e3, row["timestamp"]) for row in rows]
    ours = {name: found[key] / found["duration_ms"] for name, key in EXACT.items()}
    return worst(ours, true_shares(times, spans))


def version(python):
    done = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], stdout=subprocess.PIPE, text=True,
                          check=True)
    return done.stdout.strip().partition("+")[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--probing", required=True)
    parser.add_argument("--python", action="append")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--kind", action="append", choices=KINDS)
    options = parser.parse_args()
    probing, pythons = os.path.abspath(options.probing), options.python or ["/usr/bin/python3"]
    print("| loop |%s" % "".join(" torch %s, samples | `--exact` |" % version(each) for each in pythons))
    print("|---" * (1 + 2 * len(pythons)) + "|")
    for kind in options.kind or KINDS:
        cells = []
        for python in pythons:
            process = start(python, kind)
            try:
                cells += [compare_samples(probing, process, options.seconds),
                          compare_exact(probing, process, options.steps)]
            finally:
                process.kill()
                process.wait()
        print("| %s | %s |" % (kind, " | ".join("%.1f points (%s)" % (100 * more, name) for more, name in cells)),
              flush=True)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Shares of the parts of a training step, in the loops that people train with, beside clocks in the program.

Usage: training_kinds.py --probing PROGRAM [--python PYTHON …] [--seconds S] [--steps N] [--kind KIND …] [--out PAGE]

PYTHON may begin with variables: "PYTHONHOME=/somewhere python3". A loop whose framework it lacks is left out. PAGE gets
the table in the place of the one whose first column is "loop".
"""
import argparse
import json
import os
import subprocess
import time
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[1] / "live/programs/training/kinds.py"
KINDS = {
    "lightning": "Lightning", "hf": "HF Trainer, accumulation of 3", "accelerate": "accelerate, accumulation of 2",
    "plain": "plain, AdamW", "sgd": "plain, SGD", "closure": "SGD with a closure", "lbfgs": "LBFGS",
    "evaluation": "evaluation every sixth step", "decorated": "the same by `@torch.no_grad()`",
    "checkpointing": "checkpointing", "reentrant": "the same, reentrant", "accumulation": "accumulation of 4",
    "gan": "GAN, two optimizers", "models": "two models", "ema": "EMA", "hidden": "model behind a property",
    "amp": "bfloat16, GradScaler", "compiled": "`torch.compile`", "loader": "slow loader"}
PACKAGES = {"lightning": ("lightning", "pytorch-lightning"), "hf": ("transformers",), "accelerate": ("accelerate",)}
EXACT = {"forward": "forward_ms", "backward": "backward_ms", "optimizer": "optimizer_ms", "data loading": "data_ms",
         "evaluation (no gradient)": "evaluation_ms", "other": "other_ms"}
WIDTH = "384"


def run(*command):
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def start(python, kind):
    """The process in its loop; None if it cannot run that here."""
    process = subprocess.Popen(["env", "CUDA_VISIBLE_DEVICES=", "OMP_NUM_THREADS=1", *python.split(), PROGRAM, kind, WIDTH],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL,
                               bufsize=1)
    while True:
        line = process.stdout.readline()
        if line in ("", "ready\n"):
            break
    if line:
        return process
    process.wait()
    return None


def answer(process):
    """A line of the loop's; trainers print others."""
    for line in process.stdout:
        if line == "begun\n" or line.startswith("[["):
            return line
    raise EOFError


def during(process, *command):
    """What the command prints, and the parts that the program was in meanwhile."""
    process.stdin.write("begin\n")
    assert answer(process) == "begun\n"
    found = run(*command)
    process.stdin.write("end\n")
    return found, json.loads(answer(process))


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
    assert abs(sum(ours.values()) - 1) < 1e-3, ours
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
    assert abs(sum(ours.values()) - 1) < 0.02, ours
    return worst(ours, true_shares(times, spans))


def output_of(python, code):
    done = subprocess.run(["env", *python.split(), "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=False)
    return done.stdout.strip().partition("+")[0]


def cell(probing, python, kind, options):
    """The text of two columns."""
    process = start(python, kind)
    if not process:
        return "– | –"
    try:
        found = [compare_samples(probing, process, options.seconds), compare_exact(probing, process, options.steps)]
    finally:
        process.kill()
        process.wait()
    text = " | ".join("%.1f (%s)" % (100 * more, name.partition(" (")[0]) for more, name in found)
    versions = [output_of(python, "import importlib.metadata as m; print(m.version(%r))" % name)
                for name in PACKAGES.get(kind, ())]
    return text.replace(" |", "; %s |" % "".join(versions[:1]) if any(versions) else " |", 1)


def write(page, lines):
    """Puts the table into the page."""
    text = page.read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(text) if line.startswith("| loop |"))
    last = next(i for i in range(first, len(text)) if not text[i].startswith("|"))
    page.write_text("\n".join(text[:first] + lines + text[last:]) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--probing", required=True)
    parser.add_argument("--python", action="append")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    probing, pythons = os.path.abspath(options.probing), options.python or ["/usr/bin/python3"]
    lines = ["| loop |%s" % "".join(
        " torch %s, samples | `--exact` |" % output_of(each, "import torch; print(torch.__version__)")
        for each in pythons), "|---" * (1 + 2 * len(pythons)) + "|"]
    print("\n".join(lines), flush=True)
    for kind in options.kind or KINDS:
        lines.append("| %s | %s |" % (KINDS[kind], " | ".join(cell(probing, python, kind, options)
                                                            for python in pythons)))
        print(lines[-1], flush=True)
    if options.out:
        write(options.out, lines)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Shares of the parts of a training step, in the loops that people train with, beside clocks in the program.

Usage: training_kinds.py --probing PROGRAM [--python PYTHON …] [--seconds S] [--steps N] [--kind KIND …] [--out PAGE]

PYTHON may begin with variables: "PYTHONHOME=/somewhere python3". A loop whose framework it lacks is left out. PAGE gets
the table in the place of the one whose first column is "loop".
"""
import argparse
import json
import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[1] / "live/programs/training/kinds.py"
KINDS = {
    "lightning": "Lightning", "hf": "HF Trainer, accumulation of 3", "accelerate": "accelerate, accumulation of 2",
    "plain": "plain, AdamW", "sgd": "plain, SGD", "closure": "SGD with a closure", "lbfgs": "LBFGS",
    "evaluation": "evaluation every sixth step", "decorated": "the same by `@torch.no_grad()`",
    "checkpointing": "checkpointing", "reentrant": "the same, reentrant", "accumulation": "accumulation of 4",
    "gan": "GAN, two optimizers", "models": "two models", "ema": "EMA", "hidden": "model behind a property",
    "amp": "bfloat16, GradScaler", "compiled": "`torch.compile`", "loader": "slow loader",
    "even": "DDP, two ranks by gloo", "ranks": "DDP, one rank 150 ms late", "sharded": "FSDP, two ranks by gloo"}
RANKS = "even", "ranks", "sharded"
# Clocks of the program do not tell it apart from these: communication is in what waits for it.
MODEL = "forward", "backward", "communication"
PACKAGES = {"lightning": ("lightning", "pytorch-lightning"), "hf": ("transformers",), "accelerate": ("accelerate",)}
EXACT = {"forward": "forward_ms", "backward": "backward_ms", "optimizer": "optimizer_ms", "data loading": "data_ms",
         "evaluation (no gradient)": "evaluation_ms", "communication": "communication_ms",
         "other": "other_ms"}
WIDTH = "384"


def run(*command):
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


class Loop:
    """The processes of a loop; the first one is measured."""

    def __init__(self, python, kind):
        self.ranked, self.said = kind in RANKS, tempfile.TemporaryFile("w+")
        group = "MASTER_ADDR=127.0.0.1 MASTER_PORT=%s WORLD_SIZE=2 RANK=" % free_port()
        words = [(group + "%d" % rank).split() for rank in (0, 1)] if self.ranked else [[]]
        self.processes = [subprocess.Popen(
            ["env", "CUDA_VISIBLE_DEVICES=", "OMP_NUM_THREADS=1", *each, *python.split(), PROGRAM, kind, WIDTH],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, text=True, bufsize=1) for each in words]
        self.first = self.processes[0]
        self.why = self.begin()

    def begin(self):
        """Waits for its first steps; why there are none, or None."""
        for process in self.processes:
            for line in process.stdout:
                if line == "ready\n":
                    break
            else:
                return self.end()
        return None

    def end(self):
        """Its last words of an error."""
        for process in self.processes:
            process.kill()
            process.communicate()
        self.said.seek(0)
        return self.said.read().strip().rpartition("\n")[2] or "it ended"


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


def together(shares):
    """Of a rank."""
    model = "forward, backward"
    return {model: sum(shares.get(name, 0) for name in MODEL), **{
        name: share for name, share in shares.items() if name not in MODEL}}


def worst(ours, truth, ranked):
    """The largest difference of a part's share, and the part."""
    if ranked:
        ours, truth = together(ours), together(truth)
    return max((abs(ours.get(name, 0) - truth.get(name, 0)), name) for name in {*ours, *truth})


def compare_samples(probing, process, seconds, ranked):
    found, times = during(process, probing, "-p", str(process.pid), "perf", "--torch", "--json", "-r", "500",
                          "-d", "%gs" % seconds)
    begin = found["timestamp"]
    ours = {node["name"]: node["share"] for node in found["nodes"] if node["parent"] in (None, -1)}
    assert abs(sum(ours.values()) - 1) < 1e-3, ours
    return worst(ours, true_shares(times, [(begin, begin + found["duration_ns"] / 1e9)]), ranked)


def compare_exact(probing, process, steps, ranked):
    """In the timed steps. They are long enough that the agent's own time in them is small."""
    since = time.time()
    found, times = during(process, probing, "-p", str(process.pid), "perf", "--torch", "--json", "--exact",
                          "--steps", str(steps))
    rows = run(probing, "-p", str(process.pid), "query", "-f", "json", "SELECT timestamp, duration FROM "
               "python.torch_step_timing WHERE kind = 'sampled' AND timestamp > %f" % since)
    spans = [(row["timestamp"] - row["duration"] / 1e3, row["timestamp"]) for row in rows]
    ours = {name: found[key] / found["duration_ms"] for name, key in EXACT.items()}
    assert abs(sum(ours.values()) - 1) < 0.02, ours
    return worst(ours, true_shares(times, spans), ranked)


def output_of(python, code):
    done = subprocess.run(["env", *python.split(), "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=False)
    return done.stdout.strip().partition("+")[0]


def cell(probing, python, kind, options):
    """The text of two columns."""
    loop = Loop(python, kind)
    if loop.why:
        return "– (%s) | –" % loop.why.partition(": ")[2].replace("|", "/")[:80]
    try:
        found = [compare_samples(probing, loop.first, options.seconds, loop.ranked)]
        if kind != "compiled":  # where modules are not timed
            found.append(compare_exact(probing, loop.first, options.steps, loop.ranked))
    except (AssertionError, EOFError, subprocess.CalledProcessError) as error:
        return "– (%s) | –" % str(error)[:60].replace("|", "/")
    finally:
        loop.end()
    text = " | ".join("%.1f (%s)" % (100 * more, name.partition(" (")[0]) for more, name in found)
    text += "" if found[1:] else " | –"
    versions = [output_of(python, "import importlib.metadata as m; print(m.version(%r))" % name)
                for name in PACKAGES.get(kind, ())]
    return text.replace(" |", "; %s |" % "".join(versions[:1]) if any(versions) else " |", 1)


def cells_of(line):
    return [each.strip() for each in line.strip("|\n ").split("|")]


def write(page, lines):
    """Puts the table into the page. What was not measured now stays: rows of other loops, columns of other versions."""
    text = page.read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(text) if line.startswith("| loop |"))
    last = next(i for i in range(first, len(text)) if not text[i].startswith("|"))
    found, columns = {}, []
    for table in text[first:last], lines:
        head = cells_of(table[0])
        versions = head[1::2]
        columns += [each for each in versions if each not in columns]
        for row in map(cells_of, table[2:]):
            for n, version in enumerate(versions):
                found.setdefault(row[0], {})[version] = row[2 * n + 1:2 * n + 3]
    made = ["| loop |%s" % "".join(" %s | `--exact` |" % each for each in columns), "|---" * (1 + 2 * len(columns)) + "|"]
    made += ["|" + "".join(" %s |" % cell if cell else " |" for cell in
                           [name, *(cell for each in columns for cell in found[name].get(each, ("", "")))])
             for name in KINDS.values() if name in found]
    page.write_text("\n".join(text[:first] + made + text[last:]) + "\n", encoding="utf-8")


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
        " torch %s, samples | `--exact` |" % output_of(each, "import importlib.metadata as m; print(m.version('torch'))")
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

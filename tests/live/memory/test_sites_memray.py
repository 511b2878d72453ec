# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing memory --sites` beside memray: the same program, each allocation counted there and sampled here."""
import json
import subprocess

import packages
import support
from environment import PROGRAMS
from test_sites import Sampling, do

SCRIPT = PROGRAMS / "allocating_much.py"
SUMS = PROGRAMS / "memray_sums.py"
FUNCTIONS = ("pairs", "texts", "keys", "pieces")
ROUNDS = 10
EVERY = 16384


def counted(python, folder):
    """{function: bytes} by memray."""
    capture = folder / "capture"
    subprocess.run([python, "-m", "memray", "run", "--trace-python-allocators", "-q", "-o", capture, SCRIPT,
                    str(ROUNDS)], check=True, stdout=subprocess.DEVNULL)
    done = subprocess.run([python, SUMS, capture], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout.decode())


def sampled(python):
    with support.Program([python, SCRIPT]) as process:
        assert process.line() == "ready"
        with Sampling(process.pid, "--every", str(EVERY), "--json", "--rows", "1000") as sampling:
            assert do(process, ROUNDS) == "did %d" % ROUNDS
            return json.loads(sampling.end())


if support.LONG:  # memray takes long to read its file
    def test_the_bytes_that_memray_counts(tmp_path):
        python = packages.need("memray")
        theirs, found = counted(python, tmp_path), sampled(python)
        ours = dict.fromkeys(FUNCTIONS, 0)
        for row in found["sites"]:
            name = row["function"].split(".")[0]  # comprehensions are functions of their own before 3.12
            if name in ours:
                ours[name] += row["bytes"]
        whole = sum(theirs[name] for name in FUNCTIONS)
        assert found["lost_bytes"] == 0 and found["samples"] > 600 * ROUNDS, found["samples"]
        # Five standard deviations of an estimate, except for exact counts.
        assert abs(found["bytes"] / whole - 1) < 0.05, (found["bytes"], whole)
        assert abs(sum(ours.values()) / whole - 1) < 0.05, (ours, theirs)
        for name in FUNCTIONS:
            spread = 5 * (EVERY / theirs[name]) ** 0.5
            assert abs(ours[name] / theirs[name] - 1) < max(spread, 0.05), (name, ours, theirs)

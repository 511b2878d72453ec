# SPDX-License-Identifier: GPL-3.0-or-later
"""Shares of modules beside torch.profiler's, which times the same steps: of several kinds of models, with
5,000 samples each in the long form."""
import importlib.util
import os

import pytest

import support
import training

_spec = importlib.util.spec_from_file_location("bench_training", support.ROOT / "tests/bench/training.py")
bench = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(bench)
POINTS, SAMPLES = 0.02, 5000
HOW = ["-d", "%ds" % (SAMPLES / bench.RATE * 1.3)] if support.LONG else ["--steps", "5"]


@pytest.mark.parametrize("model", bench.MODELS if support.LONG else ["checkpointing"])
@pytest.mark.parametrize("torch", training.TORCHES, ids=repr)
def test_shares_beside_the_profiler(torch, model):
    torch.check()
    with bench.Program(torch.exe, model, env=dict(os.environ, **torch.env)) as program:
        found, shares = bench.compare_shares(support.BINARY, program, *HOW)
    assert {"model", "backward", "optimizer"} <= set(shares) and not found["unknown_ns"]
    # On a busy machine many samples carry no more information than few.
    few = found["independent_samples"] < SAMPLES / 2
    worst = max((abs(ours - share), name) for name, (share, ours, _, _) in shares.items())
    print(torch, model, found["samples"], found["independent_samples"], worst)
    for name, (share, ours, low, high) in shares.items():
        # Twice the 95 % bounds, which one value in twenty exceeds by chance.
        least, most = (2 * low - ours, 2 * high - ours) if few else (ours, ours)
        assert least - POINTS <= share <= most + POINTS, (name, share, ours, low, high, found["independent_samples"])

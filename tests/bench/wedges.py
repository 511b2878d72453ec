# SPDX-License-Identifier: GPL-3.0-or-later
"""What `probing server` says of stand-ins whose requests do not move, and how long that takes: wedges.py --probing BINARY.
Writes docs/server.tsv."""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = 7
# What is planted, and the state of vllm_standin.py; two of the socket and of the detokenizer have their own tests.
WEDGES = {
    "slots are held by requests that wait for a transfer": "deferred", "the KV cache is exhausted": "kv", "a transfer does not end": "transfer",
    "a reply was lost": "reply", "a worker has ended": "dead", "a grammar is not compiled": "grammar",
    "requests do not reach the engine core": "full", "a kernel is compiled": "compile", "a worker spins": "spin",
    "a worker does not read the ring": "ring", "outputs do not reach the clients": "behind", "the event loop waits for the GIL": "starved",
    "the event loop is blocked": "blocked", "the clients are gone": "gone", "the engine core has ended": "ended",
}


def measure(pid):
    """Medians in milliseconds: of the time that passed, and of that on a processor."""
    passed, used = [], []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        process = subprocess.Popen([os.environ["PROBING_BINARY"], "server", str(pid)], stdout=subprocess.DEVNULL)
        _, process.returncode, usage = os.wait4(process.pid, 0)
        passed.append(1e3 * (time.perf_counter() - begin))
        used.append(1e3 * (usage.ru_utime + usage.ru_stime))
    return ["%.0f" % statistics.median(each) for each in (passed, used)]


def rows(test_server):
    with tempfile.TemporaryDirectory() as folder:
        nvcc = Path(folder) / "nvcc"
        shutil.copy(shutil.which("sleep"), nvcc)
        for what, state in [*WEDGES.items(), ("the KV cache is exhausted, 5,000 requests", "kv")]:
            with test_server.server(state, 5000 if "5,000" in what else 0, nvcc=nvcc) as pids:
                pid = pids["api" if state == "ended" else "core"]
                test_server.wait_until(lambda pid=pid: test_server.verdict(pid)[0])
                sentence, confidence = test_server.verdict(pid)
                yield what, re.sub(r" \(\d+\)", "", sentence), confidence, *measure(pid)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probing", required=True)
    os.environ["PROBING_BINARY"] = str(Path(parser.parse_args().probing).resolve())
    sys.path[:0] = [str(ROOT / "tests" / "live" / "inference"), str(ROOT / "tests" / "live"), str(ROOT / "tests")]
    import test_server
    lines = ["# SPDX-License-Identifier: GPL-3.0-or-later",
             "# What `probing server` says of planted wedges, and milliseconds until it has, by make bench-wedges.",
             "planted\tsentence\tconfidence\tms\tms on a processor", *("\t".join(each) for each in rows(test_server))]
    (ROOT / "docs" / "server.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


main()

# SPDX-License-Identifier: GPL-3.0-or-later
"""What `memory --sites` costs programs that allocate all the time, beside tracemalloc and memray, and what it
finds, beside memray. Part of bench.py, or by itself: allocations.py --probing BINARY --peers FOLDER [--page FILE]

Rounds with and without it take turns in the same process; times are those of its thread on a processor,
of which the fastest fourth counts."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE.parent / "live" / "programs"
ROUNDS, TURNS, FEW_TURNS = 4, 5, 1
OBJECTS = 300000
WORKS = (("objects", OBJECTS, "ns an object, made and freed"), ("build", 60, "builds lists and dicts"),
         ("parse", 30, "parses JSON"), ("compiler", 1, "compiles Python"), ("requests", 20, "answers requests"),
         ("service", 8, "a service"), ("arrays", 10, "small arrays of numpy"))
TOTALS = 20


class Program:
    def __init__(self, python):
        self.process = subprocess.Popen([python, str(HERE / "allocation_works.py")], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n"
        self.pid = self.process.pid

    def do(self, *words):
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


class Sampling:
    def __init__(self, probing, pid, every, *options):
        self.command = subprocess.Popen(
            [probing, "-v", str(pid), "memory", "--sites", "3600s", "--every", every, "--json", "-n", "1000", *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for line in self.command.stderr:
            if b"allocations are sampled" in line:
                return
        raise SystemExit("allocations are not sampled")

    def end(self):
        self.command.send_signal(signal.SIGINT)
        return json.loads(self.command.communicate()[0])


def fastest(times):
    """The mean of the fastest fourth."""
    times = sorted(times)[:max(1, len(times) // 4)]
    return sum(times) / len(times)


def measure(program, works, count, begin, end):
    """{work: time} without and with it."""
    times = {}
    for turn in range(2 * count):
        state = begin() if turn % 2 else None
        for _ in range(ROUNDS):
            for work, times_over, _ in works:
                times.setdefault((work, turn % 2), []).append(program.do(work, times_over))
        if turn % 2:
            end(state)
    return [{work: fastest(times[work, on]) for work, _, _ in works} for on in (0, 1)]


def has(python, module):
    return not subprocess.run([python, "-c", "import " + module], stderr=subprocess.DEVNULL, check=False).returncode


def costs(probing, python, folder):
    """Rows of the table."""
    works = [work for work in WORKS if work[0] != "arrays" or has(python, "numpy")]
    lines = ["", "### What sampling allocations costs", "",
             "| | " + " | ".join(words for _, _, words in works) + " |", "|---" * (len(works) + 1) + "|"]
    with Program(python) as program:
        def sampled(every, *options):
            return lambda: Sampling(probing, program.pid, every, *options), lambda state: state.end()

        def traced(frames):
            return lambda: program.do("trace", frames), lambda _: program.do("trace", 0)

        def recorded(of_python):
            file = folder + "/capture"

            def end(_):
                program.do("memray")
                os.unlink(file)
            return lambda: program.do("memray", file, of_python), end

        tools = [("`memory --sites`, 512 KiB", TURNS, sampled("512KiB")),
                 ("`memory --sites`, 64 KiB", TURNS, sampled("64KiB")),
                 ("`memory --sites --cc`", TURNS, sampled("512KiB", "--cc")),
                 ("`tracemalloc`, 1 frame", FEW_TURNS, traced(1)),
                 ("`tracemalloc`, 25 frames", FEW_TURNS, traced(25))]
        if has(python, "memray"):
            tools += [("memray", FEW_TURNS, recorded(0)),
                      ("memray, with Python's allocators", FEW_TURNS, recorded(1))]
        plain = None
        for name, count, (begin, end) in tools:
            print(name, file=sys.stderr)
            plain, slow = measure(program, works, count, begin, end)
            lines.append("| %s | %+.1f | %s |" % (
                name, (slow["objects"] - plain["objects"]) / OBJECTS * 1e9,
                " | ".join("%+.1f %%" % (100 * (slow[work] / plain[work] - 1)) for work, _, _ in works[1:])))
        lines.insert(5, "| without | %.1f | %s |" % (
            plain["objects"] / OBJECTS * 1e9,
            " | ".join("%.1f ms" % (1e3 * plain[work] / times_over) for work, times_over, _ in works[1:])))
    return lines


def totals(probing, python, folder):
    """The largest functions by both; nothing without memray."""
    if not has(python, "memray"):
        return []
    with Program(python) as program:
        sampling = Sampling(probing, program.pid, "32KiB")
        program.do("totals", TOTALS)
        found = sampling.end()
    capture = folder + "/totals"
    subprocess.run([python, "-m", "memray", "run", "--trace-python-allocators", "-q", "-o", capture, "-c",
                    "import sys; sys.path.insert(0, %r); import allocation_works; allocation_works.totals(%d)" % (
                        str(HERE), TOTALS)], check=True)
    done = subprocess.run([python, str(PROGRAMS / "memray_sums.py"), capture], stdout=subprocess.PIPE, check=True)
    sums = json.loads(done.stdout.decode())
    ours = {}
    for row in found["sites"]:
        name = row["function"].split(".")[0]  # comprehensions are functions of their own before 3.12
        ours[name] = ours.get(name, 0) + row["bytes"]
    lines = ["", "### Bytes that functions allocated, %d samples" % found["samples"], "",
             "| function | memray, MB | memory --sites, MB | difference |", "|---|---|---|---|"]
    names = [(name, sums[name], ours[name]) for name in ("pairs", "texts", "keys", "pieces")]
    for name, theirs, mine in names + [("together", *(sum(row[i] for row in names) for i in (1, 2)))]:
        lines.append("| %s | %.1f | %.1f | %+.1f %% |" % (name, theirs / 1e6, mine / 1e6, 100 * (mine / theirs - 1)))
    return lines


def page(args, python):
    """Lines of Markdown. Peers are of another Python than the one that bench.py measures with."""
    peers = args.peers + "/bin/python"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PROBING_DATA_DIR"] = folder
        use = peers if os.path.exists(peers) else python
        return costs(args.probing, use, folder) + totals(args.probing, use, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--probing", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--peers", required=True)
    args = parser.parse_args()
    print("\n".join(page(args, args.python)))


if __name__ == "__main__":
    main()

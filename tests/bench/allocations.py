# SPDX-License-Identifier: GPL-3.0-or-later
"""What `memory --sites` costs a program that allocates all the time, beside tracemalloc; and what it
finds, beside memray.

`make bench-allocations` prints it. Rounds with and without it take turns in the same process; times
are those of its thread on a processor. memray is compared with if it can be installed."""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

ROUNDS = 12
OBJECTS = 2000000
WORK = """
import json, sys, time, tracemalloc
TEXT = json.dumps([{"name": "item %d" % i, "values": [i + 0.5, i * 1000003], "tags": ["a%d" % i, "b"]}
                   for i in range(300)])
class Row:
    def __init__(self, item):
        self.item, self.key = item, item["name"].upper()
def parse():
    return [Row(item) for item in json.loads(TEXT)]
def join(rows):
    return ",".join(row.key * 20 for row in rows).encode()
def objects(count):
    make = object
    for _ in range(count):
        make()
def heavy(count):
    for _ in range(count):
        join(parse())
"""
PROGRAM = WORK + """
print("ready", flush=True)
for line in sys.stdin:
    word, count = line.split()
    began = time.thread_time()
    if word == "trace":
        tracemalloc.start(int(count)) if int(count) else tracemalloc.stop()
    else:
        globals()[word](int(count))
    print(time.thread_time() - began, flush=True)
"""
TOTALS = 3000
FOR_MEMRAY = WORK + "heavy(%d)\n" % TOTALS
SUMS = """
import collections, json, sys
from memray import AllocatorType, FileReader
sums = collections.Counter()
skipped = (AllocatorType.FREE, AllocatorType.MUNMAP, AllocatorType.PYMALLOC_FREE, AllocatorType.MMAP)
for record in FileReader(sys.argv[1]).get_allocation_records():
    if record.allocator not in skipped:
        stack = record.stack_trace(max_stacks=1)
        sums[stack[0][0] if stack else ""] += record.size
print(json.dumps(sums))
"""


class Program:
    def __init__(self, python):
        self.process = subprocess.Popen([python, "-c", PROGRAM], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == b"ready\n"
        self.pid = self.process.pid

    def do(self, word, count):
        self.process.stdin.write(b"%s %d\n" % (word.encode(), count))
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


class Sampling:
    def __init__(self, binary, pid, every):
        self.command = subprocess.Popen(
            [binary, "-v", str(pid), "memory", "--sites", "3600s", "--every", every, "--json", "-n", "1000"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for line in self.command.stderr:
            if b"allocations are sampled" in line:
                return
        raise SystemExit("allocations are not sampled")

    def end(self):
        self.command.send_signal(signal.SIGINT)
        return json.loads(self.command.communicate()[0])


def median(values):
    return sorted(values)[len(values) // 2]


def turns(program, word, count, begin, end):
    """Medians of the times without and with it; and what was found the last time."""
    without, with_it, found = [], [], None
    for _ in range(ROUNDS):
        without.append(program.do(word, count))
        state = begin()
        with_it.append(program.do(word, count))
        found = end(state)
    return median(without), median(with_it), found


def costs(binary, python):
    with Program(python) as program:
        def sampled(every):
            return lambda: Sampling(binary, program.pid, every), lambda state: state.end()

        def traced(frames):
            return lambda: program.do("trace", frames), lambda _: program.do("trace", 0)

        for name, (begin, end) in (("memory --sites, 512 KiB", sampled("512KiB")),
                                   ("memory --sites, 64 KiB", sampled("64KiB")),
                                   ("memory --sites, 1 GiB", sampled("1GiB")),
                                   ("tracemalloc, 1 frame", traced(1)),
                                   ("tracemalloc, 25 frames", traced(25))):
            plain, slow, found = turns(program, "objects", OBJECTS, begin, end)
            each = (slow - plain) / OBJECTS * 1e9
            plain, slow, found = turns(program, "heavy", 200, begin, end)
            rate = ", %4.0f samples/s" % (found["samples"] / slow) if isinstance(found, dict) else ""
            print("%-24s %7.1f ns an object   program %+6.1f %%%s" % (
                name, each, 100 * (slow / plain - 1), rate))


def totals(binary, python, peers, folder):
    with Program(python) as program:
        sampling = Sampling(binary, program.pid, "64KiB")
        program.do("heavy", TOTALS)
        found = sampling.end()
    script, capture = folder + "/work.py", folder + "/work.bin"
    pathlib.Path(script).write_text(FOR_MEMRAY, encoding="utf-8")
    subprocess.run([peers, "-m", "memray", "run", "--trace-python-allocators", "-q", "-o", capture, script],
                   check=True)
    done = subprocess.run([peers, "-c", SUMS, capture], stdout=subprocess.PIPE, check=True)
    sums = json.loads(done.stdout.decode())
    ours = {}
    for row in found["sites"]:
        name = row["function"].split(".")[-1]
        ours[name] = ours.get(name, 0) + row["bytes"]
    print("bytes, %d samples        memray    memory --sites" % found["samples"])
    for name in sorted(sums, key=sums.get, reverse=True)[:6]:
        mine = ours.get(name, 0)
        print("  %-20s %12d %12d  %+5.1f %%" % (name, sums[name], mine, 100 * (mine / sums[name] - 1)))
    print("  %-20s %12d %12d  %+5.1f %%" % ("all", sum(sums.values()), found["bytes"],
                                            100 * (found["bytes"] / sum(sums.values()) - 1)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--peers", help="Python with memray, of the same version")
    options = parser.parse_args()
    costs(options.binary, options.python)
    if options.peers:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["PROBING_DATA_DIR"] = folder
            totals(options.binary, options.python, options.peers, folder)


if __name__ == "__main__":
    main()

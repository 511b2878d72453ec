# SPDX-License-Identifier: GPL-3.0-or-later
"""What `memory --sites` costs a program that allocates all the time, beside tracemalloc; and what it
finds, beside memray.

`make bench-allocations` prints it. Rounds with and without it take turns in the same process; times
are the shortest ones of its thread on a processor. memray is compared with if it can be installed."""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

TURNS, ROUNDS = 5, 4
OBJECTS = 300000
WORKS = (("objects", OBJECTS), ("heavy", 60), ("handle", 20), ("serve", 8))
WORK = """
import hashlib, json, re, sqlite3, sys, time, tracemalloc, zlib
TEXT = json.dumps([{"name": "item %d" % i, "values": [i + 0.5, i * 1000003], "tags": ["a%d" % i, "b"]}
                   for i in range(300)])
def parse():
    return json.loads(TEXT)
def index(rows):
    found = {}
    for row in rows:
        found[row["name"].upper()] = (row, [value * 2 for value in row["values"]])
    return found
def join(rows):
    parts = []
    for name in rows:
        parts.append(name * 20)
    return ",".join(parts).encode()
class Order:
    def __init__(self, row):
        self.name, self.values, self.tags = row["name"], row["values"], set(row["tags"])
    def total(self):
        return sum(self.values) * (1.19 if "b" in self.tags else 1.07)
def answer(text):
    orders = [Order(row) for row in json.loads(text)]
    orders.sort(key=lambda order: -order.total())
    lines = ["%s: %.2f (%s)" % (order.name, order.total(), ", ".join(sorted(order.tags))) for order in orders]
    return json.dumps({"lines": lines, "count": len(lines)})
def handle(count):
    for _ in range(count):
        answer(TEXT)
# What a service does beside: a database, patterns, compression and hashes.
def store(database, order):
    database.execute("INSERT OR REPLACE INTO orders VALUES (?, ?, ?)", (order.name, order.total(), str(order.tags)))
def page(database, template):
    rows = database.execute("SELECT name, total FROM orders WHERE total > ? ORDER BY total LIMIT 100", (50,)).fetchall()
    return template.sub(lambda found: str(len(rows)) + found.group(1), "{count} of {all} orders " * 40) + repr(rows)
def serve(count):
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE orders (name TEXT PRIMARY KEY, total REAL, tags TEXT)")
    template = re.compile(r"\\{(\\w+)\\}")
    for _ in range(count):
        for row in json.loads(TEXT):
            store(database, Order(row))
        body = zlib.compress(page(database, template).encode(), 6)
        hashlib.sha256(body).hexdigest()
# memray traces calls, for which Python makes frame and method objects that it then counts: so this
# has few of them.
def pairs():
    return [[i * 1000003, i + 0.5] for i in range(20000)]
def texts():
    return ["text number %d" % i for i in range(20000)]
def keys():
    return {i * 7: (i, i) for i in range(20000)}
def pieces(data=bytes(200000)):
    return [data[i:i + 900] for i in range(0, 200000, 100)]
def totals(count):
    for _ in range(count):
        pairs(), texts(), keys(), pieces(), json.loads(TEXT)
def objects(count):
    make = object
    for _ in range(count):
        make()
def heavy(count):
    for _ in range(count):
        join(index(parse()))
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
TOTALS = 20
FOR_MEMRAY = WORK + "totals(%d)\n" % TOTALS
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
    def __init__(self, binary, pid, every, *options):
        self.command = subprocess.Popen(
            [binary, "-v", str(pid), "memory", "--sites", "3600s", "--every", every, "--json", "-n", "1000", *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for line in self.command.stderr:
            if b"allocations are sampled" in line:
                return
        raise SystemExit("allocations are not sampled")

    def end(self):
        self.command.send_signal(signal.SIGINT)
        return json.loads(self.command.communicate()[0])


def turns(program, begin, end):
    """{work: shortest time} without and with it; and what was found the last time."""
    without, with_it, found = {}, {}, None
    for turn in range(2 * TURNS):
        state = begin() if turn % 2 else None
        for _ in range(ROUNDS):
            for work, count in WORKS:
                times = with_it if turn % 2 else without
                times[work] = min(times.get(work, 1e9), program.do(work, count))
        found = end(state) if turn % 2 else found
    return without, with_it, found


def costs(binary, python):
    with Program(python) as program:
        def sampled(every, *options):
            return lambda: Sampling(binary, program.pid, every, *options), lambda state: state.end()

        def traced(frames):
            return lambda: program.do("trace", frames), lambda _: program.do("trace", 0)

        print("%-26s ns an object   parses JSON   handles requests   is a service" % "")
        for name, (begin, end) in (("memory --sites, 512 KiB", sampled("512KiB")),
                                   ("memory --sites, 64 KiB", sampled("64KiB")),
                                   ("memory --sites --cc", sampled("512KiB", "--cc")),
                                   ("tracemalloc, 1 frame", traced(1)),
                                   ("tracemalloc, 25 frames", traced(25))):
            plain, slow, _ = turns(program, begin, end)
            parts = [100 * (slow[work] / plain[work] - 1) for work in ("heavy", "handle", "serve")]
            print("%-26s %12.1f %11.1f %% %16.1f %% %12.1f %%" % (
                name, (slow["objects"] - plain["objects"]) / OBJECTS * 1e9, *parts))


def totals(binary, python, peers, folder):
    with Program(python) as program:
        sampling = Sampling(binary, program.pid, "32KiB")
        program.do("totals", TOTALS)
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
    print("bytes, %6d samples          memray   memory --sites" % found["samples"])
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

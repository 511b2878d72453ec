# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that allocate all the time, for allocations.py: each function does its work so many times.

As a program it reads lines, "FUNCTION COUNT", and prints how long that took its thread on a processor; "trace
FRAMES" begins tracemalloc, and "memray FILE PYTHON" memray, with Python's own allocators if PYTHON is 1; 0 and ""
end them."""
import argparse
import ast
import hashlib
import json
import re
import sqlite3
import sys
import time
import tracemalloc
import zlib
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "live" / "programs"))
import allocating_much  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None

TEXT = json.dumps([{"name": "item %d" % i, "values": [i + 0.5, i * 1000003], "tags": ["a%d" % i, "b"]}
                   for i in range(300)])
with open(argparse.__file__, encoding="utf-8") as module:
    SOURCE = module.read()


def objects(count):
    make = object
    for _ in range(count):
        make()


def build(count):
    """Records, and groups of them."""
    for _ in range(count):
        rows = [{"id": i, "group": i % 17, "point": (i + 0.5, -i)} for i in range(500)]
        groups = {}
        for row in rows:
            groups.setdefault(row["group"], []).append((row["id"], row["point"][0] * 2))


def parse(count):
    """JSON, and an index of it."""
    for _ in range(count):
        found = {}
        for row in json.loads(TEXT):
            found[row["name"].upper()] = (row, [value * 2 for value in row["values"]])
        ",".join([name * 20 for name in found]).encode()


def compiler(count):
    """Source text to a tree, looked through, and to code."""
    for _ in range(count):
        tree = ast.parse(SOURCE)
        sorted({node.id for node in ast.walk(tree) if isinstance(node, ast.Name)})
        compile(tree, "module", "exec")


class Order:
    def __init__(self, row):
        self.name, self.values, self.tags = row["name"], row["values"], set(row["tags"])

    def total(self):
        return sum(self.values) * (1.19 if "b" in self.tags else 1.07)


def requests(count):
    """JSON in, objects, JSON out."""
    for _ in range(count):
        orders = [Order(row) for row in json.loads(TEXT)]
        orders.sort(key=lambda order: -order.total())
        lines = ["%s: %.2f (%s)" % (order.name, order.total(), ", ".join(sorted(order.tags))) for order in orders]
        json.dumps({"lines": lines, "count": len(lines)})


def service(count):
    """What a service does beside: a database, patterns, compression and hashes."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE orders (name TEXT PRIMARY KEY, total REAL, tags TEXT)")
    template = re.compile(r"\{(\w+)\}")
    for _ in range(count):
        for row in json.loads(TEXT):
            order = Order(row)
            database.execute("INSERT OR REPLACE INTO orders VALUES (?, ?, ?)",
                             (order.name, order.total(), str(order.tags)))
        rows = database.execute("SELECT name, total FROM orders WHERE total > ? ORDER BY total LIMIT 100",
                                (50,)).fetchall()
        page = template.sub(lambda found: found.group(1) * 2, "{count} of {all} orders " * 40) + repr(rows)
        hashlib.sha256(zlib.compress(page.encode(), 6)).hexdigest()


def arrays(count):
    """Small arrays of numpy."""
    base = numpy.arange(64, dtype=float)
    for _ in range(count):
        for i in range(300):
            part = base[:32] * i
            part = (part - part.mean()) / (part.std() + 1)
            numpy.concatenate([part, base[32:]]).sum()


def totals(count):
    for _ in range(count):
        allocating_much.work(1), json.loads(TEXT)


class Traced:
    def __init__(self):
        self.tracker = None

    def memray(self, file, of_python):
        import memray
        if self.tracker:
            self.tracker.__exit__(None, None, None)
            self.tracker = None
        if file:
            self.tracker = memray.Tracker(file, trace_python_allocators=of_python)
            self.tracker.__enter__()


def main():
    traced = Traced()
    print("ready", flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        began = time.thread_time()
        if word == "trace":
            tracemalloc.start(int(rest[0])) if int(rest[0]) else tracemalloc.stop()
        elif word == "memray":
            traced.memray(rest[0] if rest else "", rest[1:] == ["1"])
        else:
            globals()[word](int(rest[0]))
        print(time.thread_time() - began, flush=True)


if __name__ == "__main__":
    main()

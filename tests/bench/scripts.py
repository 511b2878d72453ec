# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast scripts read a process, beside CPython's own script for gdb (libpython.py) that does the
same walk: every frame's function and line, of 8 threads with 50 frames each.

Times are processor time, the least of some runs, but for Ctrl-C and the million objects. Writes a table with
one row for each version of Python.

Usage: scripts.py --probing PROGRAM [--out FILE] [--rounds N]
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import Target
from debuggers import interpreters

ROOT = Path(__file__).resolve().parents[2]
THREADS, DEPTH, OBJECTS = 8, 50, 1000000
HEAD = ("# SPDX-License-Identifier: GPL-3.0-or-later\n# Written by tests/bench/scripts.py: p.find() over %s objects "
        "%.1f s; Ctrl-C in Python without anything of ours %.0f ms.\n")
COLUMNS = ("python", "frames", "walk_ms", "first_walk_ms", "gdb_walk_ms", "libpython_ms", "libpython_frames",
           "attributes_per_s", "ctrl_c_ms", "gdb_ctrl_c_ms")
OURS = """
import json, time
def walk():
    with probing.attach(%d) as p:
        return len([(f.func, f.line) for t in p.threads() for f in t.frames])
def timed(function, *arguments):
    start = time.process_time()
    found = function(*arguments)
    return (time.process_time() - start) * 1e3, found
walks = [timed(walk) for _ in range(%d)]
def read(v):
    for _ in range(100000):
        v._name
p = probing.attach(%d)
v = next(p.find("Thread"))
reads = [100000 / timed(read, v)[0] * 1e3 for _ in range(5)]
print(json.dumps([walks[0][0], min(ms for ms, _ in walks), walks[0][1], max(reads)]))
"""
THEIRS = """
import time, json
def walk():
    count = 0
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        frame = Frame(gdb.newest_frame())
        while frame:
            if frame.is_evalframe():
                py = frame.get_pyop()
                while py:
                    if not (hasattr(py, "is_shim") and py.is_shim()):
                        str(py.co_name), py.current_line_num()
                        count += 1
                    py = py.previous() if hasattr(py, "previous") else None
                    if py is not None and hasattr(py, "is_shim") and py.is_shim():
                        break
            frame = frame.older()
    return count
def timed(function):
    start = time.process_time()
    found = function()
    return (time.process_time() - start) * 1e3, found
found = [timed(walk) for _ in range(3)]
print("\\nfound " + json.dumps([min(ms for ms, _ in found), found[0][1]]))
"""
INSIDE = """
import json, time, probing
def walk():
    return len([(f.func, f.line) for t in probing.current().threads() for f in t.frames])
found = []
for _ in range(ROUNDS):
    start = time.process_time()
    count = walk()
    found.append(((time.process_time() - start) * 1e3, count))
print("\\nfound " + json.dumps([min(ms for ms, _ in found), found[0][1]]))
"""
MILLION = "class Item:\n    __slots__ = ('n',)\nkeep = [Item() for _ in range(%d)]\n" \
    "print('ready', flush=True)\nimport time\ntime.sleep(1000)\n" % OBJECTS


def ours(probing, pid, rounds):
    code = OURS % (pid, rounds, pid)
    return json.loads(subprocess.run([probing, "script", "-c", code], check=True,
                                     stdout=subprocess.PIPE).stdout)


def in_gdb(pid, code, sources):
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(code)
        file.flush()
        words = ["gdb", "-nx", "-q", "-batch", "-p", str(pid)]
        for each in list(sources) + [file.name]:
            words += ["-ex", "source %s" % each]
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    for line in done.stdout.decode().splitlines():
        if line.startswith("found "):
            return json.loads(line[len("found "):])
    return None


def heap(probing, python):
    with subprocess.Popen([python, "-c", MILLION], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        try:
            before = os.times()
            done = subprocess.run([probing, str(process.pid), "script", "-c",
                                   "print(sum(1 for _ in p.find('Item')))"], check=True,
                                  stdout=subprocess.PIPE)
            assert int(done.stdout) == OBJECTS
            now = os.times()
            return now.children_user + now.children_system - before.children_user - \
                before.children_system
        finally:
            process.kill()


ENDLESS = "print('x', flush=True)\n%s"
SQL = "p.query('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n')"


def ctrl_c(words):
    """Seconds from the signal to the end, the worst of some."""
    worst = 0
    for _ in range(5):
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
            running.stdout.readline()
            time.sleep(0.2)
            start = time.perf_counter()
            running.send_signal(signal.SIGINT)
            running.wait()
            worst = max(worst, time.perf_counter() - start)
    return worst


def ctrl_c_in_gdb(pid, plugin):
    """The same in gdb, until it has done the next command."""
    worst = 0
    for _ in range(5):
        with subprocess.Popen(["gdb", "-nx", "-q", "-p", str(pid)], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as gdb:
            def until(text, *lines):
                gdb.stdin.write("".join(line + "\n" for line in lines))
                gdb.stdin.flush()
                while text not in gdb.stdout.readline():
                    assert gdb.poll() is None
            until("begins here", "source %s" % plugin, "python import probing; p = probing.current()",
                  "python print('begins', 'here', flush=True)", "python " + SQL)
            time.sleep(0.2)
            start = time.perf_counter()
            gdb.send_signal(signal.SIGINT)
            until("goes on", "python print('goes', 'on', flush=True)")
            worst = max(worst, time.perf_counter() - start)
            gdb.kill()
    return worst


def chosen():
    """One of each version: with debug information where there is one."""
    found = {}
    for name, each in interpreters().items():
        version = name.split(",")[0]
        if version not in found or "stripped" in found[version][0]:
            found[version] = name, each
    return found.values()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--probing", required=True)
    parser.add_argument("--out", default=ROOT / "docs/scripts.tsv", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    os.environ["PROBING_LIBRARY"] = str(Path(options.probing).resolve().parent / "libprobing.so")
    rows, last = [], None
    own = ctrl_c([sys.executable, "-c", ENDLESS % "while True: pass"])
    for name, (program, script, _) in chosen():
        with Target(program, THREADS, DEPTH) as target:
            first, best, count, reads = ours(options.probing, target.pid, options.rounds)
            plugin = ROOT / "gdbplugin/probing-gdb.py"
            inside = in_gdb(target.pid, INSIDE.replace("ROUNDS", "10"), [plugin])
            peer = in_gdb(target.pid, THEIRS, [script]) if script else None
            seconds = ctrl_c([options.probing, str(target.pid), "script", "-c", ENDLESS % SQL])
            within = ctrl_c_in_gdb(target.pid, plugin)
        rows.append("\t".join((
            name, "%d" % count, "%.1f" % best, "%.1f" % first, "%.1f" % inside[0] if inside else "failed",
            "%.0f" % peer[0] if peer and peer[1] else "", "%d" % peer[1] if peer else "failed",
            "%.0f" % round(reads, -3), "%.0f" % (seconds * 1e3), "%.0f" % (within * 1e3))))
        last = program
        print(rows[-1], flush=True)
    head = HEAD % (format(OBJECTS, ","), heap(options.probing, last), own * 1e3)
    options.out.write_text(head + "\n".join(["\t".join(COLUMNS), *rows]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

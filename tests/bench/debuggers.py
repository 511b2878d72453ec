# SPDX-License-Identifier: GPL-3.0-or-later
"""What the commands in gdb read, and how fast, beside CPython's own script for gdb (py-bt and others).

For each interpreter that the tests have, a target of 8 threads with 50 frames each is stopped by one
gdb with both loaded: `probing backtrace --all` and `thread apply all py-bt` have to show the same
400 calls. Times are the least of some runs of a command within that gdb, without starting it,
attaching and reading symbols. Interpreters named "stripped" are read without any debug information.
Writes a table with one row for each interpreter.

Usage: debuggers.py --library LIBRARY [--out FILE] [--rounds N]
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import Target

ROOT = Path(__file__).resolve().parents[2]
THREADS, DEPTH = 8, 50
HEAD = ("# SPDX-License-Identifier: GPL-3.0-or-later\n"
        "# Written by tests/bench/debuggers.py: %s, a target of %d threads with %d frames each.\n")
COLUMNS = ("python", "frames", "ms", "query_ms", "variables", "py_bt_frames", "py_bt_ms", "py_bt_variables")
STRIPPED = "set debug-file-directory /nonexistent"
# Runs in gdb; prints a line of JSON.
INSIDE = r"""
import gdb, json, time
def run(command):
    start = time.perf_counter()
    try:
        text = "".join(gdb.execute(part, False, True) for part in command.split("; "))
    except BaseException as error:
        text = "error: %s" % error
    return (time.perf_counter() - start) * 1e3, text
found = {}
for command in COMMANDS:
    done, end = [run(command)], time.perf_counter() + 3
    while len(done) <= ROUNDS and time.perf_counter() < end:
        done.append(run(command))
    found[command] = ([ms for ms, _ in done], done[-1][1])
print("\nfound " + json.dumps(found))
"""
QUERY = "probing query SELECT tid, depth, func, file, lineno FROM python.stacks"
# In the second frame of a thread that sleeps. py-up goes from the C frames to the innermost Python
# frame first; from 3.11 on one C frame has many, and py-locals shows those of all.
OURS = ["probing backtrace --all", QUERY, "thread 2; probing locals 1"]
THEIRS = ["thread apply all py-bt", "thread 2; py-up; py-up; py-locals",
          "thread 2; py-up; py-locals"]


def interpreters(first=(3, 8)):
    """{name: (program, its script for gdb or None, commands before it is attached to)}"""
    tool = ROOT / "tests" / "tools" / "test-interpreters"
    entries = json.loads(subprocess.run([sys.executable, tool, "--json"], stdout=subprocess.PIPE,
                                        check=True).stdout)
    found, scripts = {}, {}
    for entry in entries:
        version = tuple(map(int, entry["version"].split(".")[:2]))
        places = [Path(entry["exe"] + "-gdb.py")]
        root = re.match(r"(/.*)/usr/bin/", entry["exe"])
        for folder in (root.group(1) if root else "", str(root.group(1) if root else "") + "-dbg"):
            places.append(Path("%s/usr/share/gdb/auto-load/usr/bin/python%d.%d-gdb.py"
                               % (folder, *version)))
        script = next((place for place in places if place.is_file()), None)
        scripts.setdefault(version, script)
        if version < first or entry["debug_build"] or entry["free_threaded"]:
            continue
        name = "%d.%d, " % version + ("with debug information" if "pyenv" in entry["name"]
                                      else "Debian's, stripped")
        found[name] = (entry["exe"], script or scripts[version],
                       [] if "pyenv" in entry["name"] else [STRIPPED])
    return found


def measure(args, python, script, before):
    """{command: (times, what it printed last)}"""
    commands = OURS + (THEIRS if script else [])
    lines = ["set confirm off", "set pagination off", "source %s" % (
        ROOT / "gdbplugin" / "probing-gdb.py")]
    lines += ["source %s" % script] if script else []
    lines += ["python", "COMMANDS, ROUNDS = %r, %d" % (commands, args.rounds), INSIDE, "end"]
    env = dict(os.environ, PROBING_LIBRARY=args.library, DEBUGINFOD_URLS="", LC_ALL="C.UTF-8")
    with Target(python, THREADS, DEPTH) as target, tempfile.NamedTemporaryFile("w") as file:
        file.write("\n".join(lines) + "\n")
        file.flush()
        out = subprocess.run(
            ["gdb", "-nx", "-q", "-batch", *[w for c in before for w in ("-iex", c)],
             "-p", str(target.pid), "-x", file.name], env=env, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, check=False, text=True)
    found = re.search(r"^found (.*)$", out.stdout, re.M)
    if not found:
        raise SystemExit("gdb failed:\n%s\n%s" % (out.stdout, out.stderr))
    return json.loads(found.group(1))


def our_frames(text):
    return sum(int(times or 1) for times in
               re.findall(r"^[* ] #\d+ .*?(?:\((\d+) calls deep\))?$", text, re.M))


def variables(text):
    """How many of those of deeper() are shown with values."""
    return sum(bool(re.search(r"(^|\s)%s *= *\S" % name, text, re.M))
               for name in ("depth", "leaf"))


def milliseconds(found, command):
    return "%.1f" % min(found[command][0]) if command in found else "–"


def row(name, found):
    """A line of the table."""
    cells = [name, "%d" % our_frames(found[OURS[0]][1]), milliseconds(found, OURS[0]),
             milliseconds(found, QUERY), "%d" % variables(found[OURS[2]][1])]
    if THEIRS[0] in found:
        cells += ["%d" % len(re.findall(r'^ *(?:#\d+ )?File "', found[THEIRS[0]][1], re.M)),
                  milliseconds(found, THEIRS[0]), "%d" % max(variables(found[command][1]) for command in THEIRS[1:])]
    else:
        cells += ["no script", "–", "–"]
    return "\t".join(cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--library", required=True)
    parser.add_argument("--out", default=ROOT / "docs" / "debuggers.tsv", type=Path)
    parser.add_argument("--rounds", default=20, type=int)
    args = parser.parse_args()

    gdb = subprocess.run(["gdb", "--version"], stdout=subprocess.PIPE, check=True, text=True)
    lines = ["\t".join(COLUMNS)]
    for name, what in interpreters().items():
        print(name, file=sys.stderr)
        lines.append(row(name, measure(args, *what)))
    args.out.write_text(HEAD % (gdb.stdout.splitlines()[0], THREADS, DEPTH) + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing why` on random programs of all kinds of locks, some of which fork, with the truth about each.

Run as a program with a file of results, a first seed, how many, and how many at once, it judges them and adds them to the
results, of which tests/tools/random-locks writes the table of docs/why.md."""
import concurrent.futures
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import lock_programs
import support

LATER = 1.2  # seconds after which a wait is no ordinary one
SEMAPHORES = """
for k in %(semaphores)s:
    C[k] = threading.Condition(threading.%(kind)s(1))
    L[k] = C[k]._lock
"""
# The child has the main thread alone. It wants a lock as its parent had it at the fork.
FORKS = """
pid = os.fork() if %(forks)s else -1
if not pid:
    print(json.dumps({"child": os.getpid(), "owner": owns.get(%(wanted)d), "wanted": %(wanted)d}), flush=True)
    L[%(wanted)d].acquire()
    time.sleep(100000)
if pid < 0:
    print("{}", flush=True)
"""


def write(seed, version):
    """The text of a program, and its locks that are RLocks, and semaphores."""
    chance = random.Random(-seed)
    text = lock_programs.write(seed, match=version >= (3, 10))
    semaphores = [k for k in range(7) if chance.random() < 0.2 and version < (3, 14)]  # no locked() there
    recursive = [k for k in eval(re.search(r"if k in (\[.*?\])", text)[1]) if k not in semaphores]  # our own list of numbers
    made = SEMAPHORES % {"semaphores": semaphores, "kind": chance.choice(["Semaphore", "BoundedSemaphore"])}
    forks = FORKS % {"forks": chance.random() < 0.4, "wanted": chance.randrange(7)}
    text = text.replace("import contextlib, json", "import contextlib, json, os").replace("\n" "owns, wants", made + "owns, wants", 1)
    last = text.rindex("time.sleep(1000)")
    return text[:last] + forks.lstrip() + text[last:], recursive, semaphores


def circles(wants, owns):
    """The threads that wait for each other."""
    found = set()
    for start in wants:
        at, seen = start, set()
        while at in wants and at not in seen:
            seen.add(at)
            at = owns.get(str(wants[at]))
            if at == start:
                found.add(start)
    return found


def verdict(pid):
    done = subprocess.run([support.BINARY, "why", "--json", str(pid)], stdout=subprocess.PIPE, check=False)
    target = json.loads(done.stdout)["targets"][0]
    return {key: target[key] for key in ("verdict", "doing", "findings")}


def names(pid):
    threads = support.dump(pid)["threads"]
    return {thread["tid"]: thread["name"] for thread in threads}


def judge(pid, truth, recursive, semaphores):
    """[(what is true, what was said, right?)] of a program, for all that was said, or had to be."""
    stuck = circles(truth["wants"], truth["owns"])
    left = {name for name, lock in truth["wants"].items() if truth["owns"].get(str(lock)) == "ended"}
    named, said = names(pid), verdict(pid)
    told = {"deadlock": stuck, "orphan": {name for name in left if truth["wants"][name] in recursive}}
    results = []
    for finding in said["findings"]:
        if finding["rule"] in told:
            about = {named[tid] for tid in finding["tids"]}
            right = bool(about) and about <= told[finding["rule"]]
            results.append((finding["rule"], finding["rule"] if right else "WRONG " + finding["rule"], right or said))
    rules = {finding["rule"] for finding in said["findings"]}
    if (stuck or left) and not rules and {truth["wants"][name] for name in stuck | left} <= set(semaphores):
        results.append(("semaphores alone", "nothing", said))
    elif stuck and "deadlock" not in rules:
        results.append(("deadlock", ", ".join(sorted(rules)) or "NOTHING", bool(rules) or said))
    elif left and "orphan" not in rules:
        results.append(("orphan", ", ".join(sorted(rules)) or "NOTHING", bool(rules) or said))
    elif not stuck and not left and not results:
        results.append(("none", "none", True))
    return results


def judge_child(child, recursive):
    """A lock that a thread held which the child lacks: nobody can release it."""
    said = verdict(child["child"])
    rules = {finding["rule"] for finding in said["findings"]}
    if child["owner"] is None:
        return [("free lock in a child", ", ".join(sorted(rules)) or "none", not rules or said)]
    what = "RLock" if child["wanted"] in recursive else "lock"
    return [("%s of a thread before the fork" % what, ", ".join(sorted(rules)) or "NOTHING", bool(rules) or said)]


def run(interpreter, seed):
    """Runs one, and gives the results of judge()."""
    text, recursive, semaphores = write(seed, interpreter.version)
    with support.Program([interpreter.exe, "-W", "ignore", "-c", text], env=interpreter.env, start_new_session=True) as program:
        try:
            truth, child = json.loads(program.line()), json.loads(program.line())
            time.sleep(LATER)
            results = judge(program.pid, truth, recursive, semaphores)
            if child:
                results += judge_child(child, recursive)
            return results
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)


def attempt(seed):
    interpreter = ALL[seed % len(ALL)]
    try:
        return interpreter, seed, run(interpreter, seed)
    except AssertionError as error:  # a program that did not come to rest
        return interpreter, seed, str(error)[:200]


ROWS = [("threads wait in a circle", lambda truth: truth == "deadlock"),
        ("the holder of a lock has ended", lambda truth: truth == "orphan"),
        ("a fork has left the holder behind", lambda truth: truth.endswith("before the fork")),
        ("one of these, of semaphores alone, which any thread may release", lambda truth: truth == "semaphores alone"),
        ("none of these", lambda truth: truth in ("none", "free lock in a child"))]
NAMED = {"deadlock", "orphan"}


def cells(row, counts):
    """How often the truth was named, `locks` or `unknown` was said, and nothing."""
    found = [0, 0, 0]
    for (truth, said), count in counts.items():
        if row(truth):
            words = set(said.split(", "))
            found[0 if words & NAMED else 2 if words & {"none", "NOTHING", "nothing"} else 1] += count
    return found


def table(results):
    """The table of docs/why.md."""
    counts = {tuple(key.split("|")): count for key, count in results["table"].items()}
    lines = ["| what is so | named | `locks` or `unknown` | \"nothing is wrong\" |", "|---|---|---|---|"]
    lines += ["| %s | %s |" % (name, " | ".join(format(cell, ",") for cell in cells(row, counts))) for name, row in ROWS]
    return "%s random programs" % format(results["programs"], ","), "\n".join(lines)


def main(path, first, count, at_once):
    """Adds programs to the results in the file."""
    results = json.loads(Path(path).read_text()) if os.path.exists(path) else {"programs": 0, "left_out": 0, "table": {}, "wrong": []}
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        for interpreter, seed, found in pool.map(attempt, range(first, first + count)):
            if isinstance(found, str):
                print("left out: %s %d %s" % (interpreter, seed, found), file=sys.stderr)
                results["left_out"] += 1
                continue
            results["programs"] += 1
            for truth, said, right in found:
                key = "%s|%s" % (truth, said)
                results["table"][key] = results["table"].get(key, 0) + 1
                if right is not True:
                    results["wrong"].append("%r %d: %s: %s" % (interpreter, seed, truth, said))
                    print(interpreter, seed, truth, said, right, flush=True)
    results["table"] = dict(sorted(results["table"].items()))
    Path(path).write_text(json.dumps(results, indent=1) + "\n")
    print(table(results)[1])


ALL = [i for i in support.INTERPRETERS if i.version >= (3, 6)]

if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))

# SPDX-License-Identifier: GPL-3.0-or-later
"""What changed since a snapshot: threads that moved, objects, values. EARLIER.snapshot"""

import sys

import probing

BEGUN = "SELECT start_time FROM process.info WHERE start_time IS NOT NULL"
LOCALS = "SELECT tid, depth, name, value, address, kind FROM python.locals"


def look(p):
    """When it began, threads by tid, and (value, address) of variables by tid, place from the outermost, name."""
    threads, values, rows = {t.tid: t for t in p.threads()}, {}, p.query(LOCALS)
    for row in rows:
        if row["tid"] in threads and row["kind"] != "name":
            place = len(threads[row["tid"]].frames) - row["depth"]
            values[row["tid"], place, row["name"]] = row["value"], row["address"]
    has = len(rows) or not any(t.frames for t in threads.values())
    return [row["start_time"] for row in p.query(BEGUN)], threads, values if has else None


def place(frames):
    return "%s, line %s" % (frames[0].qualname, frames[0].line) if frames else "no Python"


def common(old, new):
    """How many calls of the two stacks are the same, from the outermost on."""
    pairs = zip(reversed(old), reversed(new))
    differ = (at for at, (a, b) in enumerate(pairs) if (a.qualname, a.file) != (b.qualname, b.file))
    return next(differ, min(len(old), len(new)))


def show(name, func, old, new):
    same = old[1] and old[1] == new[1]
    print("  %s of %s%s" % (name, func, ", the same object at %#x" % new[1] if same else ""))
    print("    - %s\n    + %s" % (old[0], new[0]))


def main():
    if len(sys.argv) != 2:
        sys.exit("name an earlier snapshot: 'changes TARGET before.snapshot'")
    (begun, before, old_values), (now_begun, now, values) = look(probing.attach(sys.argv[1])), look(probing.current())
    if any(abs(one - other) > 1 for one, other in zip(begun, now_begun)):
        sys.exit("%s is of another process, which was started at another time" % sys.argv[1])
    if values is None or old_values is None:
        print("variables were not compared: the snapshot has none (--redact?)")
        values = {}
    changed = len(set(now) - set(before))
    for tid, thread in now.items():
        if tid not in before:
            print("%s %s is new, in %s" % (tid, thread.name, place(thread.frames)))
            continue
        old, new = before[tid].frames, thread.frames
        places = range(1, common(old, new) + 1)
        moved = [(f.qualname, f.line) for f in old] != [(f.qualname, f.line) for f in new]
        mine = [key for key in values if key[0] == tid and key[1] in places and key in old_values]
        differ = [key for key in mine if old_values[key] != values[key]]
        if moved or differ:
            changed += 1
            print("%s %s %s" % (tid, thread.name, "moved from %s to %s" % (place(old), place(new))
                                if moved else "is still in %s" % place(new)))
        for key in differ:
            show(key[2], new[len(new) - key[1]].qualname, old_values[key], values[key])
    for tid in set(before) - set(now):
        print("%s %s has ended" % (tid, before[tid].name))
    print("%d of %d threads changed." % (changed, len(now)))


main()

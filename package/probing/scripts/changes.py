# SPDX-License-Identifier: GPL-3.0-or-later
"""What changed since a snapshot: threads that moved, objects, values. EARLIER.snapshot"""

import sys

import probing

LOCALS = "SELECT tid, depth, name, value, address FROM python.locals WHERE kind <> 'name'"


def look(p):
    """Threads by tid, and (value, address) of variables by tid, place from the outermost, name."""
    threads = {t.tid: t for t in p.threads()}
    values = {}
    for row in p.query(LOCALS):
        if row["tid"] in threads:
            place = len(threads[row["tid"]].frames) - row["depth"]
            values[row["tid"], place, row["name"]] = row["value"], row["address"]
    return threads, values


def place(frames):
    return "%s, line %s" % (frames[0].qualname, frames[0].line) if frames else "no Python"


def common(old, new):
    """How many calls of the two stacks are the same, from the outermost on."""
    count = 0
    for one, other in zip(reversed(old), reversed(new)):
        if (one.qualname, one.file) != (other.qualname, other.file):
            break
        count += 1
    return count


def show(name, func, old, new):
    same = old[1] and old[1] == new[1]
    print("  %s of %s%s" % (name, func, ", the same object at %#x" % new[1] if same else ""))
    print("    - %s\n    + %s" % (old[0], new[0]))


def main():
    if len(sys.argv) != 2:
        sys.exit("name an earlier snapshot: 'changes TARGET before.snapshot'")
    (before, old_values), (now, values) = look(probing.attach(sys.argv[1])), look(probing.current())
    changed = 0
    for tid, thread in now.items():
        if tid not in before:
            print("%s %s is new, in %s" % (tid, thread.name, place(thread.frames)))
            changed += 1
            continue
        old, new = before[tid].frames, thread.frames
        shared = common(old, new)
        places = range(1, shared + 1)
        moved = [(f.qualname, f.line) for f in old] != [(f.qualname, f.line) for f in new]
        differ = [key for key in values if key[0] == tid and key[1] in places and
                  key in old_values and old_values[key] != values[key]]
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

# SPDX-License-Identifier: GPL-3.0-or-later
"""What changed since a snapshot: threads that moved, objects, values. EARLIER.snapshot"""

import re
import sys

import probing

PROCESS = "SELECT time, pid, pid_namespace, round(start_time) AS start, (SELECT address FROM python.modules WHERE name = 'sys' " \
    "AND interpreter = 0) AS modules FROM process.info"
THREADS = "SELECT t.tid, t.interpreter, t.ident, coalesce(t.name, os_name) AS thread, run_seconds, s.depth, s.qualname, s.file, " \
    "lineno, l.name, value, type, address FROM python.threads t LEFT JOIN cpu.tasks c ON c.tid = t.tid LEFT JOIN " \
    "python.stacks s ON s.tid = t.tid AND s.interpreter = t.interpreter LEFT JOIN python.locals l ON l.tid = s.tid " \
    "AND l.depth = s.depth WHERE t.tid IS NOT NULL ORDER BY main DESC, t.tid, s.depth DESC"
# An object of these never changes: one with another value is another one at the same address.
FIXED = "int", "float", "complex", "bool", "str", "bytes", "tuple", "frozenset", "range", "NoneType"
CUT = re.compile("\u2026([+]\\d|unreadable|[]})>]|$)")  # of a value that is shown in part


def look(target):
    """The process; {thread: (text, processor time, frames from the outermost on, {(frame, name): variable})}."""
    threads = {}
    for row in target.query(THREADS):
        text = "%s %s" % (row["tid"], row["thread"])
        frames, values = threads.setdefault((row["tid"], row["interpreter"], row["ident"]),
                                            (text, row["run_seconds"], {}, {}))[2:]
        if row["depth"] is not None:
            frames.setdefault(row["depth"], (row["qualname"], row["file"], row["lineno"]))
        if row["name"]:
            values[len(frames) - 1, row["name"]] = row["value"], row["type"], row["address"]
    return target.query(PROCESS)[0], {key: (t[0], t[1], list(t[2].values()), t[3]) for key, t in threads.items()}


def refuse(file, old, new):
    """Ends this if the two are not of one process, the earlier one first."""
    for fact, what in (("pid", "has another pid"), ("pid_namespace", "has another pid namespace"), ("start", "was started at "
                       "another time"), ("modules", "has its modules elsewhere in memory")):
        if None not in (old[fact], new[fact]) and abs(old[fact] - new[fact]) > (fact == "start"):
            sys.exit("%s is of another process, which %s" % (file, what))
    if old["time"] > new["time"]:
        sys.exit("%s is the later one: name it second" % file)


def place(frames):
    return "%s, line %s" % (frames[-1][0], frames[-1][2]) if frames else "no Python"


def difference(old, new, idle):
    """What to say of a variable: None if nothing is different, "" if its values say it all."""
    if old == new or new[1] in FIXED and old[:2] == new[:2]:
        return None
    if old[0] == new[0]:
        return ", another %s that looks the same" % new[1]
    if old[1:] != new[1:] or new[1] in FIXED or new[2] is None:
        return ""
    return ", the same object at %#x" % new[2] if idle else ", %s at %#x both times" % new[1:]


def compare(old, new):
    """Prints how a thread has changed. Whether it has, and the variables that were shown in part, and look the same."""
    text, ran, frames, values = new
    idle, calls = ran is not None and ran == old[1], 0
    while calls < min(len(old[2]), len(frames)) and old[2][calls][:2] == frames[calls][:2]:
        calls += 1
    both = [key for key in values if key[0] < calls and key in old[3]]
    differ = {key: difference(old[3][key], values[key], idle) for key in both}
    changed = old[2] != frames or any(said is not None for said in differ.values())
    if old[2] != frames:
        print("%s moved from %s to %s" % (text, place(old[2]), place(frames)))
    elif changed:
        print("%s %s in %s" % (text, "did not run," if idle else "ran, and is", place(frames)))
    for at, name in both:
        before, now, said = old[3][at, name][0], values[at, name][0], differ[at, name]
        if said is not None:
            print("  %s of %s%s" % (name, frames[at][0], said))
        if said is not None and before != now:
            print("    - %s\n    + %s" % (before or "(unbound)", now or "(unbound)"))
    return changed, ["%s of %s" % (name, frames[at][0]) for at, name in both
                     if differ[at, name] is None and CUT.search(values[at, name][0] or "")]


def main():
    if len(sys.argv) != 2:
        sys.exit("name an earlier snapshot: 'changes TARGET before.snapshot'")
    (old, before), (new, threads) = look(probing.attach(sys.argv[1])), look(probing.current())
    refuse(sys.argv[1], old, new)
    if not all(any(values for *_, values in each.values()) for each in (before, threads)):
        print("variables were not compared: the snapshot has none (--redact?)")
    changed, unclear, ran = 0, [], 0
    for key, thread in threads.items():
        if key not in before:
            print("%s is new, in %s" % (thread[0], place(thread[2])))
            changed += 1
            continue
        differs, parts = compare(before[key], thread)
        unclear += parts
        changed += differs
        ran += not differs and before[key][1] != thread[1]
    for key in before:
        if key not in threads:
            print("%s has ended" % before[key][0])
    if unclear:
        print("Shown in part, which is the same: %s." % ", ".join(sorted(set(unclear))))
    print("%d of %d threads changed%s." % (changed, len(threads), ", %d of the others ran" % ran if ran else ""))


main()

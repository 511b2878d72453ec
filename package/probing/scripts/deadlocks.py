# SPDX-License-Identifier: GPL-3.0-or-later
"""Threads that wait for each other's locks in a circle."""

import probing

threads = {t.tid: t for t in probing.current().threads()}
reported = set()
for thread in threads.values():
    circle = []
    while thread and thread not in circle and thread.tid not in reported:
        circle.append(thread)
        thread = threads.get(thread.waits_for.owner)
    if thread not in circle:
        continue
    circle = circle[circle.index(thread):]
    print("Deadlock of %d threads:" % len(circle) if len(circle) > 1 else "A thread waits for itself:")
    for each in circle:
        reported.add(each.tid)
        print("  %d %s has waited %.0f s for the %s of %d %s" % (
            each.tid, each.name, each.idle_seconds or 0, each.waits_for.lock,
            each.waits_for.owner, threads[each.waits_for.owner].name))
        for frame in each.frames[:2]:
            print("    %-30s %s:%s" % (frame.qualname or frame.func, frame.file, frame.line))
unknown = [t for t in threads.values() if t.waits_for.lock and not t.waits_for.owner]
if not reported and not unknown:
    print("There is no deadlock: no thread waits for itself through the owners of locks.")
elif not reported:
    print("No deadlock was found, but who holds the locks of these threads is not known:")
for thread in unknown:
    print("%d %s %s" % (thread.tid, thread.name, thread.waits_for.text))
for thread in threads.values():
    owner = threads.get(thread.waits_for.owner)
    if owner and thread.tid not in reported:
        print("%d %s waits for the %s of %d %s, which is %s%s" % (
            thread.tid, thread.name, thread.waits_for.lock, owner.tid, owner.name, owner.state,
            " in " + owner.waits_for.text if owner.waits_for else ""))

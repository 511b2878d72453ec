# SPDX-License-Identifier: GPL-3.0-or-later
"""Queues of the module queue: how full they are, and which threads wait."""

import probing

p = probing.current()
waiters = {}
for thread in p.threads():
    for frame in thread.frames:
        if frame.module == "queue" and frame.func in ("get", "put"):
            try:
                queue = frame.locals["self"].address
            except (KeyError, probing.Gone):
                break
            waiters.setdefault(queue, []).append("%s in %s()" % (thread.name, frame.func))
            break
count = 0
for kind in ("Queue", "LifoQueue", "PriorityQueue"):
    for queue in p.find("queue." + kind):
        count += 1
        limit = int(queue.maxsize)
        print("%s at %#x: %d items%s, %d unfinished; %s" % (
            kind, queue.address, len(queue.queue), " of at most %d" % limit if limit > 0 else "",
            queue.unfinished_tasks, ", ".join(waiters.get(queue.address, ())) or "no one waits"))
if not count:
    print("There is no queue.")

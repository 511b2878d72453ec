# SPDX-License-Identifier: GPL-3.0-or-later
"""Thread pools: what their threads do, and the work that waits for one."""

import collections

import probing

p = probing.current()
threads = p.threads()
pools = list(p.find("concurrent.futures.thread.ThreadPoolExecutor"))
for pool in pools:
    prefix = str(probing.get(pool, "_thread_name_prefix"))
    print("pool %s: %d of %d threads started%s" % (
        prefix, len(pool._threads), pool._max_workers,
        ", shut down" if pool._shutdown else ""))
    for thread in threads:
        if (thread.name or "").startswith(prefix + "_") and thread.frames:
            idle = any(f.func == "get" or f.func == "_worker" for f in thread.frames[:1])
            frame = thread.frames[0]
            print("  %s %s" % (thread.name, "waits for work" if idle else "in %s %s:%s, %s" % (
                frame.qualname or frame.func, frame.file, frame.line,
                thread.waits_for.text or thread.state)))


def function(item):
    """What was submitted: a WorkItem of Python 3.14 has it in a tuple."""
    try:
        found = item.fn
    except probing.NotThere:
        found = item.task[0]
    try:
        return str(found.__qualname__)
    except probing.Error:
        return found.type.name


waiting = collections.Counter(
    function(item) for item in p.find("concurrent.futures.thread._WorkItem",
                                      where=lambda item: item.future._state == "PENDING"))
for name, count in waiting.most_common():
    print("%d × %s waits for a thread" % (count, name))
if not pools:
    print("There is no thread pool.")

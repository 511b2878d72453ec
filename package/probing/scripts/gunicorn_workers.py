# SPDX-License-Identifier: GPL-3.0-or-later
"""Workers of gunicorn: how old each is, what it has served, and what it does. (of the master)"""

import probing

p = probing.current()
WORKERS = ("gunicorn.workers.sync.SyncWorker", "gunicorn.workers.gthread.ThreadWorker")


def doing(pid):
    """(requests or None, where its main thread is)"""
    with probing.attach(pid) as worker:
        served = [int(each.nr) for kind in WORKERS for each in worker.find(
            kind, where=lambda each: each.pid == pid)]
        thread = worker.thread()
        frame = thread.frames[0]
        return served[0] if served else None, "in %s %s:%s, %s" % (
            frame.qualname or frame.func, frame.file, frame.line,
            thread.waits_for.text or thread.state)


ages = {row["pid"]: row["age"] for row in p.query("SELECT pid, age FROM system.process")}
count = 0
for arbiter in p.find("gunicorn.arbiter.Arbiter"):
    for pid, worker in sorted(arbiter.WORKERS.items(), key=lambda item: int(item[1].age)):
        count += 1
        pid = int(pid)
        try:
            served, where = doing(pid)
        except (probing.Error, IndexError) as error:
            served, where = None, "cannot be read: %s" % error
        print("worker %d, pid %d, %.0f s old, %s requests, %s" % (
            worker.age, pid, ages.get(pid, 0), "?" if served is None else served, where))
if not count:
    print("There is no gunicorn master with workers in this process.")

# SPDX-License-Identifier: GPL-3.0-or-later
"""The task that each worker of Celery runs: threads of the process, and its child processes."""

import os

import probing

p = probing.current()


def task_of(thread):
    """(name, id, arguments) of the task, None: it runs none."""
    for frame in thread.frames:
        if frame.module == "celery.app.trace" and frame.func == "trace_task" and \
                "uuid" in frame.locals:
            found = frame.locals
            return str(found["task"].name), str(found["uuid"]), repr(found["args"])
    return None


def show(program, pid):
    count = 0
    for thread in program.threads():
        try:
            task = task_of(thread)
        except (probing.Gone, probing.NotThere):
            task = "a task", "that went on while it was read", ""
        if task:
            count += 1
            frame = thread.frames[0]
            print("%s %s runs %s %s %s, in %s %s:%s, %s" % (
                (pid, thread.name) + task + (frame.qualname or frame.func,
                os.path.basename(frame.file or "?"), frame.line,
                thread.waits_for.text or thread.state)))
    return count


info = p.query("SELECT pid FROM process.info")[0]["pid"]
count = show(p, info)
for row in p.query("SELECT pid FROM system.process WHERE python_version > '' AND ppid = %d" % info):
    try:
        with probing.attach(row["pid"]) as child:
            count += show(child, row["pid"])
    except probing.Error as error:
        print("%d cannot be read: %s" % (row["pid"], error))
if not count:
    print("No worker runs a task of Celery.")

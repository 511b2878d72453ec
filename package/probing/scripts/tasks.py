# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks of asyncio as a tree, the oldest first: each task below its waiter. With SECONDS, also those that do not move for so long.

Python keeps no time of a task's creation, but numbers those without a name of their own."""

import re
import sys
import time

import probing

SECONDS = float(sys.argv[1]) if sys.argv[1:] else 0


def look():
    """Tasks that are not done: those with numbers in their order, then the others."""
    found = probing.current().query("SELECT task, name, state, coro, waits_for, awaiters, file, lineno, chain FROM python.tasks "
                                    "WHERE state IN ('pending', 'running')")
    return sorted(found, key=lambda each: int((re.match(r"Task-(\d+)$", each["name"] or "") or (0, sys.maxsize))[1]))


tasks = look()
time.sleep(SECONDS)
stayed = [{**each, "state": ""} for each in look()] if SECONDS else []
children, shown = {}, set()
for task in tasks:
    for name in (task["awaiters"] or "").split(", "):
        children.setdefault(name, []).append(task)


def show(task, depth):
    shown.add(task["task"])
    print("%s%s %s %s, waits for %s, at %s:%s%s" % (
        "  " * depth, task["name"], task["coro"], task["state"], task["waits_for"] or "nothing", task["file"], task["lineno"],
        ", and %g s later" % SECONDS if {**task, "state": ""} in stayed else ""))
    for child in children.get(task["name"], ()):
        if child["task"] not in shown:
            show(child, depth + 1)


# Tasks in a circle of waits have no root: they come last.
for task in sorted(tasks, key=lambda each: bool(each["awaiters"])):
    if task["task"] not in shown:
        show(task, 0)
if not tasks:
    print("There is no task that is not done.")

# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks of asyncio as a tree: each task below its waiter."""

import probing

tasks = probing.current().query("SELECT task, name, state, coro, waits_for, awaiters, file, "
                                "lineno FROM python.tasks WHERE state IN ('pending', 'running')")
children, shown = {}, set()
for task in tasks:
    for name in (task["awaiters"] or "").split(", "):
        children.setdefault(name, []).append(task)


def show(task, depth):
    shown.add(task["task"])
    print("%s%s %s %s, waits for %s, at %s:%s" % (
        "  " * depth, task["name"], task["coro"], task["state"], task["waits_for"] or "nothing",
        task["file"], task["lineno"]))
    for child in children.get(task["name"], ()):
        if child["task"] not in shown:
            show(child, depth + 1)


# Tasks in a circle of waits have no root: they come last.
for task in sorted(tasks, key=lambda each: bool(each["awaiters"])):
    if task["task"] not in shown:
        show(task, 0)
if not tasks:
    print("There is no task that is not done.")

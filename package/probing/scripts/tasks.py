# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks of asyncio as a tree, the oldest first: each task below its waiter. With SECONDS, also those that no look finds elsewhere.

Python keeps no time of a task's creation, but numbers those without a name of their own. A task that takes items of a queue
quickly may seem to stay where it waits for the next one."""

import random
import re
import sys
import time

import probing

SECONDS = float(sys.argv[1]) if sys.argv[1:] else 0
LOOKS = 12  # at odd times: a task that wakes up and waits again in the same place waits for another future, or until later


def look():
    """Tasks that are not done: those with numbers in their order, then the others."""
    found = probing.current().query(
        "SELECT task, name, state, coro, waits_for, awaiters, file, lineno, chain, seconds_left, (SELECT value_address FROM "
        "python.attributes WHERE address = task AND name = '_fut_waiter') AS future FROM python.tasks "
        "WHERE state IN ('pending', 'running')")
    for each in found:
        each["until"] = time.time() + (each.pop("seconds_left") or 0)
    return sorted(found, key=lambda each: int((re.match(r"Task-(\d+)$", each["name"] or "") or (0, sys.maxsize))[1]))


def has_moved(before, now):
    """How long a sleep lasts is known; of other waits `until` is the time of the look."""
    slept = str(now["waits_for"]).startswith("sleep") and abs(now["until"] - before["until"]) > SECONDS / 4
    return slept or now["state"] == "running" or {**before, "until": 0, "state": ""} != {**now, "until": 0, "state": ""}


tasks, start = look(), time.time()
stayed = {each["task"] for each in tasks} if SECONDS else set()
for moment in sorted(random.uniform(0, SECONDS) for _ in range(LOOKS - 1)) + [SECONDS] if SECONDS else ():
    time.sleep(max(0, start + moment - time.time()))
    later = {each["task"]: each for each in look()}
    stayed -= {each["task"] for each in tasks if each["task"] not in later or has_moved(each, later[each["task"]])}
children, shown = {}, set()
for task in tasks:
    for name in (task["awaiters"] or "").split(", "):
        children.setdefault(name, []).append(task)


def show(task, depth):
    shown.add(task["task"])
    print("%s%s %s %s, waits for %s, at %s:%s%s" % (
        "  " * depth, task["name"], task["coro"], task["state"], task["waits_for"] or "nothing", task["file"], task["lineno"],
        ", and so at %d looks in %g s" % (LOOKS + 1, SECONDS) if task["task"] in stayed else ""))
    for child in children.get(task["name"], ()):
        if child["task"] not in shown:
            show(child, depth + 1)


# Tasks in a circle of waits have no root: they come last.
for task in sorted(tasks, key=lambda each: bool(each["awaiters"])):
    if task["task"] not in shown:
        show(task, 0)
if not tasks:
    print("There is no task that is not done.")

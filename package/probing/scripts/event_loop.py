# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps an event loop of asyncio from its events, and for how long. [SECONDS]"""

import random
import sys
import time

import probing

SECONDS = float(sys.argv[1]) if sys.argv[1:] else 5
EACH = 0.05  # seconds between two looks, on average: random, so that no program runs in step with them
# `end_time` is when this turn of the loop had looked for events, `i` the number of its callback that runs.
LOCAL = "LEFT JOIN python.locals AS {0} ON s.func = '_run_once' AND {0}.tid = s.tid AND {0}.depth = s.depth AND {0}.name = '{1}' "
LOOK = ("SELECT s.tid, t.name, t.os_name, s.func, s.file, s.lineno, a.number AS turn, b.number AS callback FROM python.stacks AS s "
        "JOIN python.threads AS t ON t.tid = s.tid " + LOCAL.format("a", "end_time") + LOCAL.format("b", "i") +
        "WHERE t.state != 'stopped' ORDER BY s.tid, s.depth")
DAY = 86400
LIMITS = 0.01, 0.03, 0.1, 0.3, 1, 3, 10


def in_library(frame, loop):
    return frame["file"].startswith((loop["file"].rsplit("/asyncio/", 1)[0], "<")) or "/site-packages/" in frame["file"]


def place(frames, loop):
    """The innermost function of the program's own, and what it calls."""
    own = next((at for at, each in enumerate(frames) if not in_library(each, loop)), 0)
    calls = "%s, called by " % frames[own - 1]["func"] if own else ""
    return "%s%s %s:%s" % (calls, frames[own]["func"], frames[own]["file"], frames[own]["lineno"])


def turn_began(turn, began, ended, turns):
    """When it had looked for events. A loop may have a clock of its own: then, when that was seen first."""
    return turn if ended - DAY < turn <= began else turns.setdefault(turn, ended)


def look(p, loops):
    began, rows, above = time.monotonic(), p.query(LOOK), []
    ended = time.monotonic()
    for row in rows:
        above = above if above and above[-1]["tid"] == row["tid"] else []
        above.append(row)
        if row["func"] != "_run_once" or not row["file"].endswith("/asyncio/base_events.py"):
            continue
        looks, turns, callbacks = loops.setdefault((row["tid"], row["name"] or row["os_name"]), ([], {}, {}))
        frames = [each for each in above[:-1] if each["func"] != "_run" or "/asyncio/" not in each["file"]]
        waits = any(each["func"] == "select" and each["file"].endswith("/selectors.py") for each in frames[-1:])
        runs = not waits and frames and row["turn"] is not None
        looks.append(began - turn_began(row["turn"], began, ended, turns) if runs else waits)
        if runs:
            callbacks.setdefault((row["turn"], row["callback"]), []).append((ended, began, place(frames, row)))


def show(tid, name, looks, _, callbacks):
    busy, worst = [each for each in looks if isinstance(each, float)], {}
    print("Event loop of %d %s: of %d looks, %d found it running callbacks, %d waiting for events, %d could not tell." % (
        tid, name, len(looks), len(busy), looks.count(True), looks.count(False)))
    for limit, count in ((limit, sum(each >= limit for each in busy)) for limit in LIMITS):
        if count:
            print("  not looked for events for %g ms or more: at %d looks (%.0f %%)" % (limit * 1000, count, 100 * count / len(looks)))
    for seen in callbacks.values():
        names = [each for _, _, each in seen]
        worst.setdefault(max(names, key=names.count), []).append(seen[-1][1] - seen[0][0])
    for where, times in sorted(worst.items(), key=lambda each: -max(each[1]))[:10]:
        if max(times) >= LIMITS[0]:
            print("  blocked %.0f ms or more in %s" % (1000 * max(times), where))


program, found, end = probing.current(), {}, time.monotonic() + SECONDS
while time.monotonic() < end and program.live:
    look(program, found)
    time.sleep(random.uniform(0, 2 * EACH))
for (number, title), parts in found.items():
    show(number, title, *parts)
if not found:
    print("No event loop of asyncio goes on here. It takes a process of this machine that runs, and a loop in Python, not uvloop's.")

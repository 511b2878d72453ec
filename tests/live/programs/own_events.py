# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes rows by probing.event(), span(), step() and table(), then waits."""

import os
import sys
import threading
import time

sys.path.insert(0, sys.argv[1])

import probing  # noqa: E402

tasks = "pass"
if sys.version_info >= (3, 7):
    tasks = """
import asyncio
@probing.span("task")
async def task(number):
    await asyncio.sleep(0)
    probing.event("in task", number=number)
async def tasks():
    with probing.span("gather"):
        await asyncio.gather(task(1), task(2))
asyncio.run(tasks())
"""


def fail():
    with probing.span("failed"):
        raise KeyError("x")


assert probing.event("before", text="n\u00e4me", number=1, other=fail)
with probing.span("outer", file="f"):
    with probing.span("inner"):
        probing.event("within")
try:
    fail()
except KeyError:
    pass
exec(tasks)
assert probing.step(3, epoch=1, loss=0.5, accuracy=0.25)
assert probing.step(loss=0.25)
thread = threading.Thread(target=probing.event, args=("after",))
thread.start()
thread.join()
assert not probing.event("long", text="x" * 10000)
losses = probing.table("losses", {"step": int, "loss": float, "note": str})
assert losses.append(1, 0.5, note="s\udcffn") and losses.append(step=2 ** 62)
for wrong, values in ((TypeError, ("text",)), (OverflowError, (2 ** 64,)), (TypeError, (1,) * 4)):
    try:
        losses.append(*values)
        raise SystemExit("accepted %r" % (values,))
    except wrong:
        pass
child = os.fork()
if not child:
    probing.event("child")
    os._exit(0)
os.waitpid(child, 0)
print("ready", losses.path, child, flush=True)
time.sleep(600)

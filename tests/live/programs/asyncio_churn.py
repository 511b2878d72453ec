# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks that never rest: each goes down one of two chains of ten coroutines, again and again. A
chain that has links of both, or lacks one, is impossible."""
import asyncio
import sys

DEPTH, TASKS = 10, int(sys.argv[1])


async def left_0():
    await asyncio.sleep(0)


async def right_0():
    await asyncio.sleep(0.0001)


for family in ("left", "right"):
    for level in range(1, DEPTH):
        exec("async def {0}_{1}():\n    await {0}_{2}()".format(family, level, level - 1))


async def churn():
    while True:
        await globals()["left_%d" % (DEPTH - 1)]()
        await globals()["right_%d" % (DEPTH - 1)]()


async def main():
    loop = asyncio.get_event_loop()
    tasks = [loop.create_task(churn()) for _ in range(TASKS)]
    await asyncio.sleep(0.01)
    print("ready", flush=True)
    await tasks[0]


asyncio.get_event_loop_policy().new_event_loop().run_until_complete(main())

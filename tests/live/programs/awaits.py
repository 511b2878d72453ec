# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks that wait for coroutines and asynchronous generators, in turns."""
import asyncio


async def part(number):
    await asyncio.sleep(0.01)
    return number * 10


async def parts(number):
    for each in range(2):
        await asyncio.sleep(0.01)
        yield number + each


async def handle(number):
    while True:
        whole = await part(number)
        async for each in parts(number):
            whole += each


async def main():
    print("ready", flush=True)
    await asyncio.gather(*[handle(number) for number in range(5)])


asyncio.new_event_loop().run_until_complete(main())

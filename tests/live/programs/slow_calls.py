# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls that are fast but for each tenth, which takes REST seconds: of a function, a coroutine, a generator,
methods, and one that fails. Each takes its turn."""
import asyncio
import sys
import time

REST = float(sys.argv[1])


class Request:
    def __init__(self, number):
        self.number = number

    def __repr__(self):
        handle(self)  # which is being traced
        return "Request(%d)" % self.number


def handle(request, slow=False):
    if slow:
        time.sleep(REST)
    return request.number


def fail(number):
    if number % 10 == 0:
        time.sleep(REST)
        raise KeyError(number)


def numbers(number):
    yield number
    if number % 10 == 0:
        time.sleep(REST)
    yield number


class Handler:
    def do_get(self, number):
        if number % 10 == 0:
            time.sleep(REST)

    def do_put(self, number):
        pass


def recurse(depth):
    if depth:
        return recurse(depth - 1)
    time.sleep(REST)


COROUTINE = """
async def serve(number):
    await asyncio.sleep(REST if number % 10 == 0 else 0)
    return number

async def serve_many(number):
    await asyncio.gather(*[serve(each) for each in range(number, number + 10)])
"""


def main():
    # What Python 3.4 cannot read.
    exec(COROUTINE, globals())
    loop = asyncio.new_event_loop()
    print("ready", flush=True)
    handler, number = Handler(), 0
    while True:
        number += 1
        handle(Request(number), number % 10 == 0)
        try:
            fail(number)
        except KeyError:
            pass
        list(numbers(number))
        handler.do_get(number)
        handler.do_put(number)
        if number % 10 == 0:
            loop.run_until_complete(serve_many(number))
            recurse(2)


main()

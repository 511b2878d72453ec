# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls a method that may raise, a function within it, a generator, and tasks where they exist."""
class Model:
    def step(self, number, *rest, scale=1.0, **more):
        if number % 3 == 0:
            raise KeyError("third")
        return inner(number) * scale


def inner(number):
    return number * 2


def numbers(count):
    for each in range(count):
        yield each
    return "end"


def later(count):
    yield from part(count)


def part(count):
    for each in numbers(count):
        yield each


def work():
    import time

    model, number = Model(), 0
    while True:
        number += 1
        try:
            model.step(number, "x", scale=2.0, k=[1, 2])
        except KeyError:
            pass
        list(numbers(3))
        list(later(2))
        time.sleep(0.002)


print("ready", flush=True)
work()

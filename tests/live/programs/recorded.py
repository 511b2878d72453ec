# SPDX-License-Identifier: GPL-3.0-or-later
"""What the recorded snapshots show: threads asleep in a pipe, with calls and variables of many kinds.

Prints the stack of each thread, innermost frame first, with repr() of the variables, as JSON.
"""
import collections
import json
import os
import sys
import threading

descriptor = os.pipe()[0]
asleep = threading.Semaphore(0)


class Shape(object):
    __slots__ = ("sides",)

    def __init__(self, sides):
        self.sides = sides

    def area(self, scale):
        squares = [side * side * scale for side in self.sides]

        def add(total):
            asleep.release() or os.read(descriptor, 1)
            return total + sum(squares)

        return add(0.5)


Pair = collections.namedtuple("Pair", "first second")


def numbers():
    small, huge, negative = 7, 2 ** 200 + 1, -(2 ** 63)
    real, tiny, complex_number = 1.5, 5e-324, 3 - 4j
    truth, nothing, dots = True, None, Ellipsis
    texts("plain", 1, "more", flag=None)
    return (small, huge, negative, real, tiny, complex_number, truth, nothing, dots)


def texts(plain, *more, **named):
    latin, wide, astral = "caf\xe9", "\u4e2d\u6587", "\U0001f600"
    octets, array = b"\x00\xff'", bytearray(b"ab")
    asleep.release() or os.read(descriptor, 1)
    return (plain, more, named, latin, wide, astral, octets, array)


def containers():
    inner = [1, "two", (3.0,)]
    pair = Pair(inner, None)
    mapping = {"key": inner}
    ordered = collections.OrderedDict([("b", 1), ("a", 2)])
    fixed, steps, part = frozenset(["only"]), range(1, 9, 2), slice(1, None)
    for each in walk(mapping):
        inner.append(each)
    return pair, ordered, fixed, steps, part


def walk(tree):
    for key, value in tree.items():
        yield key
        asleep.release() or os.read(descriptor, 1)
        yield value


def descend(depth):
    if depth:
        return descend(
            depth - 1
        )
    return Shape((1, 2)).area(scale=3)


SHOWN = ("numbers", "texts", "containers", "walk", "descend", "area", "add")


def variables(frame):
    return {name: repr(value) for name, value in frame.f_locals.items()}


def stack(frame):
    # A thread may still be returning from release(); only the frames above main() show this.
    while frame.f_globals is not globals() or frame.f_code.co_name == "stacks":
        frame = frame.f_back
    frames = []
    while frame:
        ours = frame.f_globals is globals()
        frames.append({
            "func": frame.f_code.co_name, "qualname": getattr(frame.f_code, "co_qualname", None),
            "line": frame.f_lineno,
            "locals": variables(frame) if ours and frame.f_code.co_name in SHOWN else None,
        })
        frame = frame.f_back
    return frames


def stacks():
    frames = sys._current_frames()
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return json.dumps({names[ident]: stack(frames[ident]) for ident in names}) + "\n"


def main():
    works = [(numbers, ()), (containers, ()), (descend, (3,))]
    for function, arguments in works:
        thread = threading.Thread(target=function, args=arguments, name=function.__name__)
        thread.daemon = True
        thread.start()
    for _ in works:
        asleep.acquire()
    sys.stdout.write(stacks()), sys.stdout.flush(), sys.stdin.read()


main()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of many kinds, over and over, and a thread that counts. With "trace" as its second argument it
prints the interpreter's own trace of one turn, one event on a line."""
import json
import mmap
import os
import sys
import threading

with open(sys.argv[1], "r+b") as file:
    memory = mmap.mmap(file.fileno(), 0)
shared = memoryview(memory).cast("q")


def leaf(number):
    number += 1
    return number


def recursive(depth):
    if depth:
        recursive(depth - 1)
    return depth


def numbers():
    yield 1
    yield 2


def fails(depth):
    if depth:
        fails(depth - 1)
    raise ValueError(depth)


def inner(number):
    return leaf(
        number)


class Item:
    def __lt__(self, other):
        less = True
        return less


def turn():
    first = leaf(1)
    second = leaf(2) + leaf(3)
    recursive(3)
    for number in numbers():
        first += number
    try:
        fails(2)
    except ValueError:
        second += 1
    sorted([Item(), Item()])
    inner(first)
    squares = list(map(leaf, [1, 2]))
    return squares


def count():
    while True:
        shared[1] += 1


def again():
    while True:
        turn()
        shared[0] += 1


def trace():
    numbered, events = {}, []

    def name(frame):
        return numbered.setdefault(frame, len(numbered)) if frame else None

    def tell(frame, event, _):
        if event in ("line", "return"):
            events.append((event, name(frame), name(frame.f_back), frame.f_code.co_name, frame.f_lineno))
        if shared[0] == 2:
            raise SystemExit
        return tell

    sys.settrace(tell)
    try:
        again()
    finally:
        sys.settrace(None)
        begins = [place for place, (event, _, _, func, line) in enumerate(events) if event == "line"
                  and func == "turn" and line == turn.__code__.co_firstlineno + 1]
        os.write(1, json.dumps(events[begins[0]:begins[1] + 1]).encode() + b"\n")


if sys.argv[2:] == ["trace"]:
    trace()
threading.Thread(target=count, daemon=True).start()
os.write(1, b"ready\n")
again()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Rounds of calls, loops, generators and exceptions to step through. With "trace" it prints, as JSON, the
lines of one round from sys.settrace(), and ends."""
import json
import sys
import time


def leaf(number):
    doubled = number * 2
    return doubled


def produce():
    yield 1
    yield 2


def fail():
    raise ValueError("told")


def recurse(left):
    if left:
        return recurse(left - 1)
    return 0


def turn():
    total = leaf(1)
    for value in produce():
        total += leaf(value)
    try:
        fail()
    except ValueError:
        total += 1
    recurse(2)
    return total


def traced():
    told = []

    def trace(frame, event, _):
        if event == "line":
            told.append([frame.f_code.co_name, frame.f_lineno])
        return trace

    sys.settrace(trace)
    turn()
    sys.settrace(None)
    return [each for each in told if each[0] != "traced"]


if sys.argv[1:] == ["trace"]:
    print(json.dumps(traced()))
else:
    print("ready", flush=True)
    while True:
        turn()
        time.sleep(0.001)

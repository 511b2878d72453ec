# SPDX-License-Identifier: GPL-3.0-or-later
"""A variable of each kind of value, to test their display: arguments of show(), named after the kind.
Prints the kinds as JSON, each with repr()."""
import argparse
import array
import asyncio
import collections
import concurrent.futures
import datetime
import decimal
import enum
import fractions
import functools
import io
import json
import logging
import os
import pathlib
import queue
import re
import socket
import subprocess
import sys
import threading
import types
import typing
import uuid
import weakref


class Plain(object):
    def __init__(self):
        self.name, self.rows = "plain", [1, 2]

    def method(self):
        pass

    @property
    def computed(self):
        raise AssertionError("code of the program runs")


class Slotted(object):
    __slots__ = ("left", "right")

    def __init__(self):
        self.left, self.right = 1, "two"


class Colour(enum.Enum):
    RED = 1


class Point(collections.namedtuple("Point", "x y")):
    pass


class Derived(dict):
    pass


def generate(count):
    for number in range(count):
        yield number


async def wait(seconds):
    await asyncio.sleep(seconds)


def closure():
    kept = [1, 2]

    def inner():
        return kept
    return inner


def started(generator):
    next(generator)
    return generator


def match():
    return re.match(r"(\w+)-(\d+)", "item-42 and more")


def finished():
    future = concurrent.futures.Future()
    future.set_result([1, 2])
    return future


def failed():
    future = concurrent.futures.Future()
    future.set_exception(ValueError("lost"))
    return future


def error():
    try:
        raise KeyError("missing")
    except KeyError as caught:
        return caught


def named_file():
    file = open(__file__, encoding="utf-8")
    file.readline()
    return file


def held(lock):
    lock.acquire()
    return lock


def task_of(loop):
    return loop.create_task(wait(1))


def set_event():
    event = threading.Event()
    event.set()
    return event


def filled():
    items = queue.Queue(5)
    items.put("job")
    return items


def main():
    loop = asyncio.new_event_loop()
    plain = Plain()
    values = collections.OrderedDict()
    values["bool"] = True
    values["int"] = 1 << 70
    values["float"] = 0.1
    values["complex"] = 1 + 2j
    values["str"] = "h\u00e9 \U0001f642"
    values["bytes"] = b"a\xff"
    values["bytearray"] = bytearray(b"ab")
    values["memoryview"] = memoryview(b"ab")
    values["list"] = [1, [2, [3, [4, [5]]]]]
    values["tuple"] = (1,)
    values["dict"] = {"a": {"b": 1}}
    values["set"] = {1}
    values["frozenset"] = frozenset([1])
    values["range"] = range(1, 9, 2)
    values["slice"] = slice(1, None)
    values["namedtuple"] = Point(1, 2)
    values["dict subclass"] = Derived(a=1)
    values["OrderedDict"] = collections.OrderedDict(a=1)
    values["defaultdict"] = collections.defaultdict(list, a=[1])
    values["Counter"] = collections.Counter("aab")
    values["deque"] = collections.deque([1, 2], maxlen=5)
    values["ChainMap"] = collections.ChainMap({"a": 1}, {"b": 2})
    values["mappingproxy"] = types.MappingProxyType({"a": 1})
    values["array"] = array.array("d", [1.5])
    values["instance"] = plain
    values["instance with slots"] = Slotted()
    values["SimpleNamespace"] = types.SimpleNamespace(a=1)
    values["argparse.Namespace"] = argparse.Namespace(epochs=3, lr=0.1)
    values["Enum"] = Colour.RED
    values["Flag"] = re.I | re.M
    values["Decimal"] = decimal.Decimal("1.50")
    values["Fraction"] = fractions.Fraction(1, 3)
    values["datetime"] = datetime.datetime(2024, 5, 6, 7, 8, 9, tzinfo=datetime.timezone.utc)
    values["timedelta"] = datetime.timedelta(days=1, seconds=2)
    values["UUID"] = uuid.UUID(int=1)
    values["Path"] = pathlib.PurePosixPath("/a/b")
    values["Pattern"] = re.compile("a+")
    values["Match"] = match()
    values["exception"] = error()
    values["function"] = closure()
    values["method"] = plain.method
    values["builtin"] = len
    values["partial"] = functools.partial(max, 1, key=abs)
    values["class"] = Plain
    values["module"] = json
    values["generic alias"] = typing.List[int]
    values["weakref"] = weakref.ref(plain)
    values["generator, begun"] = started(generate(3))
    values["generator, new"] = generate(3)
    values["coroutine"] = wait(1)
    values["frame"] = sys._getframe()
    values["code"] = main.__code__
    values["file"] = named_file()
    values["StringIO"] = io.StringIO("text")
    values["BytesIO"] = io.BytesIO(b"bytes")
    values["socket"] = socket.socket()
    values["Popen"] = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    values["Future, done"] = finished()
    values["Future, failed"] = failed()
    values["asyncio.Task"] = task_of(loop)
    values["Logger"] = logging.getLogger("a.b")
    values["Thread"] = threading.current_thread()
    values["Lock"] = held(threading.Lock())
    values["RLock"] = held(threading.RLock())
    values["Event"] = set_event()
    values["Condition"] = threading.Condition(threading.Lock())
    values["Semaphore"] = threading.Semaphore(2)
    values["Queue"] = filled()
    values["iterator of a list"] = iter([1, 2, 3])
    print(json.dumps(collections.OrderedDict((name, repr(value)) for name, value in values.items())))
    sys.stdout.flush()
    names = ", ".join(re.sub(r"\W", "_", name) + "_" for name in values)
    exec(compile("def show(%s):\n    os.read(0, 1)" % names, "<kinds>", "exec"), globals())
    show(*values.values())
    values["Popen"].kill()


main()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Python called by C called by Python, in all ways there are.

native_calls.py LIBRARIES LEAF SCENARIO…: the scenarios, one inside of the other, the last one
ending in a function that sleeps or spins. With "churn" for LEAF all are called over and over, each
by itself, with leaves that last an instant.
"""
import asyncio
import builtins
import functools
import importlib
import itertools
import json
import mmap
import os
import re
import signal
import sys
import threading
import time

LIBRARIES, LEAF = sys.argv[1:3]
QUIET, QUIET_WRITE = os.pipe()
sys.path.insert(0, LIBRARIES)

try:
    import ctypes

    LIBC = ctypes.PyDLL(None)
    COMPARE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    C = ctypes.PyDLL(os.path.join(LIBRARIES, "native_library.so"))
    PLUS = ctypes.PyDLL(os.path.join(LIBRARIES, "native_plus.so"))
    for function in C.native_outer, C.native_alloca, C.native_sort, PLUS.native_plus:
        function.restype = ctypes.py_object
    C.native_outer.argtypes = C.native_sort.argtypes = [ctypes.py_object]
    PLUS.native_plus.argtypes = [ctypes.py_object]
    C.native_alloca.argtypes = [ctypes.py_object, ctypes.c_int]
except ImportError:
    ctypes = None
try:
    import native_module
except ImportError:
    native_module = None


def leaf_sleep():
    os.read(QUIET, 1)


def leaf_spin():
    while True:
        pass


def leaf_lock():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def leaf_churn():
    time.sleep(0.001)
    end = time.perf_counter() + 0.001
    while time.perf_counter() < end:
        pass


LEAVES = {"sleep": leaf_sleep, "spin": leaf_spin, "lock": leaf_lock, "churn": leaf_churn}


def plain(go):
    go()


def outer(go):
    C.native_outer(go)


def alloca(go):
    C.native_alloca(go, 5000)


def module(go):
    native_module.call(go)


def c_sort(go):
    C.native_sort(go)


def plus(go):
    PLUS.native_plus(go)


def callback(go):
    def compare(_a, _b):
        go()
        return 0

    array = (ctypes.c_int * 2)(2, 1)
    LIBC.qsort(array, 2, 4, COMPARE(compare))


def py_signal(go):
    def handler(_number, _frame):
        go()

    signal.signal(signal.SIGUSR1, handler)
    os.kill(os.getpid(), signal.SIGUSR1)
    for _ in range(1000):
        pass


def generator(go):
    def inner():
        go()
        yield 1

    def delegating():
        yield from inner()

    for _ in delegating():
        break


def coroutine(go):
    async def inner():
        go()

    async def awaiting():
        await inner()

    try:
        awaiting().send(None)
    except StopIteration:
        pass


def event_loop(go):
    async def work():
        go()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(work())
    loop.close()


def special_eq(go):
    class Same:
        def __eq__(self, _):
            go()
            return True

    return Same() == 1


def special_repr(go):
    class Shown:
        def __repr__(self):
            go()
            return ""

    return str([Shown()])


def special_del(go):
    class Dying:
        def __del__(self):
            go()

    dying = Dying()
    del dying


def special_init(go):
    class Made:
        def __init__(self):
            go()

    Made()


def special_getattr(go):
    class Asked:
        def __getattr__(self, _):
            return go()

    return Asked().something


def special_hash(go):
    class Key:
        def __hash__(self):
            go()
            return 1

    return {Key()}


def descriptor(go):
    class Has:
        @property
        def value(self):
            return go()

    return Has().value


def manager(go):
    class Entered:
        def __enter__(self):
            go()

        def __exit__(self, *_):
            pass

    with Entered():
        pass


def sort_key(go):
    def key(_):
        return go() or 0

    sorted([1], key=key)


def reduced(go):
    def add(_a, _b):
        return go()

    functools.reduce(add, [1, 2])


def mapped(go):
    list(map(lambda _: go(), [1]))


def chained(go):
    next(itertools.starmap(lambda _: go(), [(1,)]))


def replaced(go):
    def found(_):
        go()
        return ""

    re.sub("a", found, "a")


def partial(go):
    functools.partial(go)()


def cached(go):
    functools.lru_cache()(lambda _: go())(1)


def executed(go):
    exec("def run(go):\n    go()\nrun(go)", {"go": go})


def evaluated(go):
    eval("[go() for _ in [1]]", {"go": go})


def encoded(go):
    class Odd:
        pass

    def default(_):
        go()
        return 0

    json.dumps(Odd(), default=default)


def imported(go):
    builtins.native_go = go
    sys.modules.pop("native_imported", None)
    importlib.import_module("native_imported")


def greenlets(go):
    import greenlet

    def inner():
        greenlet.getcurrent().parent.switch()
        go()

    def in_between():
        child = greenlet.greenlet(inner)
        child.switch()
        child.switch()

    greenlet.greenlet(in_between).switch()


def trampoline(go):
    # push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret, where no module is
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\x55\x48\x89\xe5\xff\xd7\x5d\xc3")
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    function = ctypes.PYFUNCTYPE(ctypes.c_int)(lambda: go() and 0)
    ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(address)(ctypes.cast(function, ctypes.c_void_p))


def in_handler(_go):
    C.native_raise(signal.SIGUSR2, -1 if LEAF == "spin" else QUIET)


def in_thread(go):
    thread = threading.Thread(target=go, name="other")
    thread.start()
    thread.join()


def native_thread(go):
    C.native_start_thread(ctypes.CDLL("libpthread.so.0").pthread_create, QUIET)
    go()


def deep(go):
    def down(depth):
        if depth == 0:
            return go()
        if depth % 3 == 0 and ctypes:
            return C.native_outer(lambda: down(depth - 1))
        if depth % 3 == 1:
            return sorted([1], key=lambda _: down(depth - 1) or 0)
        return down(depth - 1)

    # Debug builds are not given much of the C stack.
    down(150 if hasattr(sys, "gettotalrefcount") else 600)


def nest(names, last):
    """The scenarios one inside of the other."""
    if not names:
        return last()
    return globals()[names[0]](lambda: nest(names[1:], last))


def main():
    sys.setrecursionlimit(10000)
    with open(os.path.join(LIBRARIES, "native_imported.py"), "w") as file:
        file.write("def at_import():\n    native_go()\n\n\nat_import()\n")
    print("ready", flush=True)
    if LEAF != "churn":
        nest(sys.argv[3:], LEAVES[LEAF])
    while True:
        for name in sys.argv[3:]:
            nest([name], leaf_churn)


main()

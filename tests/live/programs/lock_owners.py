# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks that are held in many ways, each wanted by a thread of its own.

Prints a JSON of {name of the waiting thread: what it must be said to wait for}: "holder in
FUNCTION" or, where no holder can be proved, null.
"""
import contextlib
import json
import sys
import threading
import time

expected, ready, waiters = {}, [], []


def hold():
    ready.append(1)
    time.sleep(1000)


class Unlocked:
    def __init__(self, lock):
        self.lock = lock

    def __enter__(self):
        self.lock.release()

    def __exit__(self, *_):
        self.lock.acquire()


@contextlib.contextmanager
def unlocked(lock):
    lock.release()
    try:
        yield
    finally:
        lock.acquire()


@contextlib.contextmanager
def harmless():
    yield


def want(lock):
    with lock:
        pass


def start(name, function, *args):
    threading.Thread(target=function, name=name, args=args, daemon=True).start()


def case(proved, make=threading.Lock, place=None):
    """The function is given a lock and a second one, and calls hold()."""
    def add(function):
        name = function.__name__
        lock = make()
        count = len(ready)
        start(name, function, lock, make())
        while len(ready) == count:
            time.sleep(0.001)
        waiters.append((name + " waiter", lock))
        expected[name + " waiter"] = [name, place or name] if proved else None
        return function
    return add


@case(True)
def plain(lock, other):
    with lock:
        hold()


@case(True)
def nested(lock, other):
    with other:
        with lock:
            with threading.Lock():
                hold()


@case(True)
def several(lock, other):
    with other as first, lock as second, threading.Lock():
        hold()


@case(True)
def in_try(lock, other):
    try:
        with lock:
            try:
                hold()
            except ValueError:
                pass
            else:
                pass
    finally:
        other.acquire()


@case(True)
def in_except(lock, other):
    try:
        raise KeyError
    except KeyError as error:
        with lock:
            hold()


@case(True)
def in_finally(lock, other):
    try:
        raise KeyError
    finally:
        with lock:
            hold()


@case(True)
def after_exception_inside(lock, other):
    with lock:
        try:
            with other:
                raise KeyError
        except KeyError:
            hold()


@case(True)
def in_loop(lock, other):
    for i in range(5):
        with lock:
            if i == 0:
                continue
            while True:
                for _ in iter([1, 2]):
                    with other:
                        if i == 1:
                            break
                    hold()
                break


@case(True, place="inside")
def in_generator(lock, other):
    def inside():
        with lock:
            yield 1
            hold()
    for _ in inside():
        pass


@case(False)
def suspended_generator(lock, other):
    def inside():
        with lock:
            yield 1
    generator = inside()
    next(generator)
    hold()


@case(True, place="wrapper")
def decorated(lock, other):
    def locked(function):
        def wrapper():
            with lock:
                return function()
        return wrapper

    @locked
    def body():
        hold()
    body()


@case(True)
def in_comprehension(lock, other):
    with lock:
        return [hold() for _ in range(2)]


@case(True, place="recurse")
def deep(lock, other):
    def recurse(n):
        if n == 30:
            with lock:
                recurse(n + 1)
        elif n == 200:
            hold()
        else:
            recurse(n + 1)
    recurse(0)


@case(True)
def with_file(lock, other):
    with lock, open("/dev/null") as file, harmless():
        hold()


@case(True)
def in_return(lock, other):
    with other:
        with lock:
            return hold()


@case(True, make=lambda: threading.Condition(threading.Lock()))
def condition(lock, other):
    with lock:
        hold()


@case(True, make=threading.RLock)
def reentrant(lock, other):
    with lock:
        with lock:
            hold()


@case(False)
def acquired(lock, other):
    lock.acquire()
    hold()


@case(False)
def on_exit_stack(lock, other):
    with contextlib.ExitStack() as stack:
        stack.enter_context(lock)
        hold()


@case(False)
def left(lock, other):
    with lock:
        pass
    lock.acquire()
    hold()


@case(False)
def left_by_exception(lock, other):
    try:
        with lock:
            raise KeyError
    except KeyError:
        pass
    lock.acquire()
    hold()


@case(False)
def left_by_break(lock, other):
    for _ in range(3):
        with lock:
            break
    lock.acquire()
    hold()


@case(False)
def released(lock, other):
    with lock:
        lock.release()
        threading.Thread(target=lock.acquire).run()
        hold()


@case(False)
def released_in_between(lock, other):
    with lock:
        with Unlocked(lock):
            threading.Thread(target=lock.acquire).run()
            hold()


@case(False)
def released_by_generator(lock, other):
    with lock:
        with unlocked(lock):
            threading.Thread(target=lock.acquire).run()
            hold()


@case(False)
def only_mentioned(lock, other):
    """An __exit__ on the value stack that was never entered."""
    lock.acquire()
    print(lock.__exit__, [hold() for _ in range(1)])


# A condition that is waited for is not held by the thread that waits.
plain_lock = threading.Lock()
shared = threading.Condition(plain_lock)


def waits_in_condition():
    with shared:
        ready.append(1)
        shared.wait()


def takes_condition():
    with shared:
        hold()


def want_condition():
    with plain_lock:
        pass


count = len(ready)
start("waits in condition", waits_in_condition)
while len(ready) == count or plain_lock.locked():
    time.sleep(0.001)
count += 1
start("takes condition", takes_condition)
while len(ready) == count:
    time.sleep(0.001)
waiters.append(("condition taken waiter", plain_lock))
expected["condition taken waiter"] = ["takes condition", "takes_condition"]

# On its way to take it again, which another thread has done meanwhile.
taken = threading.Lock()


def retakes():
    with taken:
        with Unlocked(taken):
            threading.Thread(target=taken.acquire).run()


start("retakes", retakes)
waiters.append(("retakes waiter", taken))
expected["retakes"] = expected["retakes waiter"] = None

if sys.version_info >= (3, 10):
    exec("""
@case(True)
def in_match(lock, other):
    match lock, other:
        case (a, b):
            with a:
                match b:
                    case _:
                        hold()
""")

for name, lock in waiters:
    start(name, want, lock)
print(json.dumps(expected), flush=True)
time.sleep(1000)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands in a method, comprehensions, a generator expression, nested functions and a class, where names of
the class and of the functions around have globals of the same name."""
import functools
import os
import sys
import threading
import time

__tok = "GLOBAL tok"
_Vault__tok = "GLOBAL mangled"
limit = "GLOBAL limit"
late = "GLOBAL late"
kept = "GLOBAL kept"
wrapped = "GLOBAL wrapped"
going = [True]
places = {}


def rest():
    name = threading.current_thread().name
    places[name].set()
    while going[0]:
        time.sleep(0.001)


class _Vault:
    __tok = "CLASS tok"

    def method(self):
        __tok = "LOCAL tok"
        rest()
        return __tok

    def __hidden(self):
        return [rest() for _ in "a"]

    def plain(self):
        rest()

    def call_hidden(self):
        self.__hidden()

    def inner(self):
        limit = "METHOD limit"

        def nested():
            rest()

        nested()
        return limit


def again(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        rest()
        return function(*arguments)

    return wrapper


@again
def decorated():
    pass


del again  # before 3.11 nothing else tells where the code stands

def pricing():
    limit, kept = "LOCAL limit", "LOCAL kept"
    if not going:
        late = 1
        print(late)
    return limit, [(rest(), kept) for _ in "a"]


def generating():
    limit, kept = "LOCAL limit", "LOCAL kept"
    return limit, list((rest(), kept) for _ in "a")


def made():
    limit = "LOCAL limit"

    def returned():
        rest()

    print(limit, file=sys.stderr)
    return returned


def declares():
    limit = "LOCAL limit"

    def inner():
        global limit
        if not going:
            limit = 1
        rest()

    inner()
    return limit


def body():
    limit, late = "LOCAL limit", "LOCAL late"

    class Body:
        rest()
        late = "CLASS late"

    return limit, late, Body


vault = _Vault()
stands = {"method": vault.method, "hidden": vault.call_hidden, "plain": vault.plain, "inner": vault.inner,
          "pricing": pricing, "generating": generating, "returned": made(), "declares": declares, "body": body,
          "wrapper": decorated}
for name in stands:
    places[name] = threading.Event()
    thread = threading.Thread(target=stands[name], name=name)
    thread.daemon = True
    thread.start()
    places[name].wait()
os.write(1, b"ready\n")
sys.stdin.readline()
going[0] = False

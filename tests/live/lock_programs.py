# SPDX-License-Identifier: GPL-3.0-or-later
"""Random programs whose threads take locks in all ways, and that say themselves who holds which.

A program prints a JSON once nothing in it moves any more: {"wants": {thread: lock}, "owns": {lock:
thread}}. Each takes as much as it can before it waits for a lock, for a condition, or for ever.
"""
import json
import random
import re

import support
from gateway_client import wait_until

HEAD = """
import contextlib, json, sys, threading, time
LOCKS, THREADS = %(locks)d, %(threads)d
C = [threading.Condition((threading.RLock if k in %(rlocks)s else threading.Lock)()) for k in range(LOCKS)]
L = [condition._lock for condition in C]
owns, wants, resting, deep, gate = {}, {}, set(), [0] * LOCKS, threading.Barrier(THREADS)
me = lambda: threading.current_thread().name
def w(k):
    wants[me()] = k
def o(k):
    wants.pop(me(), None)
    owns[k] = me()
    deep[k] += 1
def d(k):
    assert owns[k] == me()
    deep[k] -= 1
    if not deep[k]:
        owns.pop(k)
def end_with(k):
    if L[k].acquire(False):
        owns[k] = me()
        deep[k] += 1
def ends_with(k):
    thread = threading.Thread(target=end_with, args=(k,), name="ended")
    thread.start()
    thread.join()
def rest():
    resting.add(me())
    time.sleep(1000)
def wait(k):
    deep[k] = 1
    d(k)
    resting.add(me())
    C[k].wait()
class Aside:
    def __init__(self, k):
        self.k = k
    def __enter__(self):
        d(self.k)
        L[self.k].release()
    def __exit__(self, *_):
        w(self.k)
        L[self.k].acquire()
        o(self.k)
@contextlib.contextmanager
def aside(k):
    d(k)
    L[k].release()
    yield
    w(k)
    L[k].acquire()
    o(k)
@contextlib.contextmanager
def nothing():
    yield 1
class Boom(Exception):
    pass
"""

TAIL = """
def run(function):
    gate.wait()
    function()
    resting.add(me())
    time.sleep(1000)
names = ["t%d" % i for i in range(THREADS)]
for name in names:
    threading.Thread(target=run, args=(globals()[name],), name=name, daemon=True).start()
def settled():
    waiting = list(wants.values())
    return all(name in resting or name in wants for name in names) and all(k in owns for k in waiting), sorted(wants.items()), sorted(owns.items())
for _ in range(10000):
    before = settled()
    time.sleep(0.03)
    if before[0] and settled() == before:
        break
print(json.dumps({"wants": wants, "owns": owns}), flush=True)
time.sleep(1000)
"""


class Writer:
    def __init__(self, random, locks, syntax):
        self.random, self.locks, self.syntax = random, locks, syntax
        self.lines, self.names, self.functions = [], 0, []

    def put(self, depth, text):
        self.lines.append("    " * depth + text)

    def new(self, prefix):
        self.names += 1
        return "%s%d" % (prefix, self.names)

    def lock(self, held):
        free = [k for k in range(self.locks) if k not in held]
        if not free or self.random.random() < 0.04:
            return self.random.randrange(self.locks)
        return self.random.choice(free)

    def body(self, depth, held, budget):
        """Statements at this depth; the locks in @p held are held by this thread."""
        for _ in range(self.random.randint(1, 2)):
            self.statement(depth, held, budget)

    def statement(self, depth, held, budget):
        if budget <= 0 or depth > 12:
            if self.random.random() < 0.5:
                self.put(depth, self.random.choice(["pass", "rest()", "len('x')"]))
            else:
                self.take_by_with(depth, held, 0)
            return
        kinds = [self.take_by_with] * 6 + [self.take_two] * 2 + [
            self.take_by_acquire, self.take_by_stack, self.retake, self.unlock, self.wait, self.attempt, self.attempt,
            self.loop, self.loop, self.generator, self.function, self.function, self.beside, self.rest, self.comprehension,
            self.match, self.raises] + [self.ended] * 3
        self.random.choice(kinds)(depth, held, budget - 1)

    def enter(self, depth, held, k, budget):
        self.put(depth, "o(%d)" % k)
        self.body(depth, held | {k}, budget)
        self.put(depth, "d(%d)" % k)

    def take_by_with(self, depth, held, budget):
        k = self.lock(held)
        self.put(depth, "w(%d)" % k)
        self.put(depth, "with %s[%d]%s:" % (self.random.choice("LLLC"), k, self.random.choice(["", "", " as x"])))
        self.enter(depth + 1, held, k, budget)

    def take_two(self, depth, held, budget):
        k = self.lock(held)
        other = self.random.choice(["nothing()", "threading.Lock()", "open('/dev/null')", "C[%d]" % self.locks])
        if other.startswith("C["):
            other = "contextlib.ExitStack()"
        self.put(depth, "w(%d)" % k)
        self.put(depth, "with " + self.random.choice(["L[%d], %s:", "L[%d] as x, %s as y:"]) % (k, other))
        self.enter(depth + 1, held, k, budget)

    def take_by_acquire(self, depth, held, budget):
        k = self.lock(held)
        self.put(depth, "w(%d)" % k)
        self.put(depth, "L[%d].acquire()" % k)
        self.enter(depth, held, k, budget)
        self.put(depth, "L[%d].release()" % k)

    def take_by_stack(self, depth, held, budget):
        k = self.lock(held)
        self.put(depth, "with contextlib.ExitStack() as stack:")
        self.put(depth + 1, "w(%d)" % k)
        self.put(depth + 1, "stack.enter_context(L[%d])" % k)
        self.enter(depth + 1, held, k, budget)

    def retake(self, depth, held, budget):
        if not held:
            return self.take_by_with(depth, held, budget)
        k = self.random.choice(sorted(held))
        self.put(depth, "d(%d)" % k)
        self.put(depth, "L[%d].release()" % k)
        self.put(depth, "time.sleep(0.001)")
        self.body(depth, held - {k}, 0)
        self.put(depth, "w(%d)" % k)
        self.put(depth, "L[%d].acquire()" % k)
        self.put(depth, "o(%d)" % k)

    def unlock(self, depth, held, budget):
        if not held:
            return self.take_by_with(depth, held, budget)
        k = self.random.choice(sorted(held))
        self.put(depth, "with %s(%d):" % (self.random.choice(["aside", "Aside"]), k))
        self.put(depth + 1, "time.sleep(0.001)")
        self.body(depth + 1, held - {k}, budget)

    def wait(self, depth, held, budget):
        if not held:
            return self.take_by_with(depth, held, budget)
        self.put(depth, "wait(%d)" % self.random.choice(sorted(held)))

    def attempt(self, depth, held, budget):
        self.put(depth, "try:")
        self.body(depth + 1, held, budget)
        which = self.random.choice(["except", "finally", "both", "else"])
        if which in ("except", "both", "else"):
            self.put(depth, "except ValueError as error:")
            self.put(depth + 1, "pass")
        if which == "else":
            self.put(depth, "else:")
            self.body(depth + 1, held, budget)
        if which in ("finally", "both"):
            self.put(depth, "finally:")
            self.body(depth + 1, held, budget)

    def raises(self, depth, held, budget):
        """Leaves a with statement by an exception, and goes on in the handler."""
        k = self.lock(held)
        self.put(depth, "try:")
        self.put(depth + 1, "w(%d)" % k)
        self.put(depth + 1, "with L[%d]:" % k)
        self.put(depth + 2, "o(%d)" % k)
        self.body(depth + 2, held | {k}, budget - 1)
        self.put(depth + 2, "d(%d)" % k)
        self.put(depth + 2, "raise Boom")
        self.put(depth, "except Boom as error:")
        self.body(depth + 1, held, budget)

    def loop(self, depth, held, budget):
        name, k = self.new("i"), self.lock(held)
        self.put(depth, "for %s in range(3):" % name)
        self.put(depth + 1, "w(%d)" % k)
        self.put(depth + 1, "with L[%d]:" % k)
        self.put(depth + 2, "o(%d)" % k)
        self.put(depth + 2, "if %s == %d:" % (name, self.random.randrange(3)))
        self.put(depth + 3, "d(%d)" % k)
        self.put(depth + 3, self.random.choice(["break", "continue"]))
        self.body(depth + 2, held | {k}, budget - 1)
        self.put(depth + 2, "d(%d)" % k)
        self.put(depth, "else:")
        self.put(depth + 1, "pass")

    def function(self, depth, held, budget):
        name = self.new("f")
        self.put(depth, "def %s():" % name)
        self.body(depth + 1, held, budget)
        self.put(depth + 1, "return 1")
        self.put(depth, self.random.choice(["%s()", "x = %s()", "(lambda: %s())()"]) % name)

    def generator(self, depth, held, budget):
        name, k = self.new("g"), self.lock(held)
        self.put(depth, "def %s():" % name)
        self.put(depth + 1, "w(%d)" % k)
        self.put(depth + 1, "with L[%d]:" % k)
        self.put(depth + 2, "o(%d)" % k)
        self.put(depth + 2, "yield 1")
        self.body(depth + 2, held | {k}, budget)
        self.put(depth + 2, "d(%d)" % k)
        self.put(depth + 1, "yield 2")
        item = self.new("v")
        self.put(depth, "for %s in %s():" % (item, name))
        self.put(depth + 1, "if %s == %d:" % (item, self.random.choice([1, 1, 2])))
        before = "held" if self.random.random() < 0.5 else "pass"
        self.put(depth + 2, "pass" if before == "pass" else "len('x')")
        self.body(depth + 2, held, budget)

    def comprehension(self, depth, held, budget):
        name = self.new("f")
        self.put(depth, "def %s():" % name)
        self.body(depth + 1, held, budget)
        self.put(depth, "print(L[%d].__exit__, [%s() for _ in range(2)], file=sys.stderr)" % (
            self.random.randrange(self.locks), name))

    def match(self, depth, held, budget):
        if not self.syntax:
            return self.take_by_with(depth, held, budget)
        self.put(depth, "match [1, 2]:")
        self.put(depth + 1, "case [1, x]:")
        self.body(depth + 2, held, budget)
        self.put(depth + 1, "case _:")
        self.put(depth + 2, "pass")

    def beside(self, depth, held, budget):
        """Another thread takes one, by acquire() and without ever a frame of that."""
        self.put(depth, "if L[%d].acquire(False):" % self.lock(held))
        k = int(self.lines[-1].split("[")[1].split("]")[0])
        self.enter(depth + 1, held, k, 0)
        self.put(depth + 1, "L[%d].release()" % k)

    def ended(self, depth, held, budget):
        """A thread takes one and ends."""
        if self.random.random() < 0.8:
            self.put(depth, "ends_with(%d)" % self.lock(held))
        self.take_by_with(depth, held, budget)

    def rest(self, depth, held, budget):
        self.put(depth, "rest()")


def text(chance, match, locks, threads):
    writer = Writer(chance, locks, match)
    for thread in range(threads):
        writer.put(0, "def t%d():" % thread)
        writer.body(1, frozenset(), chance.randint(1, 5))
    rlocks = [k for k in range(locks) if chance.random() < 0.3]
    return HEAD % {"locks": locks, "threads": threads, "rlocks": rlocks} + "\n".join(writer.lines) + TAIL


def write(seed, match=False, locks=7, threads=9):
    """The text of a program."""
    chance = random.Random(seed)
    while True:
        program = text(chance, match, locks, threads)
        try:
            compile(program, "program", "exec")
            return program
        except SyntaxError:  # too many nested blocks
            pass


def check(interpreter, seed):
    """Runs one. Gives how many threads wait for locks, for how many a holder was told, for how many it was told that
    no thread holds it, and those for which something else was told than is."""
    told = {}

    def all_wait():
        told.clear()
        told.update((thread["name"], thread["waits_for"] or "") for thread in support.dump(program.pid)["threads"])
        return all("waiting for a" in told[name] for name in truth["wants"])

    program = write(seed, match=interpreter.version >= (3, 10))
    with support.Program([interpreter.exe, "-c", program], env=interpreter.env) as program:
        truth = json.loads(program.line())
        wait_until(all_wait, "not all wait for locks: %s" % told)
    named, nobody, wrong = 0, 0, []
    for name, lock in truth["wants"].items():
        held = re.search(r"waiting for an? R?Lock held by \d+ (\w+)(, in \w|$)", told[name])
        none = "that no thread of this process holds" in told[name]
        owner = truth["owns"].get(str(lock))
        named += bool(held)
        nobody += none
        if none and owner != "ended" or "held by" in told[name] and not (held and held[1] == owner):
            wrong.append((name, lock, told[name], owner))
    return len(truth["wants"]), named, nobody, wrong

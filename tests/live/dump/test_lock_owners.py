# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds a plain lock: the thread that is inside of a `with` statement of it, or nobody is named."""
import json
import os
import re
import signal

import pytest

import lock_programs
import support
import tables
from environment import PROGRAMS, wait_until

EACH = pytest.mark.parametrize(
    "interpreter", [i for i in support.INTERPRETERS if i.version >= (3, 6)], ids=repr)
HELD = re.compile(r"futex: waiting for an? (R?Lock) held by (\d+) (.+?), in (?:.*\.)?(\w+) (\S+):(\d+)")


def wrong_ones(pid, expected):
    """Threads whose wait is not told as expected, with what is told."""
    threads = support.dump(pid)["threads"]
    names = {thread["tid"]: thread["name"] for thread in threads}
    told = {thread["name"]: thread["waits_for"] or "" for thread in threads}
    wrong = {}
    for name, holder in expected.items():
        held = HELD.fullmatch(told.get(name, ""))
        if holder is None:
            if not re.match(r"futex: waiting for a lock at 0x\w+(, holder unknown; possible: .*)?$", told.get(name, "")):
                wrong[name] = told.get(name)
        elif not held or [held[3], held[4]] != holder or names[int(held[2])] != holder[0]:
            wrong[name] = told.get(name)
    return wrong


@EACH
def test_holders(interpreter):
    with support.Program([interpreter.exe, PROGRAMS / "lock_owners.py"], env=interpreter.env) as program:
        expected = json.loads(program.line())
        found = {}

        def as_expected():
            found.clear()
            found.update(wrong_ones(program.pid, expected))
            return not found

        try:
            wait_until(as_expected, 20)
        except AssertionError:
            raise AssertionError("found and expected: %s" % {
                name: (text, expected[name]) for name, text in found.items()}) from None


@EACH
def test_random_programs(interpreter):
    """Nobody is ever named who does not hold the lock, and somebody is."""
    results = [lock_programs.check(interpreter, 1000 * interpreter.version[1] + number)
               for number in range(support.count(5, 200))]
    assert not [result for result in results if result[3]]
    waits, named = (sum(result[i] for result in results) for i in range(2))
    assert named > waits / 20, (waits, named)


SEMAPHORES = """
import threading, time
several, one, signal, taken = threading.Semaphore(2), threading.BoundedSemaphore(1), threading.Semaphore(0), threading.Semaphore(1)
def work(semaphore):
    with semaphore:
        time.sleep(1000)
def want(semaphore):
    with semaphore:
        pass
def use(semaphore):
    semaphore.acquire()
    time.sleep(1000)
    semaphore.release()
def receive(semaphore):
    semaphore.acquire()
def start(name, function, *args):
    threading.Thread(target=function, args=args, name=name, daemon=True).start()
for name, semaphore in ("first", several), ("second", several), ("only", one):
    start(name, work, semaphore)
start("user", use, taken)
while several._value or one._value or taken._value:
    time.sleep(0.001)
start("wants several", want, several)
start("wants one", want, one)
start("wants signal", signal.acquire)
start("receives", receive, signal)
start("wants with", want, taken)
start("wants bare", use, taken)
print(flush=True)
time.sleep(1000)
"""


@EACH
def test_semaphores(interpreter):
    """All who are inside; one of them is no holder, since any other may release it."""
    inside = r"\d+ (first|second), in work \S+:6"
    expected = {
        "wants several": r"futex: waiting in Semaphore\.acquire, inside: %s; %s" % (inside, inside),
        "wants one": r"futex: waiting for a BoundedSemaphore held by \d+ only, in work \S+:6",
        "wants signal": r"futex: waiting in Semaphore\.acquire",
        "receives": r"futex: waiting in Semaphore\.acquire",
        "wants with": r"futex: waiting in Semaphore\.acquire, holder unknown",
        "wants bare": r"futex: waiting in Semaphore\.acquire, holder unknown",
    }
    with support.Program([interpreter.exe, "-c", SEMAPHORES], env=interpreter.env) as program:
        program.line()

        def as_expected():
            told = {thread["name"]: thread["waits_for"] or "" for thread in support.dump(program.pid)["threads"]}
            return all(re.fullmatch(text, told.get(name, "")) for name, text in expected.items())
        wait_until(as_expected, 20)


SHARED = """
import multiprocessing, os, threading, time
context = multiprocessing.get_context("fork")
held, bare, recursive, elsewhere = context.Lock(), context.Lock(), context.RLock(), context.Lock()
inherited, released = context.RLock(), context.Condition(context.Lock())
def inside(lock):
    with lock:
        time.sleep(1000)
def take(lock):
    lock.acquire()
    time.sleep(1000)
def wait(condition):
    with condition:
        condition.wait()
def enter(lock):
    with lock:
        pass
def start(name, function, *args):
    threading.Thread(target=function, args=args, name=name, daemon=True).start()
inherited.acquire()
process = context.Process(target=inside, args=(elsewhere,), daemon=True)
process.start()
child = context.Process(target=enter, args=(inherited,), daemon=True)
child.start()
start("inside", inside, held)
start("bare", take, bare)
start("recursive", take, recursive)
start("waits", wait, released)
while released._sleeping_count._semlock._is_zero():
    time.sleep(0.001)
released.acquire()
for lock in held, bare, recursive, elsewhere:
    while not lock._semlock._is_zero():
        time.sleep(0.001)
start("wants held", enter, held)
start("takes held", held.acquire)
start("wants bare", enter, bare)
start("takes recursive", recursive.acquire)
start("wants elsewhere", enter, elsewhere)
start("wants released", enter, released)
print(child.pid, flush=True)
import sys
sys.stdin.read()
"""


@EACH
def test_locks_of_multiprocessing(interpreter):
    """They note who took them in this process; of other processes nobody is named."""
    expected = {
        "wants held": r"a Lock held by \d+ inside, in inside \S+:8",
        "takes held": r"a Lock held by \d+ inside, in inside \S+:8",
        "wants bare": r"SemLock\.__enter__",
        "takes recursive": r"an RLock held by \d+ recursive",
        "wants elsewhere": r"SemLock\.__enter__",
        "wants released": r"(SemLock|Condition)\.__enter__",
    }
    if interpreter.version < (3, 7):  # it is not known whether a thread has ended that had the same id
        del expected["takes recursive"]
    with support.Program([interpreter.exe, "-W", "ignore", "-c", SHARED], env=interpreter.env,
                         start_new_session=True) as program:
        child = int(program.line())

        def as_expected():
            told = {thread["name"]: thread["waits_for"] or "" for thread in support.dump(program.pid)["threads"]}
            return "SemLock.__enter__" in support.dump(child)["threads"][0]["waits_for"] and all(
                re.fullmatch("futex: waiting (for|in) " + text, told.get(name, "")) for name, text in expected.items())
        try:
            wait_until(as_expected, 20)
        finally:
            os.killpg(program.pid, signal.SIGKILL)


RUNNING = """
import sys, threading, time
sys.setswitchinterval(0.0005)
one, two, three = threading.Lock(), threading.Lock(), threading.Lock()
def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass
def keep():
    spin(0.003)
def lend():
    two.release()
    spin(0.003)
    two.acquire()
def hold():
    with three:
        while True:
            for lock, use in (one, keep), (two, lend):
                with lock:
                    use()
def borrow():
    while True:
        two.acquire()
        spin(0.002)
        two.release()
        time.sleep(0.0001)
def want(lock):
    while True:
        lock.acquire()
        lock.release()
for function, *args in (hold,), (borrow,), (want, two), (want, two), (want, three):
    threading.Thread(target=function, args=args, daemon=True, name=function.__name__ + "".join(
        str([one, two, three].index(lock)) for lock in args)).start()
print(flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 6)), ids=repr)
def test_threads_that_run(interpreter):
    """
    A thread is stopped to be sure that it holds the lock; one that soon lends it is not taken for the holder by
    what is read at different times.
    """
    with support.Program([interpreter.exe, "-c", RUNNING], env=interpreter.env) as program:
        program.line()
        named, of_two = False, []
        for _ in range(support.count(60, 1000)):
            for thread in support.dump(program.pid)["threads"]:
                if thread["name"] == "want2":
                    named |= bool(re.search(r"a Lock held by \d+ hold, in hold \S+:(1[789]|20)$", thread["waits_for"] or ""))
                elif thread["name"] == "want1" and "held by" in (thread["waits_for"] or ""):
                    of_two.append(thread["waits_for"])
        assert named and not of_two, of_two


BOTH_ORDERS = """
import threading
one, two, gate = threading.Lock(), threading.Lock(), threading.Barrier(3)
def take(first, second):
    with first:
        gate.wait()
        with second:
            pass
for name, pair in ("ab", (one, two)), ("ba", (two, one)):
    threading.Thread(target=take, args=pair, name=name, daemon=True).start()
gate.wait()
print(flush=True)
input()
"""


@pytest.fixture(scope="module")
def circle():
    newest = support.one_per_version((3, 8), (3, 13))[-1]
    with support.Program([newest.exe, "-c", BOTH_ORDERS], env=newest.env) as program:
        program.line()
        wait_until(lambda: sum("held by" in (thread["waits_for"] or "")
                               for thread in support.dump(program.pid)["threads"]) == 2, 20)
        yield program


def test_plain_locks_in_both_orders_are_a_deadlock(probing, circle, tmp_path):
    def told(*words):
        done = probing(*words)
        assert done.code == 0, done
        return done.out

    file = tmp_path / "one.snapshot"
    told(circle.pid, "snapshot", "-o", file)
    assert "! deadlock of 2 threads" in told("overview", circle.pid)
    for target in (circle.pid, file):
        out = told("script", "deadlocks", target)
        assert re.search(r"^Deadlock of 2 threads:\n  \d+ ab has waited \d+ s for the Lock of \d+ ba\n", out), out
        found = json.loads(told("skill", "run", "deadlock", target, "--json"))[1]["rows"]
        assert {row["tid"] for row in found} == {row["owner"] for row in found} and len(found) == 2


def test_the_holder_is_named_if_its_thread_is_not_shown(circle):
    threads = support.dump(circle.pid)["threads"]
    for thread in threads:
        only = support.dump(circle.pid, "--tid", str(thread["tid"]))["threads"]
        assert [each["waits_for"] for each in only if "held by" in (thread["waits_for"] or "")] in (
            [], [thread["waits_for"]])


NO_CONDITION = """
import threading, time
class Condition:
    def __init__(self):
        self._lock = threading.Lock()
    def __enter__(self):
        return self
    def __exit__(self, *_):
        pass
condition = Condition()
condition._lock.acquire()
def inside():
    with condition:
        time.sleep(1000)
for name, function in ("inside", inside), ("wants", condition._lock.acquire):
    threading.Thread(target=function, name=name, daemon=True).start()
print(flush=True)
time.sleep(1000)
"""
ASIDE = """
import threading, time
lock, release = threading.Lock(), None
def lender({argument}):
    with lock:
        {call}()
        taken.wait()
        time.sleep(1000)
def unlock():
    lock.release()
taken = threading.Event()
def borrow():
    lock.acquire()
    taken.set()
    time.sleep(1000)
for name, function in ("lender", lender), ("borrow", borrow), ("wants", lock.acquire):
    threading.Thread(target=function, name=name, daemon=True).start()
    time.sleep({pause})
print(flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("code", [
    NO_CONDITION,
    ASIDE.format(argument="", call="unlock", pause=0.3),
    ASIDE.format(argument="_release=lock.release", call="_release", pause=0.3),
], ids=["no condition", "a function", "a variable"])
@EACH
def test_who_does_not_hold_it(interpreter, code):
    with support.Program([interpreter.exe, "-c", code], env=interpreter.env) as program:
        program.line()

        def told():
            return next(each["waits_for"] or "" for each in support.dump(program.pid)["threads"] if each["name"] == "wants")
        wait_until(lambda: re.fullmatch(
            r"futex: waiting for a lock at 0x\w+(, holder unknown; possible: \d+ lender, in lender \S+:\d+)?", told()), 20)


LEFT_BEHIND = """
import os, threading, time
lock, plain = threading.RLock(), threading.Lock()
def hold():
    with lock, plain:
        time.sleep(1000)
def end():
    lock.acquire()
{holder}
while not plain.locked():
    time.sleep(0.001)
if {fork} and os.fork():
    os.waitpid(-1, 0)
print(os.getpid(), flush=True)
{wanted}.acquire()
"""
ENDS = """
thread = threading.Thread(target=end)
thread.start()
thread.join()
plain.acquire()
"""
NOBODY = r"futex: waiting for an RLock at 0x\w+ that no thread of this process holds: .*"


@pytest.mark.parametrize("wanted", ["lock", "plain"])
@pytest.mark.parametrize("fork", [True, False])
@EACH
def test_nobody_can_release_it(interpreter, fork, wanted):
    """The owner of an RLock was not copied by a fork, or has ended; a plain lock does not tell."""
    holder = "threading.Thread(target=hold, daemon=True).start()" if fork else ENDS
    code = LEFT_BEHIND.format(holder=holder, fork=fork, wanted=wanted)
    said = NOBODY if wanted == "lock" else r"futex: waiting for a lock at 0x\w+"
    with support.Program([interpreter.exe, "-W", "ignore", "-c", code], env=interpreter.env,
                         start_new_session=True) as program:
        pid = int(program.line())
        try:
            wait_until(lambda: re.fullmatch(said, support.dump(pid)["threads"][0]["waits_for"] or ""), 20)
        finally:
            os.killpg(program.pid, signal.SIGKILL)


ALONE = """
import threading, time
lock = threading.Lock()
def twice():
    with lock:
        with lock:
            pass
def again():
    lock.acquire()
threading.Thread(target=%s, name="alone", daemon=True).start()
%s
print(flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("function, then, out, trouble", [
    ("twice", "", r"A thread waits for itself:\n  \d+ alone has waited \d+ s for the Lock of \d+ alone\n",
     "! deadlock of 1 thread"),
    ("again", "again()", r"No deadlock was found, but who holds the locks of these threads is not known:\n"
     r"\d+ MainThread futex: waiting for a lock at 0x\w+$", ""),
])
def test_one_thread(probing, function, then, out, trouble):
    newest = support.one_per_version((3, 8), (3, 13))[-1]
    with support.Program([newest.exe, "-c", ALONE % (function, then)], env=newest.env) as program:
        if not then:
            program.line()
        wait_until(lambda: re.search("(?m)^" + out, probing("script", "deadlocks", program.pid).out), 20)
        assert trouble in probing("overview", program.pid).out


def place(task):
    return r", held by task %s, in use task_locks\.py:\d+" % task


TASKS = {
    "one then two": r"Lock\.acquire of 0x\w+" + place("two then one"),
    "two then one": r"Lock\.acquire of 0x\w+" + place("one then two"),
    "own": r"Lock\.acquire of 0x\w+" + place("own"),
    "wants acquired": r"Lock\.acquire of 0x\w+",
    "wants retaken": r"Lock\.acquire of 0x\w+, holder unknown; possible: task retakes, in retake task_locks\.py:\d+",
    "wants pool": r"Semaphore\.acquire of 0x\w+, inside: task pool \d, in use .*; pool \d, in use .*",
    "wants condition": r"Lock\.acquire of 0x\w+" + place("condition"),
    "waits in condition": r"Condition\.wait of 0x\w+",
}


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 8)), ids=repr)
def test_tasks(interpreter):
    with support.Program([interpreter.exe, "-W", "ignore", PROGRAMS / "task_locks.py"], env=interpreter.env) as program:
        program.line()
        rows = tables.query(program.pid, "SELECT name, waits_for, _error FROM python.tasks")
        told = {row["name"]: row["waits_for"] for row in rows}
        assert {name: told[name] for name, text in TASKS.items() if not re.fullmatch(text, told[name])} == {}, rows

# SPDX-License-Identifier: GPL-3.0-or-later
"""The holder of an object is found also if it is only the value stack of a frame, and for many objects at
once."""
import json

import support
from environment import OK

HOLDS = """
import sys
class Record(object):
    pass
def inner():
    mine = [Record()]
    print("%d" % id(mine[0]))
    yield 1
    return mine
def outer():
    yield from inner()
def produce():
    made = [Record()]
    print("%d" % id(made[0]))
    yield 1
    return made
def wait():
    print("ready")
    sys.stdout.flush()
    sys.stdin.readline()
def loop():
    for each in produce():
        wait()
def main():
    record = [Record()]
    print("%d" % id(record[0]))
    # Up to 3.10 the stack of this frame still has it afterwards.
    max(EMPTY, record, EMPTY, key=len)
    store = {"deep": {"deeper": [record]}}
    del record
    loop()
    return store
EMPTY = [0]
generators = [outer()]
next(generators[0])
main()
"""


def holders(probing, process, address):
    done = probing(process.pid, "query", "-f", "json",
                   "SELECT type, holder, _error FROM python.referrers(%s)" % address)
    assert done.code == OK, done
    rows = json.loads(done.out)
    assert not [row for row in rows if row["_error"]], rows
    return sorted((row["type"], row["holder"]) for row in rows)


def test_value_stacks(probing, interpreter):
    """A generator's delegate and a loop's iterable have holders, and not in C code."""
    with support.Program([interpreter.exe, "-c", HOLDS], env=interpreter.env) as process:
        addresses = [process.line() for _ in range(3)]
        assert process.line() == "ready"
        (inner,), (named,), (looped,) = [holders(probing, process, each) for each in addresses]
    assert inner[0] == "list" and inner[1].startswith("__main__.generators[0]."), inner
    assert named == ("list", "store['deep']['deeper'][0] in main()")
    assert looped[0] == "list" and looped[1].endswith(" in loop()"), looped


MANY = """
shared = [float("1.5")]
sessions = {"user %d" % i: [shared] for i in range(3000)}
rows = [(i, shared) for i in range(3000)]
keys = {(shared[0], i): i for i in range(100)}
print(id(shared), id(shared[0]), flush=True)
input()
"""


def test_many_in_one_container(probing, newest):
    """Each has its own way, whether it was looked for alone or with all others."""
    with support.Program([newest.exe, "-c", MANY], env=newest.env) as process:
        shared, number = process.line().split()
        of_shared = holders(probing, process, shared)
        of_number = holders(probing, process, number)
    expected = [("dict", "__main__.__dict__")]
    expected += [("list", "__main__.sessions['user %d']" % i) for i in range(3000)]
    expected += [("tuple", "__main__.rows[%d]" % i) for i in range(3000)]
    assert len(of_shared) == len(expected) and not list(set(of_shared) ^ set(expected))[:5]
    expected = [("tuple", "__main__.keys.<key (1.5, %d)>" % i) for i in range(100)]
    assert of_number == sorted([("list", "__main__.shared")] + expected), of_number[:5]

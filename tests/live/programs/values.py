# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of all kinds in three frames; prints their repr(), then waits."""
import collections
import json
import sys


class Plain(object):
    def __init__(self):
        self.x = 1


def outer(positional, optional='opt', *args, **keywords):
    shared = [1, 2]
    rebound = 'before'
    plain = Plain()
    alone = [3]  # noqa: F841

    def inner(argument):
        nonlocal rebound
        rebound = 'caf\xe9 \u4e2d \U0001f600'
        number = 2 ** 100
        mapping = {'a': (1,), 'b': collections.OrderedDict(x=None)}
        gone = 1
        del gone
        taken = shared
        tell(argument, number, mapping, taken)
        later = 1
        return later

    def tell(argument, number, mapping, taken):
        expected = {
            "inner": {
                "argument": ["argument", repr(argument)],
                "number": ["local", repr(number)],
                "mapping": ["local", repr(mapping)],
                "taken": ["local", repr(taken)],
                "gone": ["local", None],
                "later": ["local", None],
                "shared": ["free", repr(shared)],
                "rebound": ["free", repr(rebound)],
            },
            "outer": {
                "positional": ["argument", repr(positional)],
                "optional": ["argument", repr(optional)],
                "args": ["argument", repr(args)],
                "keywords": ["argument", repr(keywords)],
                "shared": ["cell", repr(shared)],
                "rebound": ["cell", repr(rebound)],
                "plain": ["local", "<__main__.Plain x=1>"],
                "alone": ["local", "[3]"],
            },
            "<module>": {
                "top": ["name", repr(top)],
                "Plain": ["name", repr(Plain)],
                "outer": ["name", repr(outer)],
            },
        }
        sys.stdout.write(json.dumps(expected) + "\n")
        sys.stdout.flush()
        sys.stdin.read()

    inner((3.5, b'bytes'))


top = frozenset([7])
outer(-1, 'other', 2, 3, key=None)

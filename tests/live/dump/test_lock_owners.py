# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds a plain lock: the thread that is inside of a `with` statement of it, or nobody is named."""
import json
import re

import pytest

import support
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

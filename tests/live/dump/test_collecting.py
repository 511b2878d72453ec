# SPDX-License-Identifier: GPL-3.0-or-later
"""Which thread collects garbage, while a finaliser or callback of the collection waits."""
import contextlib
import json

import pytest

import support
import tables
from environment import PROGRAMS, wait_until

# Builds without a GIL have no lists whose heads are on the stack.
EACH = pytest.mark.parametrize(
    "interpreter", [i for i in support.INTERPRETERS if not i.free_threaded], ids=repr)
HOW = pytest.mark.parametrize("how", ["finaliser", "callback", "automatic"])


@contextlib.contextmanager
def blocked(interpreter, how):
    with support.Program([interpreter.exe, PROGRAMS / "blocked_collection.py", how],
                         env=interpreter.env) as program:
        assert program.line() == "ready"
        wait_until(lambda: "futex" in (by_name(support.dump(program.pid))["collector"]["waits_for"]
                                       or ""), 60)
        yield program


def by_name(found):
    return {thread["name"]: thread for thread in found["threads"]}


EXPECTED = {"MainThread": False, "collector": True, "busy": False}


@EACH
@HOW
def test_the_thread_that_collects(interpreter, how, probing, tmp_path):
    """Not the GIL holder; in a dump, in its text, in SQL and in a snapshot."""
    with blocked(interpreter, how) as program:
        for options in (), ("--freeze",), ("--nonblocking",):
            found = by_name(support.dump(program.pid, *options))
            assert {n: t["gc"] for n, t in found.items()} == EXPECTED, found
        text = probing("-p", program.pid, "debug", "--dump").out
        line, = [line for line in text.splitlines() if line.endswith("collecting garbage")]
        assert " collector " in line, text
        path = tmp_path / "blocked.snapshot"
        assert probing("-p", program.pid, "snapshot", "-o", path).code == 0
        for target in program.pid, path:
            rows = probing("-t", target, "query", "-f", "json",
                           "SELECT name, gc FROM python.threads")
            assert {r["name"]: bool(r["gc"]) for r in json.loads(rows.out)} == EXPECTED, rows
            found = by_name(support.dump(target))
            assert {n: t["gc"] for n, t in found.items()} == EXPECTED, found


def test_the_thread_that_collects_in_a_core(newest, tmp_path):
    core, _ = tables.kernel_core(newest, PROGRAMS / "blocked_collection.py", "finaliser",
                                 folder=tmp_path)
    found = by_name(support.dump(core))
    assert {n: t["gc"] for n, t in found.items()} == EXPECTED, found

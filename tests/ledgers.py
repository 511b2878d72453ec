# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of the tests that may be skipped (skips.txt) or run twice (quarantine.txt), with the reasons.

A line of both is `A | B`, with `*` for any text; empty lines and lines that begin with # are ignored.
"""

import os
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent
# With CI=1, nothing of these may be missing.
REQUIRED = ("install-deps", "make")
PROVIDERS = (*REQUIRED, "package", "interpreters", "debuggers", "root", "kernel", "processor", "never")
# The exit status of a run in which only tests failed that may be run again.
AGAIN = 10


def rows(name):
    """(left, right) of each line of a list."""
    for line in (HERE / name).read_text(encoding="utf-8").split("\n"):
        if line and not line.startswith("#"):
            left, right = line.split(" | ", 1)
            yield left.strip(), right.strip()


def matches(pattern, text):
    """True if a text matches a pattern with `*`."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text, re.S) is not None


def skips():
    """[(provider, reason)]"""
    return list(rows("skips.txt"))


def quarantine():
    """[(test, reason)]; tests of this file have a list of their own."""
    return list(rows(os.environ.get("PROBING_QUARANTINE", "quarantine.txt")))


def listed(reason):
    """The reason as in the list, without the parts that differ between tests."""
    return next((text.replace("*", "…") for _, text in skips() if matches(text, reason)), reason)


def wrong_skip(reason, strict):
    """The fault of a skip for that reason, or None. @strict: tools that CI has may not be missing."""
    provider = next((provider for provider, listed in skips() if matches(listed, reason)), None)
    if not provider:
        return "this reason is not in tests/skips.txt"
    if strict and provider in REQUIRED:
        return "CI has to have this (%s)" % provider
    return None


def strict():
    """Whether this is a run of continuous integration."""
    return os.environ.get("PROBING_CI", "") not in ("", "0")


def quarantined(test):
    """The reason why a test, by its node id without folders, may fail once; None if it may not."""
    file, _, rest = test.partition("::")
    name = "%s::%s" % (file.rsplit("/", 1)[-1], rest)
    return next((reason for listed, reason in quarantine() if matches(listed, name)), None)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Counts of each part of a test run, for the closing line of tests/tools/check.

A part writes one file into the folder $PROBING_RESULTS; without that variable, nothing."""

import collections
import json
import os
import pathlib

# Not inherited by processes of a test: they would count too.
FOLDER = os.environ.pop("PROBING_RESULTS", None)


class Counts:
    """Number of passed tests, names of the failed ones, and number of skipped ones by reason."""

    def __init__(self):
        self.passed, self.failed, self.skipped = 0, [], collections.Counter()
        self.again = []  # names of failed tests that were run again

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.again += other.again

    def write(self, part):
        """Stores them for the caller of this part."""
        if FOLDER:
            path = pathlib.Path(FOLDER) / ("%s-%d.json" % (part, os.getpid()))
            path.write_text(json.dumps(vars(self)), encoding="utf-8")


def read(path):
    """The counts of one file."""
    counts = Counts()
    for name, value in json.loads(path.read_text(encoding="utf-8")).items():
        setattr(counts, name, collections.Counter(value) if name == "skipped" else value)
    return counts


def closing(counts):
    """The lines that a run ends with."""
    for name in counts.failed:
        yield "FAILED %s" % name
    skipped = sum(counts.skipped.values())
    yield "%d passed, %d failed, %d skipped" % (counts.passed, len(counts.failed), skipped)
    for reason, number in sorted(counts.skipped.items()):
        yield "  %4d skipped: %s" % (number, reason)
    for name in counts.again:
        if name not in counts.failed:
            yield "  failed once, and passed when it was run again: %s" % name

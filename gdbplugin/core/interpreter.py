# SPDX-License-Identifier: GPL-3.0-or-later
"""What the threads that run Python wait for, and which of them holds the GIL."""

_PYTHON = "SELECT free_threaded FROM process.info"
_THREADS = "SELECT tid, waits_for, gil, gc FROM python.threads"


class Thread:
    def __init__(self, tid, waits, gil, collects):
        self.tid, self.waits, self.gil, self.collects = tid, bool(waits), gil, bool(collects)
        # For a lock of C, which no object of Python explains.
        self.waits_in_c = (waits or "").startswith("futex: a lock or condition")


def read_threads(session):
    """All threads that run Python."""
    return [Thread(row["tid"], row["waits_for"], row["gil"], row["gc"]) for row in session.query(_THREADS)]


def is_free_threaded(session):
    return any(row["free_threaded"] for row in session.query(_PYTHON))


def holder(threads):
    """The thread that holds the GIL; None if none does."""
    return next((thread.tid for thread in threads if thread.gil == "holds"), None)

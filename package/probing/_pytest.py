# SPDX-License-Identifier: GPL-3.0-or-later
"""Plugin of pytest, `-p probing`: SIGTERM fails the running test where it is, and ends the session.

`probing run` and many CI systems send SIGTERM to a run that hangs. Without the plugin, pytest dies of it: there is no
failed test, no summary and no file for the CI system."""

import signal
import threading

import pytest

REASON = "ended by SIGTERM"


class Plugin:
    """One session."""

    def __init__(self):
        self.session = self.item = None
        self.running = {}  # nodeid: location; of a controller of xdist, those of all workers
        self.caught = False

    def pytest_sessionstart(self, session):
        """A handler of the program's own stays."""
        self.session = session
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self.ended)
            self.caught = True

    def pytest_sessionfinish(self):
        """What comes now ends the process."""
        if self.caught:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def pytest_runtest_logstart(self, nodeid, location):
        """Also of a worker's test."""
        self.running[nodeid] = location

    def pytest_runtest_logfinish(self, nodeid):
        """Also of a worker's test."""
        self.running.pop(nodeid, None)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        """Its setup, call and teardown."""
        self.item = item
        yield
        self.item = None

    def ended(self, number, _frame):
        """The handler, in the main thread: the test ends at the line where it is. The next signal is not caught."""
        signal.signal(number, signal.SIG_DFL)
        tests = ", ".join(self.running) or "no test"
        self.session.shouldstop = "%s in %s" % (REASON, tests)
        if self.item is not None:
            pytest.fail("%s in %s" % (REASON, self.item.nodeid))
        pytest.exit("%s in %s" % (REASON, tests))

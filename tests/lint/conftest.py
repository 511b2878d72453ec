# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the pages and the rules are skipped for listed reasons only."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import pytest  # noqa: E402

import verdict  # noqa: E402


@pytest.fixture(autouse=True)
def not_counted(monkeypatch):
    """What a test runs of its own is no part of this run's results."""
    monkeypatch.delenv("PROBING_RESULTS", raising=False)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call):
    verdict.skip_without_tool(call)


def pytest_runtest_logreport(report):
    verdict.note(report)


def pytest_sessionfinish(session):
    # One of pytest-xdist's workers judges nothing.
    if not hasattr(session.config, "workeroutput"):
        session.exitstatus = verdict.status(session.exitstatus)


def pytest_terminal_summary(terminalreporter):
    for line in verdict.lines():
        terminalreporter.write_line(line)

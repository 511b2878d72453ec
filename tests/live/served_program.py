# SPDX-License-Identifier: GPL-3.0-or-later
"""A program that can be paused and changed, and a gateway of it that may: fixtures of a module."""

import pytest

import support
from gateway_client import Gateway

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
PROGRAM = [NEWEST.exe, support.HERE / "programs" / "web_debugged.py"]


@pytest.fixture(scope="module")
def program():
    with support.Program(PROGRAM) as running:
        assert running.line() == "ready"
        yield running


@pytest.fixture(scope="module")
def gateway(program):
    with Gateway(program.pid, "--allow-write") as running:
        yield running

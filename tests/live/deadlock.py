# SPDX-License-Identifier: GPL-3.0-or-later
"""A program whose two threads wait for each other's locks, for the module that imports the fixture."""

import pytest
import support
from gateway_client import wait_until

SOURCE = """
import threading
one, two, gate = threading.RLock(), threading.RLock(), threading.Barrier(3)
def take(first, second):
    with first:
        gate.wait()
        with second:
            pass
for pair in ((one, two), (two, one)):
    threading.Thread(target=take, args=pair, daemon=True).start()
gate.wait()
print(flush=True)
input()
"""


def waits(pid):
    _, *others = support.dump(pid)["threads"]
    return len(others) == 2 and all("RLock" in (thread["waits_for"] or "") for thread in others)


@pytest.fixture(scope="module")
def deadlocked():
    newest = support.one_per_version((3, 8), (3, 13))[-1]
    with support.Program([newest.exe, "-c", SOURCE]) as program:
        program.line()
        wait_until(lambda: waits(program.pid), "its threads do not wait for each other")
        yield program

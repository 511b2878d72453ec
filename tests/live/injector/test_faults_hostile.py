# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault matrix: targets of another user that try to harm root. The command ends with a clear error,
the files of root are unchanged, and no other process notices."""
import os

import pytest

import agent
import faults
import support
from environment import FAILED, NO_PROCESS, TIMEOUT, UNSUPPORTED
from faults import RUNS, Cell, Hostile

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="root is the one that is attacked")
ENDS = (FAILED, UNSUPPORTED, TIMEOUT, NO_PROCESS)


@pytest.fixture
def secret(open_folder):
    """A file of root's in a folder that everybody may enter."""
    file = open_folder / "secret"
    file.write_text("root's own\n")
    file.chmod(0o600)
    return file


@pytest.fixture
def bystander():
    """A process of root's that sleeps, and counts how often it is woken."""
    with support.Program(["sh", "-c", "echo ready; exec sleep 600"]) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "nanosleep")
        yield process.pid


@pytest.mark.parametrize("kind, name", [
    ("copies", "dlopen() loads nothing"), ("memfd", "memfd_create() gives another file"),
    ("dup", "descriptors are replaced all the time"), ("fork", "forks all the time"),
    ("tid", "claims a thread of another process")])
def test_hostile_targets(build, secret, bystander, kind, name):
    cell = Cell("hostile: " + name)
    before = agent.switches(bystander, bystander)
    with Hostile(build, kind, bystander if kind == "tid" else secret) as target:
        for _ in range(RUNS):
            code, _, err = faults.inject(target.pid, build.library())
            assert code in ENDS and err.startswith("probing: "), (code, err)
            cell.run("refused", err)
            assert secret.read_text() == "root's own\n"
            look = faults.Look(target.pid)
            assert not look.traced and not look.stopped
        target.wait_for_progress()
    assert agent.switches(bystander, bystander) == before
    cell.assert_refused()
    cell.passed()

# SPDX-License-Identifier: GPL-3.0-or-later
"""Root injects a process of another user, which tries to harm root through that."""
import os

import pytest

import agent
import faults
import support
from environment import FAILED, OK, UNSUPPORTED, needs
from faults import Hostile
from sockets_support import ATTACKER

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="root is the one that is attacked")


@pytest.fixture
def roots(open_folder):
    """A folder that everybody may enter, with files that only root may read and write."""
    file = open_folder / "secret"
    file.write_text("root's own\n")
    file.chmod(0o600)
    os.mkfifo(open_folder / "fifo", 0o600)
    return open_folder


@pytest.mark.parametrize("name", ["secret", "fifo"])
def test_the_memory_file_is_another_file(build, roots, name):
    """The descriptor that memfd_create() returns is chosen by the target: an arbitrary file there is not
    opened."""
    with Hostile(build, "memfd", roots / name) as target:
        code, _, err = faults.inject(target.pid, build.library())
        assert code == UNSUPPORTED and "does not allow memfd_create()" in err, (code, err)
    assert (roots / "secret").read_text() == "root's own\n"


def test_descriptors_are_replaced_all_the_time(build, roots):
    """As above, where a thread of the target does it at any moment."""
    with Hostile(build, "dup", roots / "secret") as target:
        for _ in range(support.count(10, 100)):
            code, _, err = faults.inject(target.pid, build.library())
            assert code == FAILED and "cannot load" in err, (code, err)
            assert (roots / "secret").read_text() == "root's own\n"


def test_the_new_thread_is_one_of_another_process(build):
    """The number of the thread that helps is the target's word, too: no other process is stopped."""
    with support.Program(["sh", "-c", "echo ready; exec sleep 600"]) as bystander:
        assert bystander.line() == "ready"
        support.wait_for_sleep(bystander.pid, "nanosleep")
        before = agent.switches(bystander.pid, bystander.pid)
        with Hostile(build, "tid", bystander.pid) as target:
            code, _, err = faults.inject(target.pid, build.library())
            assert code != OK and err.strip(), (code, err)
        assert agent.switches(bystander.pid, bystander.pid) == before
        assert support.thread_status(bystander.pid)["TracerPid"] == "0"


class Chrooted(Hostile):
    """A target of the attacker below a root folder of its own, without /proc."""

    SCRIPT = 'touch "$0/shared" && mount --bind "$1" "$0/shared" && shift && exec chroot ' \
        '--userspec=%d:%d --groups= "$0" /program /shared "$@"' % (ATTACKER, ATTACKER)

    def __init__(self, root, *words):
        self.shared = support.Shared()
        os.chmod(self.shared.path, 0o666)
        self.target = support.Program(
            ["unshare", "-m", "sh", "-c", self.SCRIPT, root, self.shared.path, *words])
        assert self.target.line() == "ready"
        self.pid = self.target.pid


HAS_MOUNTS = needs("no mount namespaces here", "unshare", "-m", "mount", "-t", "tmpfs", "none", "/tmp")


@HAS_MOUNTS
def test_a_copy_goes_through_no_link(build, roots):
    """All folders for a copy are links to a folder of root's, outside of the target's root."""
    root, private = roots / "root", roots / "private"
    private.mkdir(0o700)
    faults.make_root(root, build.program("hostile"))
    (root / "tmp").rmdir()
    for folder in ("dev", "var"):
        (root / folder).mkdir()
    for link in ("tmp", "dev/shm", "var/tmp", "run"):
        (root / link).symlink_to(private)
    before = private.stat().st_mtime_ns
    with Chrooted(root, "copies", "-") as target:
        code, _, err = faults.inject(target.pid, build.library())
        assert code == FAILED and "cannot load" in err, (code, err)
        assert private.stat().st_mtime_ns == before


@HAS_MOUNTS
@pytest.mark.parametrize("mode, codes", [(0o1777, OK), (0o755, FAILED)], ids=["may", "may-not"])
def test_a_copy_is_made_with_the_rights_of_the_target(build, roots, mode, codes):
    root = roots / "root"
    faults.make_root(root, build.program("fault_places"))
    (root / "tmp").chmod(mode)
    with Chrooted(root, "idle") as target:
        before = (root / "tmp").stat().st_mtime_ns
        code, out, err = faults.inject(target.pid, build.library())
        assert code == codes, (code, err)
        assert ((root / "tmp").stat().st_mtime_ns != before) == (code == OK)
        assert code or out["way"] == "from a copy", out
        assert not list((root / "tmp").glob("probing-[0-9]*-*"))

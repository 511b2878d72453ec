# SPDX-License-Identifier: GPL-3.0-or-later
"""Root reads a program of another user, which names files that its user may not read, that are no files, or
that lie outside of its root."""
import os
import shutil
import stat
import subprocess

import pytest

import remote
import support
from environment import OK, PERMISSION
from files_support import (  # noqa: F401 (fixtures)
    FRAME, GROUP, USER, Openings, folder, needs_root, program, run, sources, theirs, write)

pytestmark = needs_root
SECRET = b"only root may read this line\n"
PUBLIC = b"print('ready', flush=True); sys.stdin.read()  # a line for all\n"


def dump_of(path, **options):
    with program(FRAME, str(path), **options) as process:
        return support.dump(process.pid, "--source")


def test_source_of_its_user_is_read(theirs):
    path = write(theirs / "own.py", PUBLIC, 0o600, USER, USER)
    dump = dump_of(path)
    assert PUBLIC.decode().strip() in sources(dump) and not dump["warnings"]


def test_source_of_its_groups_is_read(folder):
    path = write(folder / "group.py", PUBLIC, 0o640, 0, GROUP)
    assert PUBLIC.decode().strip() in sources(dump_of(path))


def test_source_that_only_root_may_read(folder):
    path = write(folder / "secret", SECRET, 0o600)
    dump = dump_of(path)
    assert not sources(dump)
    assert dump["warnings"] == [
        "source lines are left out: with the rights of user %d: cannot open %s: Permission denied"
        % (USER, path)]


def test_source_in_a_folder_of_root(folder):
    (folder / "private").mkdir(mode=0o700)
    path = write(folder / "private" / "readable", SECRET, 0o644)
    dump = dump_of(path)
    assert not sources(dump) and "Permission denied" in dump["warnings"][0]


def test_link_to_a_file_of_root(folder, theirs):
    secret = write(folder / "secret", SECRET, 0o600)
    os.symlink(secret, theirs / "link.py")
    assert not sources(dump_of(theirs / "link.py"))


IN_ROOT = """
import os, sys
os.chroot(sys.argv[2])
os.chdir("/")
os.setgroups([])
os.setgid(int(sys.argv[3]))
os.setuid(int(sys.argv[3]))
""" + FRAME


@pytest.mark.parametrize("user", [0, USER], ids=["root", "user"])
@pytest.mark.parametrize("link", ["/outside.py", "../../outside.py", "{folder}/outside.py"])
def test_links_do_not_leave_the_root(folder, user, link):
    """Of a container: its root has a file at that path, or it has none."""
    outside = write(folder / "outside.py", b"a line outside of the root\n")
    root = folder / "root"
    (root / "deep").mkdir(parents=True)
    write(root / "outside.py", PUBLIC)
    target = link.format(folder=folder)
    os.symlink(target, root / "deep" / "link.py")
    with program(IN_ROOT, "/deep/link.py", str(root), str(user), user=0, group=0) as process:
        found = sources(support.dump(process.pid, "--source"))
    assert found == ([PUBLIC.decode().strip()] if target != str(outside) else [])


@pytest.mark.skipif(not shutil.which("gcore"), reason="gcore is not installed")
@pytest.mark.parametrize("owner, shown", [(0, [SECRET.decode().strip()]), (USER, [])],
                         ids=["root", "user"])
def test_core_names_a_file_of_root(folder, owner, shown):
    """The paths in a core file are the word of whom it belongs to."""
    secret = write(folder / "secret", SECRET, 0o600)
    with program(FRAME, str(secret)) as process:
        subprocess.run(["gcore", "-o", folder / "core", str(process.pid)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        core = folder / ("core.%d" % process.pid)
        os.chown(core, owner, owner)
        assert sources(support.dump(core, "--source")) == shown


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFCHR])
def test_what_is_no_file_is_never_opened(folder, theirs, kind):
    special, plain = theirs / "special", write(theirs / "plain.py", PUBLIC)
    try:
        os.mknod(special, kind | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("no device may be made here")
    os.chown(special, USER, USER)
    with Openings(special, plain) as openings:
        dump_of(plain)
        assert openings.opened() == {plain}
        dump = dump_of(special)
        assert openings.opened() == set()
    assert dump["warnings"] == ["source lines are left out: %s is not a regular file" % special]


def test_server_of_another_user_gives_no_source(theirs):
    path = write(theirs / "own.py", PUBLIC, 0o644, USER, USER)
    with program(FRAME, str(path)) as process, remote.Service(process.pid) as service:
        plain = service.run("debug", "--dump")
        assert plain.returncode == OK, plain
        refused = service.run("debug", "--dump", "--source")
        assert refused.returncode == PERMISSION and not refused.stdout, refused
        assert b"--source is not for clients: process %d runs as user %d" % (
            process.pid, USER) in refused.stderr

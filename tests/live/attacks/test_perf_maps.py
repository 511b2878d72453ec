# SPDX-License-Identifier: GPL-3.0-or-later
"""Files with names for code that was made at run time, which another user has put there."""
import os
import platform
import subprocess

import pytest

import profiles
import support
from files_support import AS_USER, USER, folder, needs_root

pytestmark = [needs_root, pytest.mark.skipif(platform.machine() != "x86_64",
                                             reason="the code is for x86_64")]
SOURCE = support.HERE / "programs" / "profiled_native.c"
OTHER = USER + 1
ALL = "0 7fffffffffff "


@pytest.fixture
def target(folder):
    """A program of the user that runs code that it has made; (the process, its file)."""
    program = folder / "program"
    subprocess.run(["gcc", "-O2", "-pthread", "-DPROGRAM", "-o", program, SOURCE, "-ldl"],
                   check=True)
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, **AS_USER)
    path = "/tmp/perf-%d.map" % process.pid
    process.stdin.write(b"made 0\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"ready\n"
    assert process.stdout.readline().startswith(b"made ")
    yield process, path
    process.kill()
    process.communicate()
    if os.path.isdir(path):
        os.rmdir(path)
    elif os.path.lexists(path):
        os.unlink(path)


def put(path, text, owner, mode=0o644):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(descriptor, text.encode())
    os.fchown(descriptor, owner, owner)
    os.fchmod(descriptor, mode)
    os.close(descriptor)


def names(process):
    """Of all functions; the recording takes as long as it should, and its stacks are whole."""
    result = profiles.repeated(lambda: profiles.profile(process.pid, "--cc", "--duration", "500ms"),
                               lambda found: found["weight_ns"] and found["cost"]["stops"] > 2)
    found = {row["func"]: row for row in result["functions"]}
    assert found["main"]["total_ns"] == result["weight_ns"] > 0
    return set(found)


def test_their_own(target):
    process, path = target
    put(path, ALL + "theirs\n", USER)
    assert "theirs" in names(process)


@pytest.mark.parametrize("owner, mode", [(OTHER, 0o644), (USER, 0o666)], ids=["other", "writable"])
def test_written_by_others(target, owner, mode):
    process, path = target
    put(path, ALL + "planted\n", owner, mode)
    assert "planted" not in names(process)


def test_link_to_a_secret(target, folder):
    process, path = target
    secret = folder / "secret"
    put(secret, ALL + "secret\n", 0, 0o600)
    os.symlink(secret, path)
    os.lchown(path, USER, USER)
    assert "secret" not in names(process)


@pytest.mark.parametrize("kind", ["fifo", "folder", "device"])
def test_no_file(target, kind):
    process, path = target
    if kind == "fifo":
        os.mkfifo(path, 0o600)
        os.chown(path, USER, USER)
    elif kind == "folder":
        os.mkdir(path)
    else:
        os.symlink("/dev/zero", path)
    names(process)


def test_huge(target):
    """A map that claims a tebibyte, most of it one line."""
    process, path = target
    put(path, ALL + "huge\n", USER)
    os.truncate(path, 1 << 40)
    assert "huge" in names(process)


def test_names_that_a_terminal_obeys(probing, target, tmp_path):
    process, path = target
    file = tmp_path / "run.collapsed"
    put(path, ALL + "a\x1b]0;b\x07\x7f;c 1\n" + "x" * 100000, USER)
    text, other = [profiles.repeated(lambda more=more: probing(process.pid, "perf", "-C", "-d", "500ms", *more),
                                     lambda found: profiles.has_samples(found.out)) for more in ((), ("-o", file))]
    assert other.code == 0
    lines = file.read_text().splitlines()
    assert text.code == 0 and "]0" in text.out
    for control in "\x1b\x07\x7f":
        assert control not in text.out and control not in file.read_text()
    assert any(r"]0\x3bb" in line for line in lines)

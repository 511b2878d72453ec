# SPDX-License-Identifier: GPL-3.0-or-later
"""Attacks of another user on crash records: the folder that root's process writes to, and files that root
lists and reads."""
import os
import signal
import struct
import subprocess

import pytest

import support
from conftest import PROGRAMS
from environment import OK
from files_support import (  # noqa: F401 (fixtures)
    AS_USER, PYTHON, USER, folder, give, needs_root, theirs, write)

pytestmark = needs_root
EVIL = b"\x1b]0;owned\x07\x1b[2J\xe2\x80\xae"


@pytest.fixture
def dying(target, newest):
    return target("crashing.py", interpreter=newest)


def die(process):
    process.send(b"main SIGABRT\n")
    assert process.line() == "dying"
    code, errors = process.wait()
    assert code == -signal.SIGABRT
    return errors


@pytest.mark.parametrize("what", ["folder", "link", "file"])
def test_a_folder_that_is_not_ours_is_refused(dying, probing, folder, theirs, what):
    place = folder / "crashes"
    if what == "folder":
        place.mkdir()
        give(place)
    elif what == "link":
        place.symlink_to(theirs)
    else:
        give(place) if place.write_bytes(b"") else None
    done = probing(dying.pid, "inject", "-c", "-D", "crash.folder=%s" % place)
    assert done.code != OK and "no folder for crash records" in done.err, done
    assert "probing" not in die(dying) and not list(theirs.iterdir())


def test_a_folder_that_is_exchanged_later_gets_nothing(dying, probing, folder, theirs):
    place = folder / "crashes"
    assert probing(dying.pid, "inject", "-c", "-D", "crash.folder=%s" % place).code == OK
    place.rename(folder / "before")
    place.symlink_to(theirs)
    assert "no crash record could be written" in die(dying)
    assert not list(theirs.iterdir()) and not list((folder / "before").iterdir())


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775, 0o722])
def test_a_folder_that_is_open_to_others_stays_so_and_is_refused(dying, probing, folder, mode):
    """As /tmp: others need it as it is, and could put something in the place of a record."""
    place = folder / "crashes"
    place.mkdir()
    place.chmod(mode)
    done = probing(dying.pid, "inject", "-c", "-D", "crash.folder=%s" % place)
    assert done.code != OK and "no folder for crash records" in done.err, done
    assert "others may write to %s (mode %o)" % (place, mode) in done.err, done
    assert place.stat().st_mode & 0o7777 == mode
    assert "probing" not in die(dying) and not list(place.iterdir())


@pytest.mark.parametrize("mode", [0o755, 0o700, 0o500])
def test_a_folder_that_is_there_keeps_its_mode(dying, probing, folder, mode):
    place = folder / "crashes"
    place.mkdir()
    place.chmod(mode)
    assert probing(dying.pid, "inject", "-c", "-D", "crash.folder=%s" % place).code == OK
    die(dying)
    path, = place.glob("crash-*.core")
    assert place.stat().st_mode & 0o7777 == mode
    assert path.stat().st_mode & 0o777 == 0o600 and path.stat().st_uid == 0


def test_others_can_read_nothing(dying, probing, folder):
    """Of a folder that was made for it."""
    place = folder / "crashes"
    assert probing(dying.pid, "inject", "-c", "-D", "crash.folder=%s" % place).code == OK
    die(dying)
    path, = place.glob("crash-*.core")
    done = subprocess.run([PYTHON, "-c", "import os, sys; os.listdir(sys.argv[1])", place],
                          stderr=subprocess.PIPE, check=False, **AS_USER)
    assert b"PermissionError" in done.stderr
    assert path.stat().st_mode & 0o777 == 0o600 and path.stat().st_uid == 0


def note(owner, kind, data):
    owner += b"\0"
    return struct.pack("<III", len(owner), len(data), kind) + owner.ljust(
        -(-len(owner) // 4) * 4, b"\0") + data.ljust(-(-len(data) // 4) * 4, b"\0")


def core(*facts):
    notes = b"".join(note(b"PROBING", 1, name + b"\0" + text) for name, text in facts)
    notes += note(b"CORE", 1, struct.pack("<iii", 6, 0, 0).ljust(12, b"\0") + struct.pack("<H", 6).ljust(
        20, b"\0") + struct.pack("<i", 42).ljust(80, b"\0") + bytes(224))
    head = b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return head + struct.pack("<IIQQQQQQ", 4, 0, 120, 0, 0, len(notes), 0, 4) + notes


def test_hostile_records_are_listed_without_harm(probing, folder, theirs):
    secret = folder / "secret"
    secret.write_bytes(b"only root may read this line\n")
    secret.chmod(0o600)
    (theirs / "crash-1-2.core").symlink_to(secret)
    os.mkfifo(theirs / "crash-2-2.core")
    (theirs / "crash-3-2.core").write_bytes(b"\x7fELF" + b"\xff" * 4000)
    (theirs / "crash-99999999999999999999999-2.core").write_bytes(b"")
    (theirs / "crash-4-2.core").write_bytes(core(
        (b"crash", b"tid=" + b"9" * 60 + b"\nsignal=-1\nseconds=x"), (b"exception", EVIL * 50),
        (b"cmdline", EVIL + b"\0" + EVIL), (b"maps", b"0-ffffffffffffffff rwxp 0 0:0 0 /x\n" * 9)))
    (theirs / "crash-5-2.core").write_bytes(core(*[(b"fd/%d" % n, b"x") for n in range(70000)]))
    for path in theirs.iterdir():
        if path.is_file() and not path.is_symlink():
            give(path)
    for words in ([], ["--json"]):
        done = probing("crashes", theirs, *words)
        assert done.code == OK, done
        for bad in ("\x1b", "\x07", "\u202e", "only root"):
            assert bad not in done.out + done.err, done
        assert "crash-4-2.core" in done.out and "crash-1-2.core" not in done.out
        assert "crash-2-2.core" not in done.out


def test_root_looks_at_its_own_records_only(probing, theirs):
    records = theirs / "probing" / "crashes"
    records.mkdir(parents=True)
    for path in (records, records.parent):
        give(path)
    give(records / "crash-7-2.core") if (records / "crash-7-2.core").write_bytes(core()) else None
    done = probing("crashes", env={"XDG_STATE_HOME": str(theirs), "HOME": str(theirs),
                                   "PROBING_DATA_DIR": str(theirs / "probing")})
    assert done.code == OK and "crash-7-2.core" not in done.out, done


def test_a_user_records_for_itself(probing, theirs, newest):
    """The folder of a process belongs to the user that the process runs as."""
    if not os.access(support.BINARY, os.X_OK) or str(newest.exe).startswith("/root"):
        pytest.skip("needs root, subprocess with user= (3.9), and a Python that every user may run")
    program = write(theirs / "crashing.py", (PROGRAMS / "crashing.py").read_bytes())
    with support.Program([PYTHON, program], env={"HOME": "/"}, **AS_USER) as process:
        assert process.line() == "ready"
        assert probing(process.pid, "inject", "-c", "-D", "crash.folder=%s/crashes" % theirs).code == OK
        die(process)
    path, = (theirs / "crashes").glob("crash-*.core")
    assert path.stat().st_uid == USER and path.parent.stat().st_uid == USER

# SPDX-License-Identifier: GPL-3.0-or-later
"""Root reads the rings of another user, who chose every folder, link, file and byte."""
import json
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

import support
from environment import OK
from files_support import (  # noqa: F401 (fixtures)
    USER, folder, give, needs_root, program, run, theirs, write)

pytestmark = needs_root
PACKAGE = Path(__file__).resolve().parents[3] / "package"
AGENT = Path(support.BINARY).with_name("libprobing-agent.so")
SECRET = b"only root may read this\n"
DEAD = 4194299  # above any pid that this machine gives
BASE = Path("/tmp/probing-%d" % USER)

WRITER = """
import sys
sys.path.insert(0, sys.argv[1])
import probing
table = probing.table("mine", {"number": int, "text": str})
for number in range(10):
    table.append(number, "row")
print("ready", flush=True)
sys.stdin.read()
"""

# Maps a file that it can have written anything to, and then puts something else in its place.
MAPPER = """
import mmap, os, sys
path, link = sys.argv[1:]
with open(path, "r+b") as file:
    held = mmap.mmap(file.fileno(), 0)
if link == "fifo":
    os.unlink(path)
    os.mkfifo(path)
elif link:
    os.unlink(path)
    os.symlink(link, path)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def package(folder):
    """Copies that every user may read."""
    for path in PACKAGE.rglob("*.py"):
        place = folder / "package" / path.relative_to(PACKAGE)
        place.parent.mkdir(parents=True, exist_ok=True)
        write(place, path.read_bytes())
    write(folder / AGENT.name, AGENT.read_bytes(), 0o755)
    return folder / "package"


@pytest.fixture
def base():
    """The folder of all processes of the user."""
    shutil.rmtree(BASE, ignore_errors=True)
    BASE.mkdir(mode=0o700)
    yield give(BASE)
    shutil.rmtree(BASE, ignore_errors=True)


@pytest.fixture
def left(base):
    """That of an ended process."""
    path = base / ("%d-1" % DEAD)
    path.mkdir(mode=0o700)
    return give(path)


@pytest.fixture
def ring(package, base):
    """The content of a good ring."""
    environment = {"PROBING_AGENT": str(package.parent / AGENT.name), "PATH": os.environ["PATH"]}
    with program(WRITER, str(package), env=environment) as process:
        made, = base.glob("%d-*/user.mine.ring" % process.pid)
        sql = "SELECT count(*) AS n, max(number) AS last FROM user.mine"
        done = run(process.pid, "query", "-f", "json", sql)
        assert (done.returncode, json.loads(done.stdout)) == (OK, [{"n": 10, "last": 9}])
        content = made.read_bytes()
    done = run(process.pid, "query", "-f", "json", sql)
    assert json.loads(done.stdout) == [{"n": 10, "last": 9}]
    assert str(made.parent) in done.stderr.decode()
    return content


def ask(target, sql="SELECT * FROM user.mine", **options):
    """Never an answer with root's file, a signal or raw control characters."""
    done = run(target, "query", "-f", "json", sql, timeout=60, **options)
    assert done.returncode >= 0 and SECRET.strip() not in done.stdout + done.stderr
    assert b"\x1b" not in done.stdout + done.stderr
    return done


def is_listed():
    done = run("list", "--dead", "--json")
    assert done.returncode == OK, done
    return any(row["pid"] == DEAD for row in json.loads(done.stdout))


def test_what_is_no_ring_in_a_folder(folder, left, ring):
    good = give(write(left / "good.ring", ring, 0o600))
    give(write(left / "empty.ring", b"", 0o600))
    give(write(left / "text.ring", b"PRBRING\n", 0o600))
    write(left / "of-root.ring", ring)
    os.symlink(write(folder / "secret", SECRET, 0o600), left / "link.ring")
    os.symlink("/dev/zero", left / "zero.ring")
    os.mkfifo(left / "pipe.ring")
    (left / "folder.ring").mkdir()
    give(write(left / "\x1b[2J.ring", b"x" * 5000))
    assert is_listed()
    done = ask(DEAD)
    assert [row["number"] for row in json.loads(done.stdout)] == list(range(10)), done
    assert b"rings cannot be read" in done.stderr
    good.unlink()
    done = ask(DEAD)
    assert done.returncode != OK and not done.stdout


@pytest.mark.parametrize("how", ["others may write", "of another user", "link", "link above"])
def test_folders_that_are_not_the_users_alone(folder, base, left, ring, how):
    give(write(left / "user.mine.ring", ring, 0o600))
    assert is_listed()
    if how == "others may write":
        left.chmod(0o777)
    elif how == "of another user":
        os.chown(left, USER + 1, USER + 1)
    elif how == "link":
        left.rename(folder / "moved")
        left.symlink_to(folder / "moved")
    else:
        base.rename(folder / "moved")
        base.symlink_to(folder / "moved")
    assert not is_listed()
    assert ask(DEAD).returncode == 6
    if base.is_symlink():
        base.unlink()


def test_numbers_that_lie(left, ring):
    path = left / "user.mine.ring"
    values = [0, 1, 2 ** 31, 2 ** 32 - 1]
    for offset in range(8, 48, 4):
        for value in values:
            content = bytearray(ring)
            content[offset:offset + 4] = struct.pack("=I", value)
            give(write(path, content, 0o600))
            ask(DEAD)


def test_a_file_of_terabytes(left, ring):
    path = left / "user.mine.ring"
    content = bytearray(ring)
    content[28:32] = struct.pack("=I", 1 << 24)  # chunks
    give(write(path, content, 0o600))
    os.truncate(path, 1 << 40)
    done = run(DEAD, "query", "--timeout", "5", "SELECT count(*) FROM user.mine", timeout=60)
    assert done.returncode >= 0


def test_thousands_of_files(left, ring):
    for number in range(2000):
        give(write(left / ("%d.ring" % number), b""))
    assert ask(DEAD).returncode != OK and is_listed()


@pytest.mark.parametrize("instead", ["", "secret", "fifo", "/dev/zero"])
def test_a_mapped_file_that_is_replaced(folder, theirs, ring, instead):
    if instead == "secret":
        instead = str(write(folder / "secret", SECRET, 0o600))
    path = give(write(theirs / "x.ring", ring, 0o600))
    with program(MAPPER, str(path), instead) as process:
        done = ask(process.pid)
        # The mapped file is read; its rows are of another process, as after a fork.
        assert (done.returncode, json.loads(done.stdout)) == (OK, []), done
        if not instead:
            os.truncate(path, 5000)
            ask(process.pid)


def test_a_mapped_file_that_is_no_ring(theirs, ring):
    path = give(write(theirs / "\x1b[2J.ring", SECRET[:0] + b"x" * 9000, 0o600))
    with program(MAPPER, str(path), "") as process:
        done = ask(process.pid)
        assert done.returncode != OK and not done.stdout


def test_root_stores_nothing_in_their_folder(folder, package, base):
    """They could lead it elsewhere by links. With a folder of root's it is stored."""
    environment = {"PROBING_AGENT": str(package.parent / AGENT.name), "PATH": os.environ["PATH"]}
    secret = write(folder / "secret", SECRET, 0o600)
    with program(WRITER, str(package), env=environment) as process:
        made, = base.glob("%d-*/user.mine.ring" % process.pid)
        os.symlink(secret, made.parent / "user.mine.0000000000000000.cold")
        done = run("record", process.pid)
        assert done.returncode and b"give a folder with -o" in done.stderr, done
        output = folder / "output"
        output.mkdir(mode=0o700)
        recorder = subprocess.Popen([support.BINARY, "record", str(process.pid), "-o", str(output)],
                                    stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while not list(output.iterdir()):
            assert recorder.poll() is None
    err = recorder.communicate(timeout=60)[1]
    assert recorder.returncode == OK, err
    stored, = output.iterdir()
    assert stored.name == made.parent.name and {path.name for path in stored.iterdir()} == {
        "user.mine.0000000000000000.cold"}
    assert len(json.loads(ask(stored).stdout)) == 10
    assert secret.read_bytes() == SECRET
    # The link is no cold file of theirs.
    assert len(json.loads(ask(process.pid).stdout)) == 10

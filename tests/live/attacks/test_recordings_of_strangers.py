# SPDX-License-Identifier: GPL-3.0-or-later
"""A .profile is an SQLite database that anybody may have made: an error, never more."""
import contextlib
import os
import resource
import shutil
import sqlite3
import struct

import pytest

import profiles
import support

OK, FAILED, USAGE, UNSUPPORTED = range(4)
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
QUERY = "SELECT count(*) FROM profile.samples JOIN profile.stacks USING (stack)"


@pytest.fixture(name="recorded", scope="module")
def fixture_recorded(tmp_path_factory):
    """A recording as it is made, to be changed."""
    file = tmp_path_factory.mktemp("recorded") / "run.profile"
    with support.Target(NEWEST, profiles.PROGRAM, 2) as target:
        assert target.line() == "ready"
        target.send(b"go 60\n")
        code, _, err = profiles.Recording(target.pid, "-d", "1s", "-o", file).end()
    assert code == OK, err
    return file


@pytest.fixture(name="file")
def fixture_file(recorded, tmp_path):
    return shutil.copy(recorded, tmp_path / "run.profile")


def change(file, *statements):
    with contextlib.closing(sqlite3.connect(str(file), isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


def is_refused(probing, file, *says):
    """In words, by each command that reads it, and soon."""
    for words in (("perf",), ("perf", "--json", "--lines"), ("query", QUERY),
                  ("perf", "-o", str(file) + ".collapsed")):
        done = probing(file, *words)
        assert done.code in (FAILED, UNSUPPORTED), done
        assert not says or any(word in done.err for word in says), done
    assert not os.path.exists(str(file) + ".collapsed")


@pytest.mark.parametrize("statement, says", [
    ("UPDATE stacks SET parent = stack", "a row of 'stacks' has a number that cannot be"),
    ("UPDATE stacks SET parent = 3 WHERE stack = 2", "a number that cannot be"),
    ("UPDATE stacks SET frame = 1000000", "a number that cannot be"),
    ("UPDATE stacks SET frame = 'x'", "a number that cannot be"),
    ("UPDATE stacks SET stack = stack + 5 WHERE stack = (SELECT max(stack) FROM stacks)",
     "is not numbered"),
    ("DELETE FROM stacks", "names a stack that is not there"),
    ("UPDATE frames SET function = -1", "a number that cannot be"),
    ("UPDATE functions SET name = NULL", "has no name"),
    ("UPDATE functions SET name = x'00ff'", "no text"),
    ("UPDATE functions SET kind = 'x'", "no kind of function"),
    ("UPDATE functions SET first_line = 1e300", "a number that cannot be"),
    ("DELETE FROM threads", "names a thread that is not there"),
    ("UPDATE threads SET cpu_ns = -1", "a number that cannot be"),
    ("DELETE FROM recording", "cut off before anything"),
    ("INSERT INTO recording SELECT * FROM recording", "is one too many"),
    ("UPDATE recording SET duration_ns = 'long'", "a number that cannot be"),
    ("UPDATE recording SET pause_max_us = 9e999", "a number that cannot be"),
    ("DELETE FROM processes", "cut off before anything"),
    ("UPDATE chunks SET data = 'text'", "has no data"),
    ("UPDATE chunks SET data = x''", "no zstd frame"),
    ("UPDATE chunks SET data = zeroblob(50000000)", "no zstd frame"),
    ("UPDATE chunks SET runs = 1048576", "a chunk of samples"),
    ("UPDATE chunks SET runs = 1", "is longer than its runs"),
    ("UPDATE chunks SET runs = 1000000000000", "a number that cannot be"),
    ("UPDATE chunks SET unit_ns = 0", "a number that cannot be"),
    ("UPDATE chunks SET begin_ns = 9223372036854775807", "out of range"),
    ("INSERT INTO waits VALUES (3000000, 'lock', 'x', NULL)", "is not numbered"),
    ("INSERT INTO waits SELECT coalesce(max(wait), 0) + 1, 'mood', 'x', NULL FROM waits",
     "is of no kind of wait"),
    ("INSERT INTO waits SELECT coalesce(max(wait), 0) + 1, 'lock', 'x', 99999 FROM waits",
     "names a thread that is not there"),
    ("UPDATE chunks SET chunk = 7", "is not numbered"),
])
def test_rows(probing, file, statement, says):
    change(file, statement)
    if "stacks" not in says and "DELETE FROM stacks" not in statement:
        is_refused(probing, file, says)
    else:
        assert says in probing(file, "perf").err


@pytest.mark.parametrize("statements", [
    ("DROP TABLE stacks", "CREATE VIEW stacks AS SELECT 1 AS stack, 1 AS parent, 1 AS frame, 1 AS depth"),
    ("DROP TABLE stacks", "CREATE VIRTUAL TABLE stacks USING fts5(stack, parent, frame, depth)"),
    ("ALTER TABLE stacks ADD COLUMN more AS (abs(stack))",),
    ("ALTER TABLE functions RENAME TO others",
     "CREATE TABLE functions (function INTEGER PRIMARY KEY, kind TEXT, "
     "name TEXT AS (upper(kind)), file TEXT, first_line INTEGER)"),
    ("DROP TABLE totals",),
], ids=["view", "virtual", "generated", "expression", "missing"])
def test_tables_that_are_others(probing, file, statements):
    change(file, *statements)
    is_refused(probing, file, "this is no recording of probing")


def test_what_is_there_besides(probing, file, recorded):
    """Views, triggers and tables added by others are not read."""
    change(file, "CREATE VIEW mine AS SELECT load_extension('/tmp/x.so')",
           "CREATE TRIGGER t AFTER INSERT ON stacks BEGIN DELETE FROM stacks; END",
           "CREATE TABLE notes (x TEXT DEFAULT (load_extension('/tmp/x.so')))",
           "CREATE INDEX i ON stacks (abs(parent))", "CREATE TEMP VIEW stacks AS SELECT 1")
    done = probing(file, "perf")
    assert done.code == OK and done.out == probing(recorded, "perf").out, done
    before = os.stat(file).st_mtime_ns
    assert probing(file, "query", QUERY).code == OK
    assert probing(file, "query", "SELECT * FROM mine").code != OK
    assert os.stat(file).st_mtime_ns == before


@pytest.mark.parametrize("offset, value, says", [
    (0, b"SQLite format 2\0", ""), (18, b"\2\2", "write-ahead log"),
    (60, struct.pack(">I", 99), "format 99"), (68, b"GPKG", ""), (16, b"\0\0", ""),
    (24, b"\xff" * 40, ""), (100, b"\xff" * 200, "")])
def test_headers(probing, file, offset, value, says):
    with open(file, "r+b") as out:
        out.seek(offset)
        out.write(value)
    is_refused(probing, file, says)


def test_damaged_pages(probing, file):
    """Each page in turn is of something else, and each place is cut."""
    data = open(file, "rb").read()
    page = 4096
    for number in range(1, len(data) // page):
        for filling in (b"\0" * page, b"\xff" * page, data[:page],
                        data[-page:]):
            with open(file, "wb") as out:
                out.write(data[:number * page] + filling + data[(number + 1) * page:])
            done = probing(file, "perf", "--json")
            assert done.code in (OK, FAILED) and (done.code == OK or done.err), done
    for length in range(0, len(data), 3000):
        with open(file, "wb") as out:
            out.write(data[:length])
        done = probing(file, "perf")
        assert done.code in (OK, FAILED, UNSUPPORTED), done


@pytest.mark.parametrize("journal", [
    b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + b"\xff" * 20 + b"\0" * 5000,
    b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + struct.pack(">IIIII", 2**32 - 1, 0, 2**31, 512, 65536) +
    b"\0" * 5000,
    b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + struct.pack(">IIIII", 2**32 - 1, 0, 2, 512, 512) +
    b"\0" * 5000,
], ids=["sizes", "large", "small"])
def test_journals(probing, file, journal):
    """Neither is the file written to, nor is a file named by a journal removed."""
    place = "%s-journal" % file
    with open(place, "wb") as out:
        out.write(journal)
    before = open(file, "rb").read()
    is_refused(probing, file)
    assert open(file, "rb").read() == before and open(place, "rb").read() == journal
    os.unlink(place)
    os.mkfifo(place)
    probing(file, "perf")
    os.unlink(place)
    os.symlink("/etc/shadow", place)
    probing(file, "perf")
    assert os.readlink(place) == "/etc/shadow"


def little_memory():
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))


def test_bombs(probing, file):
    """Deep stacks, and a chunk that unpacks to much: bounded, in words."""
    change(file, "DELETE FROM chunks", "DELETE FROM stacks",
           "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
           "INSERT INTO stacks SELECT i, i - 1, 0, 0 FROM n")
    done = probing(file, "perf", preexec_fn=little_memory)
    assert done.code == FAILED and "too many frames" in done.err, done


def test_a_journal_of_another_user(probing, recorded, tmp_path):
    """Where ours would be: nothing is recorded, nothing is written there."""
    place, victim = tmp_path / "run.profile-journal", tmp_path / "victim"
    victim.write_text("precious")
    place.symlink_to(victim)
    with support.Target(NEWEST, profiles.PROGRAM) as target:
        assert target.line() == "ready"
        done = probing(target.pid, "perf", "-d", "200ms", "-o", tmp_path / "run.profile")
    assert done.code == USAGE and "is in the way" in done.err, done
    assert victim.read_text() == "precious" and not (tmp_path / "run.profile").exists()
    assert sorted(os.listdir(tmp_path)) == ["run.profile-journal", "victim"]

# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers of debug files that answer with what harms, and recordings that ask for what is no build-id."""
import itertools
import os
import re
import sqlite3
import subprocess

import pytest

import support
from debug_servers import answers
from environment import OK, USAGE
from profiles import Recording

BUILD_ID = os.urandom(20).hex()
MOST = 512 << 20  # bytes of a file


def built(path, build_id):
    subprocess.run(["gcc", "-O2", "-pthread", "-DPROGRAM", "-Wl,--build-id=0x" + build_id, "-o", path,
                    support.HERE / "programs" / "profiled_native.c", "-ldl"], check=True)
    return path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    program, file = built(folder / "program", BUILD_ID), folder / "run.profile"
    subprocess.run(["strip", program], check=True)
    with support.Program([program]) as target:
        assert target.line() == "ready"
        target.send(b"go 600\n")
        Recording(target.pid, "--cc", "-d", "3600s", "-o", file).until_taken(file, 30)
    return file


@pytest.fixture
def symbolized(probing, tmp_path):
    def run(recording, answer):
        """What the command says, and what the server was asked for."""
        with answers(answer) as (address, asked):
            result = probing(recording, "symbolize", "-o", tmp_path / "named.profile",
                             env={"DEBUGINFOD_URLS": address})
        return result, asked

    return run


def is_unnamed(result):
    assert result.code == OK and re.search(r": 0 of \d+ functions", result.out), result
    return True


def test_a_file_of_another_build(symbolized, recorded, tmp_path):
    """Its names would be wrong."""
    content = built(tmp_path / "other", os.urandom(20).hex()).read_bytes()
    result, asked = symbolized(recorded, lambda path: (200, {}, [content]))
    assert is_unnamed(result) and "does not have build-id " + BUILD_ID in result.err, result
    assert "/buildid/%s/debuginfo" % BUILD_ID in asked


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF" + b"\xff" * 9000, b"<html>\x1b[31m"],
                         ids=["empty", "cut", "garbage", "page"])
def test_what_is_no_file(symbolized, recorded, content):
    result, _ = symbolized(recorded, lambda path: (200, {}, [content]))
    assert is_unnamed(result) and "\x1b" not in result.err, result


def test_a_file_without_end(symbolized, recorded):
    result, _ = symbolized(recorded, lambda path: (200, {}, itertools.repeat(bytes(1 << 20))))
    assert is_unnamed(result) and "more than 512 MiB" in result.err, result


def test_no_redirection(symbolized, recorded):
    """To a place that the server chooses, which we may reach and it may not."""
    with answers(lambda path: (200, {}, [b"secret"])) as (inside, asked_inside):
        result, asked = symbolized(recorded, lambda path: (302, {"Location": inside + "/x"}, []))
    assert is_unnamed(result) and asked and not asked_inside, (result, asked_inside)
    assert "status 302" in result.err


@pytest.fixture
def many(recorded, tmp_path):
    """many(COUNT): the recording with so many more files, and their build-ids. The first has more functions than
    any other."""
    def make(count):
        changed = tmp_path / "many.profile"
        changed.write_bytes(recorded.read_bytes())
        build_ids = ["%040x" % each for each in range(1, count + 1)]
        with sqlite3.connect(changed) as database:
            one = lambda words: database.execute("SELECT " + words).fetchone()[0]
            images, functions = (one("max(%s) + 1 FROM %ss" % (each, each)) for each in ("image", "function"))
            wanted = one("function FROM origins JOIN functions USING (function) WHERE name LIKE 'fun_%'")
            for number, build_id in enumerate(build_ids):
                database.execute("INSERT INTO images VALUES (?, ?, ?, 0, 4096, 0)",
                                 (images + number, "/lib/%d" % number, build_id))
                for address in range(9 if number == count - 1 else 1):
                    name = "fun_%x" % (16 * address)
                    database.execute("INSERT INTO functions SELECT ?, kind, ?, file, first_line, module FROM functions "
                                     "WHERE function = ?", (functions, name, wanted))
                    database.execute("INSERT INTO origins VALUES (?, ?, ?)", (functions, images + number, 16 * address))
                    functions += 1
        database.close()
        return changed, build_ids

    return make


def test_a_server_that_failed_once_is_asked_again(symbolized, many, tmp_path):
    """For other files, which it has."""
    recording, _ = many(2)
    content = built(tmp_path / "same", BUILD_ID).read_bytes()
    failed = []

    def answer(path):
        if BUILD_ID in path:
            return 200, {}, [content]
        if failed:
            return 404, {}, []
        failed.append(path)
        return 500, {}, []

    result, _ = symbolized(recording, answer)
    assert failed and result.code == OK and re.search(r": [1-9]\d* of \d+ functions", result.out), result


def test_a_server_that_fails_is_given_up(symbolized, many):
    recording, _ = many(9)
    result, asked = symbolized(recording, lambda path: (500, {}, []))
    assert len(asked) == 3 and "failed 3 times, and is not asked again" in result.err, (asked, result)
    assert result.err.count("asking ") == 1, result


def test_more_files_than_are_asked_for(symbolized, many):
    """Those with most functions are asked for, wherever they are in the recording."""
    recording, build_ids = many(250)
    result, asked = symbolized(recording, lambda path: (404, {}, []))
    assert is_unnamed(result) and len(asked) == 200 and "only the 200 files with the most" in result.err, result
    assert "/buildid/%s/debuginfo" % build_ids[-1] in asked


def test_more_servers_than_are_asked(probing, recorded, tmp_path):
    urls = " ".join("http://127.0.0.1:%d" % port for port in range(1, 10))
    result = probing(recorded, "symbolize", "-o", tmp_path / "named.profile", env={"DEBUGINFOD_URLS": urls})
    assert result.code == USAGE and "has over 8 addresses" in result.err, result


def test_no_password_is_shown(probing, recorded, tmp_path):
    result = probing(recorded, "symbolize", "-o", tmp_path / "named.profile",
                     env={"DEBUGINFOD_URLS": "http://me:hidden@127.0.0.1:1"})
    assert is_unnamed(result) and "http://127.0.0.1:1/" in result.err and "hidden" not in result.err, result


def told_of(symbolized, recorded, tmp_path, said):
    """The same of the recording with another build-id."""
    changed = tmp_path / "changed.profile"
    changed.write_bytes(recorded.read_bytes())
    with sqlite3.connect(changed) as database:
        database.execute("UPDATE images SET build_id = ?", (said,))
    database.close()
    result, asked = symbolized(changed, lambda path: (404, {}, []))
    assert asked == [] and "asking" not in result.err, (asked, result)
    return result


@pytest.mark.parametrize("said", ["../../../etc/passwd", "ab/../../x", "AB" * 20, "a b\r\nX: y"],
                         ids=["path", "outside", "capitals", "header"])
def test_a_recording_with_what_is_not_hexadecimal(symbolized, recorded, tmp_path, said):
    result = told_of(symbolized, recorded, tmp_path, said)
    assert result.code != OK and "has no build-id in hexadecimal" in result.err, result


@pytest.mark.parametrize("said", ["a" * 4000, "a" * 11, "abc"], ids=["long", "odd", "short"])
def test_a_recording_with_what_is_no_build_id(symbolized, recorded, tmp_path, said):
    """It is not asked for."""
    assert is_unnamed(told_of(symbolized, recorded, tmp_path, said))


@pytest.mark.parametrize("urls", ["file:///etc", "gopher://x", "-o/etc/passwd", "ima:enforcing"])
def test_only_addresses_of_http(probing, recorded, tmp_path, urls):
    result = probing(recorded, "symbolize", "-o", tmp_path / "named.profile", env={"DEBUGINFOD_URLS": urls})
    assert result.code == USAGE and "has no address" in result.err, result


def test_nobody_is_asked_unless_the_variable_is_set(probing, recorded, tmp_path, monkeypatch):
    """Nor when a folder is given."""
    with answers(lambda path: (404, {}, [])) as (address, asked):
        given = probing(recorded, "symbolize", "--from", tmp_path, "-o", tmp_path / "named.profile",
                        env={"DEBUGINFOD_URLS": address})
        monkeypatch.delenv("DEBUGINFOD_URLS", raising=False)
        none = [probing(recorded, "symbolize", "-o", tmp_path / "named.profile", env=env)
                for env in ({"DEBUGINFOD_URLS": ""}, {})]
    assert is_unnamed(given), given
    assert all(each.code == USAGE and "DEBUGINFOD_URLS" in each.err for each in none), none
    assert asked == []

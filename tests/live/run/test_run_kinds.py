# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing run` names the line of each planted hang, and leaves alone what only waits."""
import concurrent.futures
import os
import subprocess

import pytest

import hangs
import support

PYTHON = "/usr/bin/python3"
HUNG = 124
AT_ONCE = 4  # most of the time they sleep
OVER = "the time is over"
# Not more than a second: the machine may be busy.
HANG, SHORT, LONG = "1s", "2s", "60s"


def run(folder, source, timeout):
    """stdin is a pipe that somebody may write to."""
    folder.mkdir()
    path, line = hangs.write(folder, source)
    reader, writer = os.pipe()
    try:
        done = subprocess.run(
            [support.BINARY, "run", "--hang", HANG, "--grace", "1s", "--timeout", timeout, "--", PYTHON, str(path)],
            cwd=folder, env=hangs.environment(), stdin=reader, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            timeout=200, check=False)
    finally:
        os.close(reader)
        os.close(writer)
    return done, line


def judge_kind(folder, kind):
    """What is wrong with the answer, or None."""
    source, how = hangs.KINDS[kind]
    done, line = run(folder, source, SHORT if how == hangs.TIME else LONG)
    text = done.stderr.decode()
    if done.returncode != HUNG or (OVER in text) != (how == hangs.TIME):
        return "%s: exit code %d\n%s" % (kind, done.returncode, text)
    if "hung.py:%d" % line not in text:
        return "%s: line %d is not named\n%s" % (kind, line, text)
    if len(text.splitlines()) > 60 or len(list(folder.glob("probing-run-*.probing"))) != 1:
        return "%s: %d lines, %s\n%s" % (kind, len(text.splitlines()), os.listdir(folder), text)
    return None


def judge_idle(folder, kind):
    done, _ = run(folder, hangs.IDLE[kind], SHORT)
    text = done.stderr.decode()
    return None if done.returncode == HUNG and OVER in text else "%s: %d\n%s" % (kind, done.returncode, text)


def judge_all(judge, folder, kinds):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        wrong = pool.map(lambda each: judge(folder / str(each[0]), each[1]), enumerate(kinds))
        return list(filter(None, wrong))


def some(table):
    """Some of each part of the table."""
    names = list(table)
    return names[::len(names) // 6]


def test_some_kinds(tmp_path):
    assert not judge_all(judge_kind, tmp_path, some(hangs.KINDS))


def test_all_kinds(tmp_path):
    assert len(hangs.KINDS) >= 50
    assert not judge_all(judge_kind, tmp_path, hangs.KINDS)


def test_some_that_only_wait(tmp_path):
    assert not judge_all(judge_idle, tmp_path, some(hangs.IDLE))


def test_all_that_only_wait(tmp_path):
    assert not judge_all(judge_idle, tmp_path, hangs.IDLE)


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 6)), ids=repr)
def test_versions(interpreter, tmp_path):
    """Stacks and locks of each version."""
    path, line = hangs.write(tmp_path, hangs.LOCKS["two RLocks in both orders"])
    done = subprocess.run(
        [support.BINARY, "run", "--hang", HANG, "--grace", "1s", "--", interpreter.exe, str(path)], cwd=tmp_path,
        env=interpreter.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=200,
        check=False)
    text = done.stderr.decode()
    assert done.returncode == HUNG and "deadlock: " in text and "hung.py:%d" % line in text, text

# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects that lie about themselves, or are too large: every answer comes soon, is short, and sends
nothing to the terminal but text."""

import re
import subprocess

import pytest
import support

PROGRAM = support.HERE / "programs" / "hostile_values.py"
FUNCTIONS = ["%s", "vars(%s)", "dir(%s)", "len(%s)", "type(%s)", "%s.around", "%s.deep.deep.more[0]",
             "%s.nothing", "%s['x']", "%s[7]", "%s.keys[299999]", "%s.d['zz']", "%s.lost['a']",
             "%s.circular['a']", "%s.tiny['a']", "%s.gone[0]", "%s.gone[1][2]", "%s.typeless[0]",
             "len(%s.long_list)", "%s.long_list[-1]", "%s.own_type.x", "vars(%s.typeless)", "%s.numberlike"]


@pytest.fixture
def liar(interpreter):
    if not interpreter.has_ctypes:
        pytest.skip("it has no ctypes")
    with support.Target(interpreter, PROGRAM) as process:
        process.names = []
        for line in iter(process.line, "ready"):
            process.names.append(line)
        support.wait_for_sleep(process.pid, "pipe_read")
        yield process


def ask(*words):
    done = subprocess.run([support.BINARY, *map(str, words)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode in (0, 1), (words, done.returncode, done.stderr[:1000])
    assert len(done.stdout) + len(done.stderr) < 1 << 20, words
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xe2\x80\xae", done.stdout + done.stderr), words
    return done


SIZES = """
for f in p.thread().frames:
    for name, v in f.locals.items():
        try:
            print(name, v.size >= 0)
            for _, x in probing.attributes(v) if name.endswith("_thing") else ():
                if isinstance(x, probing.Value):
                    print(x.size >= 0)
        except probing.Error as error:
            print(name, type(error).__name__)
print("end")
"""


def test_sizes(liar):
    done = ask(liar.pid, "script", "-c", SIZES)
    assert done.stdout.endswith(b"\nend\n") and not done.stderr, done


def test_print(liar):
    for name in liar.names:
        for function in FUNCTIONS:
            done = ask(liar.pid, "print", function % name)
            assert (done.returncode == 0) == bool(done.stdout), (name, function, done)
        ask(liar.pid, "print", "--depth", 60, "--max-items", 50, "--max-value", 100, name)


def test_tables_and_dumps(liar):
    done = ask(liar.pid, "dump", "--locals")
    assert b"around" in done.stdout
    for table in ("attributes", "items", "elements"):
        ask(liar.pid, "query", "SELECT count(*), sum(length(x.value)) FROM python.locals l, "
            "python.%s(l.address) x" % table)
        ask(liar.pid, "query", "SELECT count(*), sum(length(x.value)) FROM python.locals l, "
            "python.attributes(l.address) a, python.%s(a.value_address) x "
            "WHERE l.name <> 'many' AND l.name <> 'large'" % table)


@pytest.fixture
def framed(newest):
    """Frames that imitate those of polars."""
    with support.Target(newest, PROGRAM.with_name("hostile_frames.py")) as process:
        process.names = list(iter(process.line, "ready"))
        support.wait_for_sleep(process.pid, "pipe_read")
        yield process


def test_frames_of_data(framed):
    ask(framed.pid, "dump", "--locals")
    for name in framed.names:
        for function in ("%s", "%s.shape", "%s.columns", "%s['x']"):
            done = ask(framed.pid, "print", function % name)
            assert (done.returncode == 0) == bool(done.stdout), (name, function, done)
    assert b"DataFrame({}, shape=(18446744073709551615, 0))" in ask(framed.pid, "print", "none").stdout

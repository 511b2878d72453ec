# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames and series of polars from outside: shape, columns, types and first values, as in polars. Unknown
types and versions are named as unread, never made up."""

import json
import re
import shutil
import subprocess

import packages
import pytest
import support
import tables

PROGRAM = support.HERE / "programs" / "polars_frames.py"
KNOWN = ((1, 38), (2, 1))  # versions, as docs/values.md says


def started(python):
    with support.Program([python, PROGRAM]) as program:
        program.version, program.truth = json.loads(program.line())
        program.known = KNOWN[0] <= tuple(map(int, program.version.split(".")[:2])) <= KNOWN[1]
        support.wait_for_sleep(program.pid, "pipe_read")
        yield program


@pytest.fixture(scope="module")
def program():
    yield from started(packages.need("polars"))


@pytest.fixture
def frames(program):
    if not program.known:
        pytest.skip("polars %s is not known: 'make test-packages' gets 2.1" % program.version)
    return program


def printed(target, *words):
    return subprocess.check_output([support.BINARY, "-t", str(target), "print", *words],
                                   text=True).rstrip("\n")


def bracketed(values, count):
    if values is None:
        return "[…+%d]" % count
    return "[%s]" % ", ".join(values + (["…+%d" % (count - len(values))] if count > len(values) else []))


def expected(told):
    (rows, width), columns = told
    return "DataFrame({%s}, shape=(%d, %d))" % (", ".join(
        "%r: %s%s" % (name, dtype, bracketed(values, rows)) for name, dtype, values in columns), rows, width)


def check(target, truth):
    for name, told in truth.items():
        shown = printed(target, name)
        if name == "wide":
            assert shown.startswith("DataFrame({'c0': Int64[0], 'c1': Int64[1], ")
            assert "…+200}, shape=(1, 300))" in shown, shown
        else:
            assert shown == expected(told), name


def test_frames_are_what_polars_says(frames):
    check(frames.pid, frames.truth)


def test_series_and_what_code_would_compute(frames):
    pid = frames.pid
    for name, (shape, columns) in frames.truth.items():
        assert printed(pid, name + ".shape") == str(tuple(shape))
        for column, dtype, values in columns[:5]:
            shown = printed(pid, "--max-items", "5", "%s[%r]" % (name, column))
            assert shown == "Series(%s, shape=(%d,), dtype=%s, name=%r)" % (
                bracketed(values, shape[0]), shape[0], dtype, column), name
    assert printed(pid, "plain.columns") == "['step', 'loss', 'ok']"
    assert (printed(pid, "plain.height"), printed(pid, "plain.width")) == ("3", "3")
    assert printed(pid, "holder.column.name") == "'loss'"
    assert printed(pid, "holder.column.dtype") == "Float64"
    assert printed(pid, "holder.column.shape") == "(3,)"
    done = subprocess.run([support.BINARY, str(pid), "print", "plain['nothing']"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and "the __getitem__ of DataFrame is code" in done.stderr


def test_as_an_attribute_and_bounded(frames):
    shown = printed(frames.pid, "holder")
    assert shown.startswith("<__main__.Holder frame=DataFrame({'step': Int64[1, 2, 3], ")
    assert " column=Series([0.5, None, 2.5], shape=(3,), dtype=Float64, name='loss')>" in shown
    assert printed(frames.pid, "--max-items", "2", "plain") == \
        "DataFrame({'step': Int64[1, 2, …+1], 'loss': Float64[0.5, None, …+1], …+1}, shape=(3, 3))"
    rows = tables.query(frames.pid, "SELECT name, value FROM python.locals WHERE depth = 0")
    shown = {row["name"]: row["value"] for row in rows}
    assert "frame=DataFrame({'step': Int64[1, 2, 3], " in shown["holder"]


def test_what_is_not_known_is_not_made_up(program):
    """An object that is none of polars's; a version."""
    if program.known:
        assert printed(program.pid, "literal").endswith(", 'seven': Int32[7, 7, 7]}, shape=(3, 4))")
    else:
        assert re.match(r"<polars\.dataframe\.frame\.DataFrame _df=<", printed(program.pid, "plain"))
    assert re.match(r"<polars\.dataframe\.frame\.DataFrame _df=<([\w.]+\.)?PySeries object at 0x\w+>>$",
                    printed(program.pid, "torn"))


@pytest.mark.skipif(not shutil.which("gcore"), reason="gcore is not installed")
def test_core_and_snapshot(frames, tmp_path):
    some = {name: frames.truth[name] for name in ("plain", "texts", "times", "stacked")}
    check(tables.core_of(frames.pid, tmp_path), some)
    saved = tmp_path / "frames.snap"
    subprocess.run([support.BINARY, "-p", str(frames.pid), "snapshot", "-o", saved], check=True,
                   stdout=subprocess.DEVNULL)
    sql = "SELECT value FROM python.locals WHERE depth = 0 AND name IN ('holder', 'literal') ORDER BY name"
    assert tables.query(saved, sql) == tables.query(frames.pid, sql)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames, series and indexes of pandas from outside: shape, columns, dtypes and first values, as in
pandas; values stored elsewhere than in arrays of numpy are named as unread, never made up."""

import json
import re
import shutil
import subprocess

import packages
import pytest
import support
import tables

PROGRAM = support.HERE / "programs" / "data_frames.py"


@pytest.fixture(scope="module")
def frames():
    with support.Program([packages.need("pandas"), "-I", PROGRAM]) as program:
        program.truth = json.loads(program.line())
        program.stamps = program.truth.pop("stamps")
        support.wait_for_sleep(program.pid, "pipe_read")
        yield program


def printed(target, *words):
    return subprocess.check_output([support.BINARY, "-t", str(target), "print", *words],
                                   text=True).rstrip("\n")


def expected(told):
    """The text of a frame."""
    rows = told["shape"][0]
    columns = []
    for name, dtype, values in told["columns"]:
        more = ["…+%d" % (rows - 5)] if rows > 5 else []
        if dtype == "category":
            values = [each.replace("None", "nan") for each in values]
        dtype = re.sub(r"(datetime64\[\w+, ).*\]", r"\1zoneinfo.ZoneInfo(key='Europe/Berlin')]", dtype)
        columns.append("%s: %s[%s]" % (name, dtype, ", ".join(values + more)))
    return "({%s}, index=" % ", ".join(columns), ", shape=(%d, %d))" % tuple(told["shape"])


def check(target, truth):
    for name, told in truth.items():
        begin, end = expected(told)
        shown = printed(target, name)
        if name == "wide":
            assert shown.startswith("DataFrame({0: float64[0.0, 0.0], 1: float64[0.0, 0.0], ")
            assert "…+200}, index=" in shown and shown.endswith(end), shown
            continue
        zone = re.compile(r"zoneinfo\.ZoneInfo\(key='Europe/Berlin'\)|<[^<>]*(zoneinfo|pytz)[^<>]*>")
        shown, begin = zone.sub("ZONE", shown), zone.sub("ZONE", begin)
        assert shown.startswith("DataFrame" + begin) and shown.endswith(end), (name, shown, begin)


def test_frames_are_what_pandas_says(frames):
    check(frames.pid, frames.truth)


def test_indexes_and_series(frames):
    pid = frames.pid
    assert printed(pid, "series").startswith("Series([0.5, 1.5], index=Index(['x', 'y'], shape=(2,), ")
    assert printed(pid, "series").endswith(", shape=(2,), dtype=float64, name='losses')")
    assert printed(pid, "index") == "Index([3, 1, 2], shape=(3,), dtype=int64, name='k')"
    assert printed(pid, "span") == "RangeIndex(start=0, stop=10, step=3)"
    assert printed(pid, "parts.index") == \
        "MultiIndex([('a', 2), ('b', 4)], shape=(2,), names=['k', 'n'])"
    assert printed(pid, "dated.index").startswith("DatetimeIndex(['2024-02-28T00:00:00")
    assert "index=RangeIndex(start=0, stop=3, step=1), shape" in printed(pid, "plain")


def test_timestamps(frames):
    """A zone's offset from UTC is the difference of the time and the moment."""
    assert printed(frames.pid, "stamps") == frames.stamps


def test_what_code_would_compute(frames):
    for name, told in frames.truth.items():
        assert printed(frames.pid, name + ".shape") == str(tuple(told["shape"]))
    assert printed(frames.pid, "plain.columns").startswith("Index(['step', 'loss', 'ok', 'low'], ")
    assert printed(frames.pid, "series.shape") == "(2,)"
    assert printed(frames.pid, "series.name") == "'losses'"
    assert printed(frames.pid, "plain.ndim") == "2"
    for column in ("plain['loss']", "plain.loss"):
        assert printed(frames.pid, column) == "Series([0.5, 1.5, nan], index=RangeIndex(start=0, " \
            "stop=3, step=1), shape=(3,), dtype=float64, name='loss')"
    assert printed(frames.pid, "--max-items", "2", "mixed['d']").startswith("Series([0, 2, …+38], ")
    done = subprocess.run([support.BINARY, str(frames.pid), "print", "plain.size"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and "'size' is a property of" in done.stderr
    done = subprocess.run([support.BINARY, str(frames.pid), "print", "plain['nothing']"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1 and "the __getitem__ of DataFrame is code" in done.stderr


def test_as_an_attribute_and_bounded(frames):
    shown = printed(frames.pid, "holder")
    assert shown.startswith("<__main__.Holder frame=DataFrame({'step': int64[1, 2, 3], ")
    assert " column=Series([0.5, 1.5, nan], index=" in shown
    assert printed(frames.pid, "--max-items", "2", "plain").startswith(
        "DataFrame({'step': int64[1, 2, …+1], 'loss': float64[0.5, 1.5, …+1], …+2}, index=")
    rows = tables.query(frames.pid, "SELECT name, value FROM python.locals WHERE depth = 0")
    shown = {row["name"]: row["value"] for row in rows}
    assert shown["plain"].startswith("DataFrame({'step': int64[1, 2, 3], 'loss': ")
    assert len(shown["wide"].encode()) <= 2100


def test_what_is_not_known_is_not_made_up(frames):
    """Periods are numbers that mean something else; a manager that is none."""
    assert printed(frames.pid, "periods").startswith("Series(['2024-01', '2024-02'], index=RangeIndex(")
    assert printed(frames.pid, "periods").endswith(" dtype=period[M])")
    assert printed(frames.pid, "weeks").startswith("Series(['2024-01-01/2024-01-07', '2024-01-08/2024-01-14'], ")
    assert printed(frames.pid, "weeks").endswith(" dtype=period[W-SUN])")
    assert printed(frames.pid, "broken").startswith("<pandas.")


@pytest.mark.skipif(not shutil.which("gcore"), reason="gcore is not installed")
def test_core_and_snapshot(frames, tmp_path):
    check(tables.core_of(frames.pid, tmp_path), frames.truth)
    saved = tmp_path / "frames.snap"
    subprocess.run([support.BINARY, "-p", str(frames.pid), "snapshot", "-o", saved], check=True,
                   stdout=subprocess.DEVNULL)
    for name in ("plain", "dates", "parts"):
        live = tables.query(frames.pid, "SELECT value FROM python.locals WHERE depth = 0 AND "
                                        "name = '%s'" % name)
        assert live == tables.query(saved, "SELECT value FROM python.locals WHERE depth = 0 AND "
                                           "name = '%s'" % name)


TEXTS = """
import os, pandas, pyarrow
def column(*arrays):
    return pandas.Series(pandas.arrays.ArrowStringArray(pyarrow.chunked_array(arrays)))
def show(frame, several, part, narrow, empty, kinds):
    print("ready", flush=True)
    os.read(0, 1)
large = pyarrow.large_string()
text = lambda *each: pandas.array(each, dtype="string[pyarrow]")
frame = pandas.DataFrame({"n": [1, 2, 3], "name": text("ada", None, "g\u00f6del")})
frame.columns = pandas.Index(text("n", "name"))
show(frame, column(pyarrow.array(["q"], large), pyarrow.array([], large), pyarrow.array(["", "z"], large)),
     column(pyarrow.array(["", "w", None, "e"], large).slice(1)), column(pyarrow.array(["", "w", None], pyarrow.string())),
     column(pyarrow.array([], large)), pandas.Series(pandas.Categorical(text("b", "a", "b"))))
"""


def test_texts_in_the_memory_of_arrow(tmp_path):
    """Where those of pandas 3 are."""
    program = tmp_path / "texts.py"
    program.write_text(TEXTS)
    with support.Program([packages.need("pandas, pyarrow"), "-I", program]) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read")

        assert printed(process.pid, "frame").startswith(
            "DataFrame({'n': int64[1, 2, 3], 'name': string['ada', <NA>, 'g\u00f6del']}, index=")
        assert printed(process.pid, "frame['name']").startswith("Series(['ada', <NA>, 'g\u00f6del'], ")
        assert "shape=(3, 2))" in printed(process.pid, "frame")
        for name, text in (("several", "['q', '', 'z']"), ("part", "['w', <NA>, 'e']"), ("narrow", "['', 'w', <NA>]"),
                           ("empty", "[]"), ("kinds", "['b', 'a', 'b']")):
            assert printed(process.pid, name).startswith("Series(" + text), printed(process.pid, name)

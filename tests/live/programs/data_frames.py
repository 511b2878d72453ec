# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames, series and indexes of pandas as variables of show(), to test their display. Prints pandas' own
data of each as JSON: [shape, columns with their dtype and values]."""
import json
import sys

import numpy
import pandas


def told(values):
    """As text: dates in numpy's form, all else as repr()."""
    found = []
    for value in values:
        if value is pandas.NaT:
            found.append("'NaT'")
        elif isinstance(value, pandas.Timestamp):
            found.append("'%s'" % str(value.to_datetime64()) if value.tzinfo is None else
                         "'%sZ'" % str(value.tz_convert(None).to_datetime64()))
        elif isinstance(value, pandas.Timedelta):
            found.append("'%s'" % value)
        else:
            found.append(repr(value.item() if isinstance(value, numpy.generic) else value))
    return found


def frames():
    yield "plain", pandas.DataFrame({"step": [1, 2, 3], "loss": [0.5, 1.5, float("nan")],
                                     "ok": [True, False, True], "low": [9, 8, 7]})
    mixed = pandas.DataFrame({"a": range(40), "b": [0.5] * 40, "c": range(40)})
    mixed["d"] = mixed.a * 2  # not in one block with a and c
    mixed.insert(1, "first", [each * 0.25 for each in range(40)])
    yield "mixed", mixed
    yield "sliced", mixed[3:30:2][["c", "a", "first"]]
    yield "objects", pandas.DataFrame({"o": [[1], None, "x"]}, index=["u", "v", "w"])
    yield "texts", pandas.DataFrame({"t": pandas.Series(["x", "y", "z"], dtype="string")})
    yield "dates", pandas.DataFrame({
        "when": pandas.to_datetime(["2024-05-06 07:08:09.5", None, "1969-12-31 00:00:00.0"]),
        "zoned": pandas.to_datetime(["2024-05-06", "2024-05-07", "2024-05-08"]).tz_localize(
            "Europe/Berlin"),
        "span": pandas.to_timedelta([1, 2, 3], unit="s")})
    yield "nullable", pandas.DataFrame({
        "i": pandas.array([1, None, 3], dtype="Int64"), "u": pandas.array([1, 2, 3], dtype="UInt8"),
        "b": pandas.array([True, None, False], dtype="boolean")})
    yield "categories", pandas.DataFrame({"c": pandas.Categorical(["low", None, "high"])})
    yield "parts", pandas.DataFrame({"v": [1, 2]}, index=pandas.MultiIndex.from_tuples(
        [("a", 2), ("b", 4)], names=["k", "n"]))
    yield "dated", pandas.DataFrame({"v": [1, 2, 3]},
                                    index=pandas.date_range("2024-02-28", periods=3))
    yield "empty", pandas.DataFrame()
    yield "wide", pandas.DataFrame(numpy.zeros((2, 300)))
    yield "twice", pandas.DataFrame([[1, 2], [3, 4]], columns=["same", "same"])


class Holder(object):
    def __init__(self, frame):
        self.frame, self.column = frame, frame["loss"]


def show(plain, mixed, sliced, objects, texts, dates, nullable, categories, parts, dated, empty, wide,
         twice, series, index, span, holder, periods, weeks, broken, stamps):
    sys.stdin.read()


def main():
    values = dict(frames())
    truth = {name: {"shape": frame.shape, "index": told(frame.index), "columns": [
        [told([name])[0], str(frame.iloc[:, at].dtype), told(frame.iloc[:5, at])]
        for at, name in enumerate(frame.columns)]} for name, frame in values.items()}
    values["series"] = pandas.Series([0.5, 1.5], index=["x", "y"], name="losses")
    values["index"] = pandas.Index([3, 1, 2], name="k")
    values["span"] = pandas.RangeIndex(0, 10, 3)
    values["holder"] = Holder(values["plain"])
    values["periods"] = pandas.Series(pandas.period_range("2024-01", periods=2, freq="M"))
    values["weeks"] = pandas.Series(pandas.period_range("2024-01", periods=2, freq="W"))
    values["stamps"] = [pandas.Timestamp(each) for each in (
        "2024-05-06 07:08:09", "2024-05-06 07:08:09.5", "2024-05-06 07:08:09.000000789")]
    values["stamps"].append(pandas.Timestamp("2024-05-06 07:08:09", tz="UTC"))
    values["stamps"].append(pandas.Timestamp("2024-07-02 10:00-03:30"))
    values["stamps"] += [pandas.Timestamp(each, tz=zone) for each, zone in (
        ("2024-05-06 07:08:09", "Europe/Paris"), ("2024-11-03 01:30-0500", "US/Eastern"),
        ("2024-11-03 01:30-0400", "US/Eastern"), ("1969-12-31 10:00:00.123456789", "Asia/Kolkata"))]
    values["stamps"] += [pandas.Timestamp("1960-07-02 10:00:00.123", tz="Asia/Tokyo").as_unit(each) for each in ("s", "ms", "us")
                         if hasattr(pandas.Timestamp, "as_unit")]
    truth["stamps"] = repr(values["stamps"])
    broken = pandas.DataFrame({"v": [1]})
    object.__setattr__(broken, "_mgr", "no manager")
    print(json.dumps(truth))
    sys.stdout.flush()
    show(broken=broken, **values)


main()

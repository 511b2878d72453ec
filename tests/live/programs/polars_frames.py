# SPDX-License-Identifier: GPL-3.0-or-later
"""Frames and series of polars as variables of show(), to test their display. Prints polars' own data of
each as JSON: [version, {name: [shape, [[column, dtype, first values as text]]]}]."""
import datetime
import json
import random
import sys

import polars as pl

FIRST = 5
MANY = 24  # frames made at random


def text(value, dtype):
    if value is None:
        return "None"
    if isinstance(value, datetime.datetime):
        zoned = value.tzinfo is not None
        value = value.astimezone(datetime.timezone.utc) if zoned else value
        cut = {"ms": value.strftime("%f")[:3], "us": value.strftime("%f"),
               "ns": value.strftime("%f") + "000"}[dtype.time_unit]
        return "'%s.%s%s'" % (value.strftime("%Y-%m-%dT%H:%M:%S"), cut, "Z" if zoned else "")
    if isinstance(value, (datetime.date, datetime.time)):
        return "'%s'" % value.isoformat()
    if isinstance(value, datetime.timedelta):
        microseconds = value // datetime.timedelta(microseconds=1)
        return str({"ms": microseconds // 1000, "us": microseconds,
                    "ns": microseconds * 1000}[dtype.time_unit])
    return repr(value)


def told(series):
    """Type and first values; None if only the type and the count are shown."""
    plain = not isinstance(series.dtype, (pl.List, pl.Struct, pl.Array, pl.Decimal, pl.Categorical,
                                          pl.Enum, pl.Object)) and series.dtype != pl.Int128
    name = str(series.dtype) if isinstance(series.dtype, (pl.Datetime, pl.Duration)) else \
        str(series.dtype).partition("(")[0]
    values = series.head(FIRST).to_list() if plain else None
    return [series.name, name, values and [text(each, series.dtype) for each in values]]


def frames():
    day, hour = datetime.date(2024, 5, 6), datetime.timedelta(hours=1)
    moment = datetime.datetime(2024, 5, 6, 7, 8, 9, 123000)
    yield "plain", pl.DataFrame({"step": [1, 2, 3], "loss": [0.5, None, 2.5], "ok": [True, False, None]})
    yield "numbers", pl.DataFrame({dtype.__name__: pl.Series([1, None, 3], dtype=dtype) for dtype in (
        pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32,
        pl.Float64)})
    yield "texts", pl.DataFrame({
        "a name that is longer than what fits": ["", "short", "exactly twelv", "h\u00e9 \u2713", None, "x" * 40],
        "exactly twenty-four char": [b"a\xff", None, b"", b"b" * 20, b"c", b"d"]})
    yield "times", pl.DataFrame({
        "date": [day, None, datetime.date(1960, 2, 29)], "ms": pl.Series([moment] * 3, dtype=pl.Datetime("ms")),
        "us": [moment] * 3, "ns": pl.Series([moment] * 3, dtype=pl.Datetime("ns")),
        "zoned": pl.Series([moment] * 3, dtype=pl.Datetime("us", "Europe/Berlin")),
        "span": [hour, None, -hour], "time": [datetime.time(1, 2), None, datetime.time(23, 59, 59, 5)]})
    yield "others", pl.DataFrame({
        "list": [[1], [2, 3]], "struct": [{"a": 1}, {"a": 2}], "category": pl.Series(["u", "v"], dtype=pl.Categorical),
        "enum": pl.Series(["u", "v"], dtype=pl.Enum(["u", "v"])), "none": [None, None],
        "array": pl.Series([[1, 2], [3, 4]], dtype=pl.Array(pl.Int64, 2)),
        "object": pl.Series([object(), object()], dtype=pl.Object)})
    yield "empty", pl.DataFrame()
    yield "no_rows", pl.DataFrame({"a": pl.Series([], dtype=pl.Int64), "b": pl.Series([], dtype=pl.String)})
    long = pl.DataFrame({"n": range(100), "text": ["text number %d of these" % each for each in range(100)]})
    yield "sliced", long[13:90]
    yield "stepped", long[::7]
    yield "stacked", pl.concat([long[:2], long[50:53], long[7:9]], rechunk=False)
    yield "rows", pl.DataFrame({"i": [1], "f": [0.5], "b": [False], "t": ["short"], "l": ["a text that is longer"],
                                "y": [b"bytes"], "d": [day], "m": [moment], "s": [hour], "n": [None],
                                "c": datetime.time(1, 2), "i8": pl.Series([-1], dtype=pl.Int8)})
    yield "none", pl.DataFrame({"none": pl.Series([None], dtype=pl.Int16)}).with_columns(pl.lit("all").alias("t"))
    yield "wide", pl.DataFrame({"c%d" % each: [each] for each in range(300)})


def column(rng, rows):
    make = rng.choice([lambda: rng.getrandbits(62) - (1 << 61), lambda: rng.random() - 0.5,
                       lambda: rng.random() < 0.5, lambda: "\u20ac" * rng.getrandbits(4),
                       lambda: bytes(rng.getrandbits(8) for _ in range(rng.getrandbits(5)))])
    return [None if rng.random() < 0.3 else make() for _ in range(rows)]


def made(seed):
    """A frame made at random: cut, filtered, put together of several."""
    rng = random.Random(seed)
    rows = rng.randrange(1, 40)
    frame = pl.DataFrame({"c%d" % each: column(rng, rows) for each in range(rng.randrange(1, 6))})
    for _ in range(rng.getrandbits(2)):
        way, begin = rng.getrandbits(2), rng.randrange(rows)
        frame = (lambda: frame[begin:], lambda: frame.reverse(),
                 lambda: pl.concat([frame, frame[begin:begin + 3]], rechunk=False),
                 lambda: frame.filter(pl.Series([rng.random() < 0.7 for _ in range(frame.height)])))[way]()
    return frame


class Holder(object):
    def __init__(self, frame):
        self.frame, self.column = frame, frame["loss"]


def show(values, holder, literal, torn):
    globals().update(values)  # noqa: as names that print finds
    sys.stdin.read()


def main():
    values = dict(frames())
    values.update(("made%d" % each, made(each)) for each in range(MANY))
    truth = {name: [frame.shape, [told(each) for each in frame]] for name, frame in values.items()}
    literal = values["plain"].with_columns(pl.lit(7).alias("seven"))
    torn = pl.DataFrame({"a": [1]})
    torn._df = pl.Series([1])._s  # something else than polars keeps there
    print(json.dumps([pl.__version__, truth]))
    sys.stdout.flush()
    show(values, Holder(values["plain"]), literal, torn)


if __name__ == "__main__":
    main()

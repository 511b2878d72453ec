# SPDX-License-Identifier: GPL-3.0-or-later
"""Times in SQL are seconds. A condition that compares one with a text is refused, nothing else is."""

import pytest

import library
import support
import tables


@pytest.fixture(scope="module")
def session(newest):
    """One process, whose threads and start times can be queried."""
    program = support.HERE / "programs" / "evaluated.py"
    with support.Target(newest, program, "idle") as process:
        assert process.line() == "ready"
        with library.Session(process.pid) as opened:
            yield opened


@pytest.mark.parametrize("condition, count", [
    ("start_time < CURRENT_TIMESTAMP", 1),
    ("start_time > CURRENT_TIMESTAMP", 0),
    ("start_time > CURRENT_TIMESTAMP - interval '1 day'", 1),
    ("start_time BETWEEN CURRENT_DATE - 86400 AND CURRENT_DATE + CURRENT_TIME", 1),
    ("start_time > TIMESTAMP '2020-01-02 03:04:05'", 1),
    ("start_time > '1577934245.5'", 1),  # a number
    ("start_time IN ('1577934245.5', 5) OR upper(exe) = 'A'", 0),
    # Texts made of times, or next to times.
    ("time_text(start_time) > '2020-01-02' OR exe = 'x'", 1),
    ("exe IN ('a', 'b', 'c') OR start_time > 5", 1),
    ("CASE WHEN start_time > 5 THEN 'x' ELSE 'y' END = 'x'", 1),
    ("CASE WHEN start_time < 5 THEN 'none' ELSE start_time END = 'none'", 0),
    ("coalesce(exe, start_time) = 'none'", 0),
    ("1 IN (SELECT s > '2020' OR s = 'x' FROM (SELECT time_text(start_time) AS s))", 1),
])
def test_times_compare(target, probing, condition, count):
    process = target("evaluated.py", "idle")
    done = probing(process.pid, "query", "-f", "csv",
                   "SELECT count(*) AS n FROM process.info WHERE " + condition)
    assert (done.code, done.out) == (0, "n\n%d\n" % count), done


@pytest.mark.parametrize("condition", [
    "start_time > '2020-01-02 03:04:05'", "'2020-01-02' < start_time", "start_time = 'now'",
    "start_time BETWEEN '2020-01-02' AND now()", "start_time IN ('now')",
    "start_time = 'now' OR pid = 1"])
def test_times_do_not_compare_with_texts(target, probing, condition):
    """SQLite takes any number for less than any text, which is never intended."""
    process = target("evaluated.py", "idle")
    done = probing(process.pid, "query", "SELECT * FROM process.info WHERE " + condition)
    assert done.code == 2 and not done.out, done
    assert "start_time is a number of seconds since the epoch" in done.err, done
    assert "write TIMESTAMP '2026-01-02 03:04:05'" in done.err, done


# Conditions on texts made of times, and on times beside texts: these must not be refused.
RIGHT = [
    "SELECT max(datetime(start_time, 'unixepoch')) > '2024-01-01' FROM process.threads",
    "SELECT datetime(max(start_time), 'unixepoch') > '2024-01-01' FROM process.threads",
    "SELECT strftime('%Y', max(start_time), 'unixepoch') > '2024' FROM process.threads",
    "SELECT time_text(max(start_time)) > '2024' FROM process.threads",
    "SELECT date(start_time, 'unixepoch') = date('now') FROM process.threads",
    "SELECT start_time > strftime('%s', 'now') FROM process.threads",
    "SELECT start_time > '1577934245.5' FROM process.threads",
    "SELECT coalesce(max(start_time), 'never') = 'never' FROM process.threads",
    "SELECT iif(max(start_time) > 5, 'x', 'y') = 'x' FROM process.threads",
    "SELECT * FROM (SELECT 'newest' AS what, max(start_time) AS t FROM process.threads UNION "
    "ALL SELECT 'oldest', min(start_time) FROM process.threads) WHERE what = 'newest' AND t "
    "> 5",
    "SELECT * FROM (SELECT 'newest' AS what, max(start_time) AS t FROM process.threads UNION "
    "SELECT 'exe', exe FROM process.info) WHERE what = 'exe' OR t = 'x'",
    "SELECT name FROM process.threads GROUP BY name HAVING name > 'a' AND max(start_time) > "
    "5",
    "SELECT name, max(start_time) AS t FROM process.threads GROUP BY name HAVING name IN "
    "('a', 'b', 'c', 'd') OR t > 5",
    "SELECT max(name) > 'a', max(start_time) > 5, min(name) > 'a' FROM process.threads",
    "SELECT count(start_time) > '5' FROM process.threads",
    "SELECT max(start_time) - min(start_time) < '5' FROM process.threads",
    "SELECT printf('%d', max(start_time)) > '2024' FROM process.threads",
    "SELECT max(start_time) || '' > '2024' FROM process.threads",
    "SELECT cast(max(start_time) AS TEXT) > '2024' FROM process.threads",
    "SELECT typeof(max(start_time)) = 'real' FROM process.threads",
    "SELECT hour(max(start_time)) > '5', year(max(start_time)) = '2024' FROM process.threads",
    "SELECT x.name FROM process.threads x JOIN process.threads y ON x.name = y.name WHERE "
    "y.name > 'a' AND x.start_time > 5 ORDER BY y.start_time",
    "SELECT name, lag(name) OVER (ORDER BY start_time) = 'x', lag(start_time) OVER (ORDER BY "
    "name) > 5 FROM process.threads",
    "WITH m AS (SELECT name, max(start_time) AS t FROM process.threads GROUP BY name) SELECT "
    "* FROM m WHERE name = 'x' OR t > now() - interval '5 minutes'",
    "WITH m AS MATERIALIZED (SELECT name, max(start_time) AS t FROM process.threads GROUP BY "
    "name) SELECT * FROM m JOIN process.threads USING (name) WHERE m.name = 'x' OR m.t > "
    "TIMESTAMP '2024-01-01'",
    "SELECT group_concat(start_time) > 'a' FROM process.threads",
    "SELECT DISTINCT x FROM (SELECT start_time AS x FROM process.threads UNION ALL SELECT "
    "'x')",
    "SELECT DISTINCT start_time, name FROM process.threads EXCEPT SELECT 5, 'x'",
    "SELECT name, start_time FROM process.threads ORDER BY name = 'x', start_time",
    "SELECT * FROM (SELECT start_time AS t, name AS n FROM process.threads UNION SELECT 1, "
    "'x' UNION SELECT pid, exe FROM process.info) WHERE n = 'x' OR n IN ('a','b','c') OR t "
    "IN (1, 2, 3)",
    "WITH RECURSIVE r(t, n) AS (SELECT start_time, 'x' FROM process.info UNION ALL SELECT t "
    "- 60, n || 'x' FROM r WHERE n < 'xxxx') SELECT * FROM r WHERE n <> 'y' AND t > 5",
    "SELECT max(start_time) > to_timestamp('2024-01-01') FROM process.threads",
    "SELECT max(start_time) > TIMESTAMP '2024-01-01' FROM process.threads",
    "SELECT max(start_time) > unixepoch('now') FROM process.threads",
    "SELECT max(start_time) > CAST('5' AS INTEGER) FROM process.threads",
    "SELECT max(start_time) IS NULL OR max(start_time) = '' || 5 FROM process.threads",
    "SELECT name, CASE WHEN max(start_time) > 5 THEN 'new' ELSE 'old' END AS age FROM "
    "process.threads GROUP BY name HAVING age = 'new'",
    "SELECT EXISTS (SELECT 1 FROM process.threads t WHERE t.start_time > 5 AND t.name = 'x' "
    "AND EXISTS (SELECT 1 FROM process.info i WHERE i.exe = 'x' OR i.start_time < "
    "t.start_time))",
]


@pytest.mark.parametrize("sql", RIGHT)
def test_texts_that_are_made_of_times_compare(session, sql):
    tables.run(session, sql)

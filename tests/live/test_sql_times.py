# SPDX-License-Identifier: GPL-3.0-or-later
"""Times in SQL are seconds: compared with a text they give nothing or all, so that is refused, and
nothing else is."""

import pytest

import library
import support
import tables


@pytest.fixture(scope="module")
def session(newest):
    """One process, whose threads and what they were started at can be asked for."""
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
    # Texts that are made of times, or stand beside them.
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
    "start_time BETWEEN '2020-01-02' AND now()",
    # Where no constraint of a table tells of it.
    "start_time = 'now' OR pid = 1", "start_time = 'now' OR upper(exe) = 'A'",
    "start_time IN ('now')", "start_time IN ('2020-01-02', '2020-01-03', 'now')",
    "start_time NOT IN ('2020-01-02', '2020-01-03', 'now')", "NOT (start_time > '2020-01-02')",
    "start_time NOT BETWEEN '2020-01-02' AND '2020-01-03'", "start_time > (SELECT '2020-01-02')",
    "start_time IN (SELECT 'now')", "start_time - 60 > '2020-01-02'",
    "start_time > CASE WHEN pid > 1 THEN 'now' ELSE '2020-01-02' END",
    "CASE WHEN start_time > '2020-01-02' THEN 1 ELSE 0 END",
    "pid IN (SELECT pid FROM process.info WHERE start_time > '2020-01-02' OR upper(exe) = 'A')",
    "start_time || '' = 'x' OR start_time IS 'x' OR upper(exe) = 'A'"])
def test_times_do_not_compare_with_texts(target, probing, condition):
    """SQLite takes any number for less than any text, which nobody means."""
    process = target("evaluated.py", "idle")
    done = probing(process.pid, "query", "SELECT * FROM process.info WHERE " + condition)
    assert done.code == 2 and not done.out, done
    assert "start_time is a number of seconds since the epoch" in done.err, done
    assert "write TIMESTAMP '2026-01-02 03:04:05'" in done.err, done


# Of what is made of times: by aggregates and functions, in subqueries, compounds and windows.
WRONG = [
    "SELECT count(*) FROM process.threads HAVING max(start_time) > '2024-01-01'",
    "SELECT tid FROM process.threads GROUP BY tid HAVING min(start_time) < '2024-01-01'",
    "SELECT tid FROM process.threads GROUP BY tid HAVING '2024-01-01' < avg(start_time)",
    "SELECT tid FROM process.threads GROUP BY tid HAVING count(*) > 1 OR max(start_time) IN "
    "('2024-01-01', '2025-01-01', 'now')",
    "SELECT tid FROM process.threads GROUP BY tid HAVING max(start_time) NOT BETWEEN "
    "'2024-01-01' AND '2030-01-01'",
    "SELECT start_time FROM process.threads GROUP BY start_time HAVING count(*) > 5 OR "
    "start_time > '2024-01-01'",
    "SELECT CASE WHEN max(start_time) > '2024-01-01' THEN 1 END FROM process.threads",
    "SELECT max(start_time) FILTER (WHERE tid > 0) > '2024-01-01' FROM process.threads",
    "SELECT max(DISTINCT start_time) > '2024-01-01' FROM process.threads",
    "SELECT (SELECT max(start_time) FROM process.threads) > '2024-01-01'",
    "SELECT 1 WHERE (SELECT max(start_time) - 60 FROM process.threads) > '2024-01-01'",
    "SELECT median(start_time) > '2024-01-01' FROM process.threads",
    "SELECT percentile_cont(start_time, 0.5) > '2024-01-01' FROM process.threads",
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY start_time) > '2024-01-01' FROM "
    "process.threads",
    "SELECT date_trunc('day', start_time) > '2024-01-01' FROM process.threads",
    "SELECT round(max(start_time), 1) > '2024-01-01' FROM process.threads",
    "SELECT cast(max(start_time) AS INTEGER) > '2024-01-01' FROM process.threads",
    "SELECT coalesce(max(start_time), 0) > '2024-01-01' FROM process.threads",
    "SELECT * FROM (SELECT min(start_time) AS t FROM process.threads) WHERE t < '2024-01-01'",
    "WITH s AS (SELECT tid, min(start_time) AS t FROM process.threads GROUP BY tid) SELECT * "
    "FROM s WHERE t < '2024-01-01'",
    "WITH s AS MATERIALIZED (SELECT tid, min(start_time) AS t FROM process.threads GROUP BY "
    "tid) SELECT * FROM s WHERE tid > 0 AND t < '2024-01-01'",
    "WITH s(a, b) AS (SELECT tid, max(start_time) FROM process.threads GROUP BY tid) SELECT "
    "x.a FROM s x JOIN s y ON x.a = y.a WHERE y.b > '2024-01-01'",
    "SELECT * FROM (SELECT start_time AS t FROM process.threads UNION SELECT start_time FROM "
    "process.info) WHERE t > '2024-01-01'",
    "SELECT * FROM (SELECT start_time AS t FROM process.threads UNION ALL SELECT start_time "
    "FROM process.info) WHERE t > '2024-01-01' OR t = 5",
    "SELECT * FROM (SELECT start_time AS t FROM process.threads EXCEPT SELECT start_time "
    "FROM process.info) WHERE t > '2024-01-01'",
    "SELECT * FROM (SELECT start_time AS t FROM process.threads INTERSECT SELECT start_time "
    "FROM process.info) WHERE t > '2024-01-01'",
    "SELECT * FROM (SELECT start_time AS t FROM process.threads UNION SELECT NULL UNION "
    "SELECT 0) WHERE t > '2024-01-01'",
    "SELECT * FROM (SELECT start_time AS t FROM process.threads ORDER BY t LIMIT 3) WHERE t "
    "> '2024-01-01'",
    "SELECT * FROM (SELECT DISTINCT start_time AS t FROM process.threads) WHERE t > "
    "'2024-01-01' OR t = 1",
    "SELECT * FROM (SELECT max(start_time) OVER (ORDER BY tid) AS t FROM process.threads) "
    "WHERE t > '2024-01-01'",
    "SELECT * FROM (SELECT first_value(start_time) OVER (ORDER BY tid) AS t FROM "
    "process.threads) WHERE t > '2024-01-01'",
    "SELECT * FROM (SELECT lag(start_time) OVER (ORDER BY tid) AS t FROM process.threads) "
    "WHERE t > '2024-01-01'",
    "SELECT * FROM (SELECT avg(start_time) OVER (ORDER BY tid ROWS 2 PRECEDING) AS t FROM "
    "process.threads) WHERE t > '2024-01-01'",
    "WITH a(t) AS MATERIALIZED (SELECT max(start_time) FROM process.threads), b(u) AS "
    "MATERIALIZED (SELECT '2024' UNION ALL SELECT '2025') SELECT * FROM b JOIN a ON a.t = "
    "b.u",
    "WITH a(x) AS (VALUES ('2024-01-01')) SELECT * FROM process.threads, a WHERE start_time "
    "> x",
    "WITH a(t,x) AS (VALUES ('2024-01-01',1)) SELECT * FROM a LEFT JOIN (SELECT "
    "max(start_time) m, tid FROM process.threads GROUP BY tid) ON m = t",
    "SELECT tid FROM process.threads WHERE start_time = (SELECT max(t) FROM (SELECT "
    "'2024-01' AS t))",
    "SELECT max(start_time) > '1577934245.5' FROM process.threads",
    "SELECT start_time > datetime('now', '-5 minutes') FROM process.threads",
    "SELECT * FROM process.threads WHERE start_time > datetime('now', '-5 minutes')",
    "SELECT max(start_time) > date('now') FROM process.threads",
    "SELECT tid FROM process.threads ORDER BY start_time > '2024-01-01'",
    "WITH RECURSIVE r(t, n) AS (SELECT start_time, 1 FROM process.info UNION ALL SELECT t - "
    "60, n + 1 FROM r WHERE n < 3) SELECT * FROM r WHERE t < '2024-01-01'",
    "SELECT EXISTS (SELECT tid FROM process.threads GROUP BY tid HAVING max(start_time) > "
    "'2024-01-01')",
    "SELECT max(t) > '2024-01-01' FROM (SELECT name, max(coalesce(start_time, 0)) AS t "
    "FROM process.threads GROUP BY name)",
    "SELECT max(timestamp) > '2024-01-01' FROM memory_usage",
    "SELECT max(timestamp) AS newest FROM memory_usage HAVING newest > '2024-01-01'",
]

# Texts that are made of times, or stand beside them; and times that are compared with times.
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


@pytest.mark.parametrize("sql", WRONG)
def test_what_is_made_of_times_does_not_compare_with_texts(session, sql):
    with pytest.raises(library.Error) as caught:
        tables.run(session, sql)
    assert caught.value.code == library.USAGE
    assert "is a number of seconds since the epoch, and" in str(caught.value)


@pytest.mark.parametrize("sql", RIGHT)
def test_texts_that_are_made_of_times_compare(session, sql):
    tables.run(session, sql)


def test_the_message_says_what_to_write(probing, target):
    process = target("evaluated.py", "idle")
    for sql, words in [
            ("max(start_time) > '2024-01-01'", ["'2024-01-01' a text", "write TIMESTAMP '2026-"]),
            ("max(start_time) > '1577934245'", ["'1577934245' in quotes a text here",
                                                "write the number without quotes"]),
            ("max(start_time) > datetime('now')", ["datetime() gives a text", "or now()"])]:
        done = probing(process.pid, "query", "SELECT %s FROM process.threads" % sql)
        assert done.code == 2 and not done.out, done
        for each in ["start_time is a number of seconds since the epoch"] + words:
            assert each in done.err, done

# SPDX-License-Identifier: GPL-3.0-or-later
"""Statements about steps read only the relevant part of a table, with the same results as a full scan."""
import itertools

import pytest

import clickhouse_server
from clickhouse_server import needs_clickhouse
from test_clickhouse import AGENT, PACKAGE, ask, ship

pytestmark = needs_clickhouse
JOB = "torch 10.1.2.3:29500"
ROWS = 400000
# A row in 100 has no step, and one in 50 no rank.
FILL = """INSERT INTO ordered.main_training_logs (job, rank, step, loss, duration, _ring, _row) SELECT
if(n %% 2, '%s', 'other'), if(n %% 50, n %% 8, NULL), if(n %% 100, intDiv(n, 10), NULL), n, n * 0.5, 7, n
FROM (SELECT number AS n FROM system.numbers LIMIT %d)"""


@pytest.fixture(scope="module")
def server():
    with clickhouse_server.running() as running:
        yield running


@pytest.fixture
def filled(server, target, tmp_path):
    """Made by a real ring, so that we choose the order."""
    if not server.rows("SELECT name FROM system.databases WHERE name = 'ordered'"):
        data = tmp_path / "data"
        data.mkdir(mode=0o700)
        process = target("own_events.py", PACKAGE,
                         env={"PROBING_DATA_DIR": str(data), "PROBING_AGENT": str(AGENT)})
        done = ship(tmp_path, "--to", server.url("ordered"), "--once", process.pid)
        assert done.returncode == 0, done
        server.ask(FILL % (JOB, ROWS))
        server.ask("OPTIMIZE TABLE ordered.main_training_logs FINAL")
    return server


def marks(server):
    """How many parts of some 8,192 rows each statements have read so far."""
    row, = server.rows("SELECT sum(value) AS n FROM system.events WHERE event = 'SelectedMarks'")
    return row["n"]


@pytest.mark.parametrize("condition, most", [
    ("step = 7000", 8),
    ("7 < 8 AND step BETWEEN 7000 AND 7010", 8),
    ("loss > 1 AND step >= 7000 AND step < 7010 AND rank = 3", 8),
    ("loss BETWEEN 1 AND 1e9 AND step IN (7000, 20000)", 12),
    ("step > 39900", 8),
    ("NOT (step = 7000)", 1000),
])
@pytest.mark.parametrize("job", ["", JOB])
def test_the_order_is_used(filled, condition, most, job):
    sql = "SELECT count(*) AS n FROM training_logs WHERE %s"
    before = marks(filled)
    ask(filled, "ordered", sql % "loss >= 0", job=job)
    whole = marks(filled) - before
    before = marks(filled)
    ask(filled, "ordered", sql % condition, job=job)
    read = marks(filled) - before
    assert whole > (20 if job else 40) and read <= min(most, whole), (read, whole)


CONDITIONS = ["step = 7", "step > 39990", "step <= 3", "step BETWEEN 100 AND 103", "step IN (5, 6, -1)", "step = -1",
              "step IS NULL", "rank = 3", "rank < 2", "loss < 30"]


def test_the_same_rows_are_found(filled):
    """Beside the server's own answer: with NOT, OR, CASE and parentheses, where NULL is not false."""
    statements = ["%s AND %s", "%s OR %s", "NOT (%s AND %s)", "(%s) AND NOT %s", "NOT %s AND %s",
                  "CASE WHEN %s AND %s THEN 0 ELSE 1 END", "loss BETWEEN 3 AND %s AND %s"]
    for form, (a, b) in itertools.product(statements, itertools.permutations(CONDITIONS, 2)):
        where = form % (a, b)
        sql = "SELECT count(*) AS n, sum(loss) AS s FROM %s WHERE " + where + " AND 1"
        if hash_of(where) % 4:  # a part of them, the same in each run
            continue
        try:
            there = filled.rows(sql % "ordered.main_training_logs")
        except AssertionError:  # it is none, such as one BETWEEN in another
            continue
        assert ask(filled, "ordered", sql % "main.training_logs") == there, where


def hash_of(text):
    return sum(text.encode())


def test_other_forms_stay_as_they_are(filled):
    """Aliases, subqueries, WITH, and columns of other tables."""
    for sql, n in (("SELECT count(*) AS n FROM training_logs AS t WHERE t.step = 7 AND t.loss > 0", 10),
                   ("SELECT sum(n) AS n FROM (SELECT count(*) AS n FROM training_logs WHERE step = 7 UNION ALL "
                    "SELECT count(*) AS n FROM training_logs WHERE step = 8)", 20),
                   ("WITH few AS (SELECT step, loss FROM training_logs WHERE step BETWEEN 7 AND 8) SELECT count(*) "
                    "AS n FROM few WHERE step = 8", 10),
                   ("SELECT count(*) AS n FROM (SELECT count(*) AS step FROM training_logs) WHERE step > 5", 1),
                   ("SELECT count(*) AS n FROM training_logs WHERE step = 7 + 1", 10),
                   ("SELECT count(*) AS n FROM training_logs WHERE step = 8 = 1", 10),
                   ("SELECT count(*) AS n FROM training_logs a JOIN training_logs b ON a.loss = b.loss WHERE "
                    "a.step = 7", 10)):
        assert ask(filled, "ordered", sql) == [{"n": n}], sql

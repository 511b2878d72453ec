# SPDX-License-Identifier: GPL-3.0-or-later
"""GROUP BY over a ring, which collects groups in place of sorting rows: as SQLite does it."""

import json
from pathlib import Path

import pytest
import support

PACKAGE = Path(__file__).resolve().parents[3] / "package"
AGENT = Path(support.BINARY).with_name("libprobing-agent.so")
ROWS = 3000
WRITE = """
import sys
sys.path.insert(0, %r)
import probing
table = probing.table("grouped", "i integer, r real, t text, n integer")
texts = [None, "", "a", "A", "b" * 900, "b" * 899, "\u00e4", "z"]
integers = [None, 0, -1, 2 ** 62, 2 ** 62 + 1, -2 ** 63, 7]
reals = [None, 0.0, -0.0, 1.5, float("inf"), -2.0 ** 62, 7.0, 1e-300, float("nan")]
for n in range(%d):
    assert table.append(integers[n %% 7], reals[n %% 9], texts[n * n %% 8], n)
print(table.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def ring(newest, tmp_path_factory):
    folder = tmp_path_factory.mktemp("groups") / "data"
    folder.mkdir(mode=0o700)
    with support.Program([newest.exe, "-c", WRITE % (str(PACKAGE), ROWS)], env=dict(
            newest.env, PROBING_DATA_DIR=str(folder), PROBING_AGENT=str(AGENT))) as process:
        yield process.line()


def query(probing, ring, sql, code=0):
    done = probing(ring, "query", "-f", "json", sql)
    assert done.code == code, done
    return json.loads(done.out) if not code else done.err


WHAT = "count(*) AS c, sum(n) AS s, min(n) AS first, max(t) AS most, total(r * 0) AS zero, " \
    "count(DISTINCT i) AS d"
CASES = [["i"], ["r"], ["t"], ["n % 5", "i"], ["i", "r"], ["t", "i", "r"], ["n"], ["tid"], ["role"]]


@pytest.mark.parametrize("where", ["1", "n % 3 = 1", "n < 0", "timestamp > 0 AND t > 'a'"])
def test_groups_are_those_of_sqlite(probing, ring, where):
    for columns in CASES:
        shown = ", ".join("%s + 0.0 AS shown" % each if each == "r" else each for each in columns)
        sql = "SELECT %s, %s FROM user.grouped WHERE %s GROUP BY %s"
        ours = query(probing, ring, sql % (shown, WHAT, where, ", ".join(columns)))
        # A sign keeps the columns from reaching the table.
        theirs = query(probing, ring, sql % (shown, WHAT, where, ", ".join("+" + c for c in columns)))
        assert ours == theirs, columns
        order = " ORDER BY %s" % ", ".join("%s DESC" % each for each in columns)
        ours = query(probing, ring, (sql % (shown, WHAT, where, ", ".join(columns))) + order)
        assert ours == theirs[::-1], columns


def test_the_rows_of_a_group_come_in_their_order(probing, ring):
    rows = query(probing, ring, "SELECT t, group_concat(n) AS all_of_it FROM user.grouped GROUP BY t")
    for row in rows:
        numbers = [int(word) for word in row["all_of_it"].split(",")]
        assert numbers == sorted(numbers)
    assert sum(len(row["all_of_it"].split(",")) for row in rows) == ROWS


def test_groups_in_a_join_and_in_a_subquery(probing, ring):
    both = "SELECT a.i, count(*) AS c FROM user.grouped a JOIN user.grouped b ON a.n = b.n " \
        "WHERE a.n < 40 GROUP BY %sa.i"
    assert query(probing, ring, both % "") == query(probing, ring, both % "+")
    inner = "SELECT max(c) AS m FROM (SELECT t, count(*) AS c FROM user.grouped GROUP BY %st)"
    assert query(probing, ring, inner % "") == query(probing, ring, inner % "+")
    limited = "SELECT t, count(*) AS c FROM user.grouped GROUP BY %st HAVING c > 10 LIMIT 2 OFFSET 1"
    assert query(probing, ring, limited % "") == query(probing, ring, limited % "+")


def test_groups_are_bounded_in_memory(probing, ring):
    done = probing(ring, "query", "SET probing.query.memory = 1; SELECT n, t, count(*) FROM user.grouped "
                   "GROUP BY n, t")
    assert done.code == 1 and "takes more than 1 MiB of memory" in done.err, done

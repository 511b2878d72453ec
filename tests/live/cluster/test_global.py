# SPDX-License-Identifier: GPL-3.0-or-later
"""`cluster query` over tables global.SCHEMA.TABLE: rows of all ranks of all hosts, and the hosts that
answered."""
import json
import os
import pathlib
import socket
import tempfile

import pytest

import jobs
import support

PYTHON = "/usr/bin/python3"
OK, FAILED, USAGE = 0, 1, 2
USERS = (2001, 2001, 2002)


def rows(*words, env=None):
    done = jobs.cluster("cluster", "query", "--json", *words, env=env)
    assert done.returncode == OK, done
    return json.loads(done.stdout), done.stderr


def test_ranks_of_this_machine():
    with jobs.ranks(PYTHON, 3, ROLE_NAME="trainer", GROUP_RANK="4") as ranks:
        found, receipt = rows("SELECT _host, _addr, _rank, _local_rank, _node_rank, _role, _pid, value "
                              "FROM global.python.locals WHERE name = 'loss' ORDER BY _rank", jobs.ADDRESS)
        assert found == [
            {"_host": socket.gethostname(), "_addr": str(each.pid), "_rank": rank,
             "_local_rank": rank, "_node_rank": 4, "_role": "trainer", "_pid": each.pid,
             "value": str(rank)} for rank, each in enumerate(ranks)]
        assert receipt.splitlines()[:2] == [
            "3 of 3 ranks answered: 0-2",
            "each ran: SELECT _rank, _pid, \"name\", \"value\" FROM python.locals WHERE (name = 'loss')"]
        assert receipt.splitlines()[2].startswith("3 rows came, ")

        # A join between ranks, an aggregate, a name in a text, and no such table.
        found, _ = rows("""SELECT a._rank AS one, b._rank AS other, 'global.python.x' AS text
                           FROM global.python.backtrace a JOIN global.python.backtrace b
                           ON a.func = b.func AND a._rank < b._rank WHERE a.depth = 0
                           ORDER BY 1, 2 -- global.python.y""", jobs.ADDRESS)
        assert [(row["one"], row["other"]) for row in found] == [(0, 1), (0, 2), (1, 2)]
        assert found[0]["text"] == "global.python.x"
        found, _ = rows("SELECT count(DISTINCT _rank) AS ranks, count(*) AS n FROM global.python.threads",
                        jobs.ADDRESS)
        assert found == [{"ranks": 3, "n": 3}]
        none = jobs.cluster("cluster", "query", "SELECT 1 FROM global.python.nothing", jobs.ADDRESS)
        assert none.returncode == FAILED and "no process has a table python.nothing" in none.stderr


# The columns and the rest of a statement, and how many rows come for it from three ranks that have
# three frames each: with the whole of it left to them, and without.
SPLIT = [
    ("count(*), sum(lineno), min(func), max(depth), avg(lineno), total(depth)", "", 3, 9),
    ("func, count(*) AS n, avg(depth)", "WHERE func LIKE '%t%' GROUP BY func HAVING n > 1 ORDER BY 1 LIMIT 1", 6, 9),
    ("approx_count_distinct(func || _rank), approx_quantile(lineno, 0.9) + 1 AS high", "WHERE depth < 2", 3, 9),
    ("depth, approx_quantile(_rank, 0.5)", "GROUP BY depth ORDER BY 1", 9, 9),
    ("approx_quantile(lineno, 0.5), approx_quantile(lineno, depth)", "", 9, 9),
    ("_role, max(_rank), count(DISTINCT func)", "GROUP BY _role", 9, 9),
    ("_rank, count(*) + 1", "WHERE depth = 7 GROUP BY 1", 0, 0),
    ("count(*), sum(depth)", "WHERE depth = 7", 0, 0),
    ("func", "WHERE depth < 2 ORDER BY _rank, depth", 6, 9),
    ("count(*) > 0", "LIMIT 1", 3, 9),
    ("upper(substr(func, 1, 1)) AS letter, count(*)", "GROUP BY letter ORDER BY 2 DESC, 1", 9, 9),
    ("median(depth)", "WHERE depth > 0", 6, 9),
]


def test_what_the_ranks_do_by_themselves():
    with jobs.ranks(PYTHON, 3, ROLE_NAME="trainer"):
        for columns, rest, few, all_rows in SPLIT:
            sql = "SELECT %s FROM global.python.stacks %s" % (columns, rest)
            split, receipt = rows(sql, jobs.ADDRESS)
            # A subquery is not split, conditions with constants apart.
            whole, slow = rows(sql.replace("global.python.stacks", "(SELECT * FROM global.python.stacks)"),
                               jobs.ADDRESS)
            assert split == whole, (sql, split, whole)
            assert " %d row" % few in receipt.replace("\n", " "), (sql, receipt)
            assert " %d row" % all_rows in slow.replace("\n", " "), (sql, slow)
        found, receipt = rows("SELECT func FROM global.python.stacks LIMIT 2", jobs.ADDRESS)
        assert len(found) == 2 and "python.stacks LIMIT 2\n" in receipt
        # In a join, conditions with constants.
        found, receipt = rows("SELECT a.func FROM global.python.stacks a JOIN global.python.stacks b ON a.func = "
                              "b.func WHERE a.depth = 0 AND b._rank = 1 AND a._rank >= 2", jobs.ADDRESS)
        assert found == [{"func": "step"}]
        assert sorted(line.split(" WHERE ")[1] for line in receipt.splitlines() if "each ran" in line) == [
            "\"_rank\" = 1", "\"depth\" = 0 AND \"_rank\" >= 2"], receipt
        # Errors refer to the statement as written.
        wrong = jobs.cluster("cluster", "query", "SELECT count(nowhere) FROM global.python.stacks", jobs.ADDRESS)
        assert wrong.returncode in (FAILED, USAGE) and "no such column: nowhere" in wrong.stderr, wrong


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_ranks_of_several_hosts():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        odd = folder / "odd.json"
        odd.write_text('[{"_rank": 77, "_pid": "x", "func": {"a": 1}}, 5, null]')
        env = jobs.reach_hosts(folder, jobs.SSH % odd)
        sql = "SELECT _host, _rank, func FROM global.python.backtrace WHERE depth = 0 ORDER BY _rank"
        with jobs.ranks(PYTHON, 3, USERS) as ranks:
            found, receipt = rows(sql, jobs.ADDRESS, "--hosts", "node2001,node2002,nowhere", env=env)
            assert [(row["_host"], row["_rank"], row["func"]) for row in found] == [
                ("node2001", 0, "step"), ("node2001", 1, "step"), ("node2002", 2, "step")]
            assert "3 of 3 ranks answered: 0-2\n" in receipt
            assert "nowhere: ssh: Could not resolve hostname nowhere\n" in receipt
            strict = jobs.cluster("cluster", "query", sql, jobs.ADDRESS, "--strict", "--hosts",
                                  "node2001,nowhere", env=env)
            assert strict.returncode == FAILED and "nowhere: ssh: Could not" in strict.stderr
            assert "step" not in strict.stdout
            part = jobs.cluster("cluster", "query", sql, jobs.ADDRESS, "--strict", "--hosts", "node2001",
                                env=env)
            assert part.returncode == FAILED and "2 of 3 ranks answered" in part.stderr
            # A hostile host's messages are quoted as its own.
            found, _ = rows(sql.replace("WHERE depth = 0", ""), jobs.ADDRESS, "--hosts", "odd,node2002",
                            env=env)
            assert {row["_host"] for row in found} == {"odd", "node2002"}
            assert next(row for row in found if row["_rank"] == 77)["func"] is None
            assert ranks[0].pid
        usage = jobs.cluster("cluster", "query", "SELECT 1 FROM python.threads", "--hosts", "node2001",
                             env=env)
        assert usage.returncode == USAGE and "global.SCHEMA.TABLE" in usage.stderr

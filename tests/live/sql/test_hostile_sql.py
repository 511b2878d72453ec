# SPDX-License-Identifier: GPL-3.0-or-later
"""SQL that means harm, or would do some by a slip: it is refused or ends within bounds."""

import os
import subprocess
import sys
from pathlib import Path

import library
import pytest
import support
from library import Error, Session

FOREVER = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "

FORBIDDEN = [
    "ATTACH '/tmp/probing-hostile' AS evil",
    "ATTACH ':memory:' AS evil",
    "DETACH python",
    "CREATE TABLE t(x)",
    "CREATE TEMP TABLE t(x)",
    "CREATE VIEW v AS SELECT 1",
    "CREATE TEMP VIEW v AS SELECT 1",
    "CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END",
    "CREATE VIRTUAL TABLE t USING prb",
    "CREATE VIRTUAL TABLE python.stacks2 USING prb",
    "CREATE VIRTUAL TABLE temp.t USING fts5(x)",
    "CREATE TABLE t AS SELECT * FROM generate_series(1, 3)",
    "DROP TABLE python.stacks",
    "ALTER TABLE python.stacks RENAME TO x",
    "DELETE FROM python.stacks",
    "DELETE FROM sqlite_master",
    "UPDATE python.sqlite_master SET sql = 'x'",
    "INSERT INTO sqlite_master VALUES (1, 2, 3, 4, 5)",
    "INSERT INTO python.threads(tid) VALUES (1)",
    "REPLACE INTO python.threads(tid) VALUES (1)",
    "PRAGMA writable_schema = 1",
    "PRAGMA writable_schema",
    "PRAGMA temp_store_directory = '/tmp'",
    "PRAGMA journal_mode = WAL",
    "PRAGMA mmap_size = 1000000000",
    "PRAGMA trusted_schema = 1",
    "PRAGMA hard_heap_limit = 1",
    "PRAGMA soft_heap_limit = 1",
    "PRAGMA query_only = 0",
    "PRAGMA module_list",
    "SELECT load_extension('/tmp/evil.so')",
    "SELECT readfile('/etc/passwd')",
    "SELECT writefile('/tmp/probing-hostile', 'x')",
    "SELECT edit('x')",
    "SELECT fts3_tokenizer('simple', x'0000000000000000')",
    "SELECT * FROM fsdir('/')",
    "SELECT * FROM pragma_writable_schema",
    "SELECT * FROM pragma_module_list",
    "VACUUM",
    "REINDEX",
    "reindex main",
    "VACUUM INTO '/tmp/probing-hostile'",
    "ANALYZE",
    "BEGIN",
    "COMMIT",
    "SAVEPOINT x",
    "SELECT * FROM prb",
    "SELECT * FROM python.prb",
    "SELECT * FROM dbstat",
    "SELECT * FROM sqlite_dbpage",
    "SELECT * FROM sqlite_stmt",
]


@pytest.fixture(scope="module")
def session():
    with Session(os.getpid()) as opened:
        opened.set("probing.query.timeout", "20")
        opened.set("probing.query.memory", "64")
        yield opened


@pytest.mark.parametrize("sql", FORBIDDEN)
def test_writing_and_reaching_out_is_refused(session, sql):
    with pytest.raises(Error) as caught:
        session.query(sql)
    assert caught.value.code == library.USAGE, caught.value
    assert not Path("/tmp/probing-hostile").exists()
    assert session.query("SELECT count(*) > 0 FROM python.threads") == [(1,)]


COSTLY = {
    "endless": FOREVER + "SELECT max(x) FROM n",
    "endless sort": FOREVER + "SELECT x FROM n ORDER BY x DESC",
    "endless group": FOREVER + "SELECT count(*) FROM n GROUP BY x % 100000000",
    "endless text": FOREVER + "SELECT group_concat(x) FROM n",
    "endless distinct": FOREVER + "SELECT DISTINCT hex(randomblob(16)) FROM n LIMIT 100000000, 1",
    "growing text": "WITH RECURSIVE n(x) AS (SELECT 'x' UNION ALL SELECT x || x FROM n) "
                    "SELECT max(length(x)) FROM n",
    "large blob": "SELECT zeroblob(1000000000)",
    "large text": "SELECT printf('%1000000000d', 1)",
    "large hex": "SELECT hex(zeroblob(60000000))",
    "replaced": "SELECT replace(hex(zeroblob(100000)), '0', hex(zeroblob(1000)))",
    "cross join": "SELECT count(*) FROM generate_series(1, 1000000) a, "
                  "generate_series(1, 1000000) b, generate_series(1, 1000000) c",
    "median of many": "SELECT median(value) FROM generate_series(1, 100000000)",
    "percentile of groups": "SELECT value % 1000000, median(value) "
                            "FROM generate_series(1, 1000000000) GROUP BY 1",
    "window": "SELECT sum(value) OVER (ORDER BY value DESC) FROM generate_series(1, 1000000000)",
    "long series": "SELECT sum(value) FROM generate_series(-9223372036854775808, "
                   "9223372036854775807)",
    "like bomb": "SELECT '%s' LIKE '%s'" % ("a" * 50000, "%a" * 400 + "b"),
    "glob bomb": "SELECT '%s' GLOB '%s'" % ("a" * 50000, "*a" * 400 + "b"),
    "regex bomb": "SELECT '%s' REGEXP '(a+)+$'" % ("a" * 5000 + "!"),
    "regex nesting": "SELECT 'x' REGEXP '%s'" % ("(" * 5000 + ")" * 5000),
    "regex repetition": "SELECT 'x' REGEXP '((((a{1,100}){1,100}){1,100}){1,100})'",
    "deep expression": "SELECT " + "(" * 5000 + "1" + ")" * 5000,
    "deep operators": "SELECT " + "-" * 5000 + "1",
    "long and": "SELECT " + " AND ".join(["1"] * 50000),
    "wide result": "SELECT " + ", ".join(["1"] * 5000),
    "many unions": " UNION ALL ".join(["SELECT 1"] * 5000),
    "many arguments": "SELECT max(%s)" % ", ".join(["1"] * 5000),
    "deep subqueries": "SELECT * FROM (" * 300 + "SELECT 1" + ")" * 300,
    "long literal": "SELECT '%s'" % ("x" * 3000000),
    "long names": "SELECT 1 AS \"%s\" FROM \"%s\"" % ("x" * 400000, "y" * 400000),
    "many joins": "SELECT count(*) FROM " + ", ".join(
        "python.stacks s%d" % i for i in range(70)),
    "many ctes": "WITH " + ", ".join(
        "c%d AS (SELECT 1 FROM %s)" % (i, "c%d a, c%d b" % (i - 1, i - 1) if i else
                                       "generate_series(1, 10)") for i in range(60)) +
                 " SELECT count(*) FROM c59",
    "json": "SELECT json_extract('%s', '$')" % ("[" * 5000 + "]" * 5000),
}

RUN = """
import resource, sys
sys.path.insert(0, %r)
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
from library import Error, Session
with Session() as session:
    session.set("probing.query.timeout", "0.5")
    session.set("probing.query.memory", "256")
    for statement in sys.stdin.read().split("\\0"):
        try:
            rows = session.query(statement, on_row=lambda row: 0)
            print("rows", sum(len(repr(row)) for row in rows))
        except Error as error:
            print("error", error.code, str(error)[:100])
    assert session.query("SELECT 1") == [(1,)]
# Of this program: what getrusage() says has the parent's, too.
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""


@pytest.mark.parametrize("name", COSTLY)
def test_costly_statements_end_within_bounds(name):
    """In 2 GiB of address space, by the timeout or a limit at the latest, and the session lives."""
    here = str(support.HERE)
    sql = COSTLY[name].replace("python.stacks", "generate_series(1, 3)") \
        if name == "many joins" else COSTLY[name]
    result = subprocess.run([sys.executable, "-c", RUN % here], input=sql, text=True, check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)
    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stdout.startswith(("rows", "error")), result.stdout
    assert int(result.stdout.splitlines()[-1]) < 1200 * 1024


def test_no_nul_in_a_statement():
    with Session() as session:
        assert session.query(b"SELECT 1\0 FROM nowhere") == [(1,)]

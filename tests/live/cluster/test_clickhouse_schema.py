# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables that are older than the daemon, bounds, shards; statements that mean the same on both sides."""
import os
import random
import subprocess
import time

import pytest

import clickhouse_server
import support
from clickhouse_server import needs_clickhouse
from test_clickhouse import AGENT, PACKAGE, Writer, ask, count, daemon, ship, wait_for

pytestmark = needs_clickhouse


@pytest.fixture(scope="module")
def server():
    with clickhouse_server.running() as running:
        yield running


@pytest.fixture
def writer(target, tmp_path):
    return Writer(target, tmp_path / "data", RANK="3", WORLD_SIZE="4", MASTER_ADDR="10.1.2.12",
                  MASTER_PORT="29500")


OLD = """CREATE TABLE %s.user_stored (job String, host String, uid UInt32, pid UInt32, tid UInt32,
timestamp Float64, `_ring` UInt64, `_row` UInt64, `_shipped` Date, number Nullable(Int64))
ENGINE = MergeTree PARTITION BY _shipped ORDER BY (job, _ring, _row)"""


def test_an_older_table_gets_what_it_lacks(server, writer, tmp_path):
    """Columns that an older version had not, with the rows that were there."""
    server.ask("CREATE DATABASE older")
    server.ask(OLD % "older")
    server.ask("INSERT INTO older.user_stored (job, number, _row, _shipped) VALUES ('old', -5, 1, today())")
    writer.write(100)
    done = ship(tmp_path, "--to", server.url("older"), "--once", writer.pid)
    assert done.returncode == 0 and " 100 rows of 1 rings" in done.stderr, done
    assert ask(server, "older", "SELECT count(*) AS n, max(rank) AS rank, max(kind) AS kind, min(number) AS "
               "low FROM user.stored") == [{"n": 101, "rank": 3, "kind": "kind6", "low": -5}]


def test_columns_of_other_types_are_not_written_to(server, writer, tmp_path):
    """Bytes of a Float64 in a column of DateTime would be other times."""
    server.ask("CREATE DATABASE strange")
    server.ask((OLD % "strange").replace("timestamp Float64", "timestamp DateTime"))
    writer.write(1)
    done = ship(tmp_path, "--to", server.url("strange"), "--once", writer.pid)
    assert "the column timestamp of user_stored has to be Float64" in done.stderr, done
    assert "1 rings were refused" in done.stderr and count(server, "strange.user_stored") == 0, done


def test_a_newer_table_is_written_to(server, writer, tmp_path):
    """Columns that this version does not know, texts that are numbered, and types that no ring has."""
    server.ask("CREATE DATABASE newer")
    table = OLD.replace("job String", "job LowCardinality(String), later Array(String) DEFAULT ['x'], code "
                        "FixedString(2)").replace("number Nullable(Int64)", "number DateTime, number__real "
                        "Nullable(Float64), kind LowCardinality(Nullable(String)), text String")
    server.ask(table % "newer", allow_experimental_low_cardinality_type="1")
    writer.write(100)
    done = ship(tmp_path, "--to", server.url("newer"), "--once", writer.pid)
    assert done.returncode == 0 and " 100 rows of 1 rings" in done.stderr, done
    assert server.rows("SELECT DISTINCT later, text, toUInt32(number) AS number, number__real AS real, job FROM "
                       "newer.user_stored") == [{"later": ["x"], "text": "", "number": 0, "real": None,
                                                 "job": "torch 10.1.2.12:29500"}]
    assert ask(server, "newer", "SELECT max(number__integer) AS high, max(text__text) AS text, count(DISTINCT "
               "kind) AS kinds FROM user.stored") == [{"high": 99, "text": "x" * 49, "kinds": 7}]


def test_a_table_that_takes_nothing_keeps_no_other_back(server, target, tmp_path):
    """A table with a wrong schema: its rows wait until it is corrected, and metrics still come."""
    writer = Writer(target, tmp_path / "data")
    writer.write(100)
    server.ask("CREATE DATABASE blocked")
    server.ask("CREATE TABLE blocked.user_stored (number Nullable(Int64)) ENGINE = Memory")
    done = ship(tmp_path / "once", "--to", server.url("blocked"), "--once", writer.pid)
    assert done.returncode == 1 and "ClickHouse: " in done.stderr, done
    with daemon(tmp_path, "--to", server.url("blocked"), "--every", "100ms", "--metrics", "100ms", writer.pid) as start:
        start()
        wait_for(lambda: count(server, "blocked.probing_metrics"), start.log.read_text)
        assert "user_stored: ClickHouse: " in start.log.read_text() and "; its rows wait" in start.log.read_text()
        server.ask("DROP TABLE blocked.user_stored")
        wait_for(lambda: count(server, "blocked.user_stored") == 100, start.log.read_text)
        server.ask("DROP DATABASE blocked")
        writer.write(10)
        wait_for(lambda: count(server, "blocked.user_stored") in (10, 110), start.log.read_text)


def test_old_days_go_and_others_stay(server, writer, tmp_path):
    """`node --keep-days`: by the day on which rows were sent."""
    writer.write(10)
    assert ship(tmp_path, "--to", server.url("days"), "--once", writer.pid).returncode == 0
    for days in (10, 29, 31, 40):
        server.ask("INSERT INTO days.user_stored (number, _shipped) VALUES (-%d, today() - %d)" % (days, days))
    with daemon(tmp_path, "--to", server.url("days"), "--every", "100ms", "--keep-days", "30",
                command=("node",), data=tmp_path / "data") as start:
        start()
        wait_for(lambda: count(server, "days.user_stored WHERE number IN (-31, -40)") == 0,
                 start.log.read_text)
        assert count(server, "days.user_stored WHERE number IN (-10, -29)") == 2
        assert count(server, "days.user_stored WHERE pid = %d" % writer.pid) == 10


RANDOM = """
import random, sys
sys.path.insert(0, sys.argv[1])
import probing
table = probing.table("stored", "number integer, text text")
number = 0
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        table.append(number, "%0200x" % random.getrandbits(800))
        number += 1
    print(number, flush=True)
"""


@pytest.fixture
def noise(newest, tmp_path):
    """A process whose rows do not get smaller when they are packed."""
    file, data = tmp_path / "noise.py", tmp_path / "data"
    file.write_text(RANDOM)
    data.mkdir(mode=0o700)
    with support.Program([newest.exe, file, PACKAGE], env=dict(
            newest.env, PROBING_DATA_DIR=str(data), PROBING_AGENT=str(AGENT))) as process:
        assert process.line() == "ready"
        yield process


def fill(process, start, condition):
    """Writes rows until that is so, which is soon: every few seconds it is looked how many wait."""
    end = time.monotonic() + 40
    while not condition():
        assert time.monotonic() < end, start.log.read_text()
        process.send(b"2000\n")
        written = int(process.line())
        time.sleep(0.05)
    return written


def test_waiting_rows_have_a_bound(noise, tmp_path):
    """Which is said when it is reached; and how many rows are not there, when they would be sent."""
    with clickhouse_server.running() as server, \
            daemon(tmp_path, "--to", server.url("bound"), "--every", "100ms", "--max-size", "1",
                   command=("node",), data=tmp_path / "data") as start:
        start()
        noise.send(b"10\n")
        noise.line()
        wait_for(lambda: (count(server, "bound.user_stored") or 0) >= 10, start.log.read_text)
        server.kill()
        fill(noise, start, lambda: "have reached 1 MiB, which --max-size says" in start.log.read_text())
        waiting, = (tmp_path / "probing").glob("ship-*.waiting")
        assert sum(path.stat().st_size for path in waiting.iterdir()) < 8 << 20
        server.start()
        wait_for(lambda: "slots of rings were dropped before they could be sent" in start.log.read_text(),
                 start.log.read_text)
        noise.send(b"1\n")
        last = int(noise.line()) - 1
        wait_for(lambda: count(server, "bound.user_stored WHERE number = %d" % last) == 1,
                 start.log.read_text)
        row, = server.rows("SELECT count() AS n, uniqExact(number) AS u FROM bound.user_stored "
                           "WHERE pid = %d" % noise.pid)
    assert row["n"] == row["u"] < last + 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_is_said_and_harms_no_row_that_arrives(noise, tmp_path):
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(state)],
                      check=False, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("needs root that may mount")
    try:
        with clickhouse_server.running() as server, \
                daemon(tmp_path, "--to", server.url("full"), "--every", "100ms", "--state", state,
                       noise.pid) as start:
            shipping = start()
            noise.send(b"10\n")
            noise.line()
            wait_for(lambda: count(server, "full.user_stored") == 10, start.log.read_text)
            server.kill()
            fill(noise, start, lambda: "No space left on device" in start.log.read_text())
            server.start()
            noise.send(b"1\n")
            last = int(noise.line()) - 1
            wait_for(lambda: count(server, "full.user_stored WHERE number = %d" % last) == 1,
                     start.log.read_text)
            shipping.terminate()
            assert shipping.wait(60) == 0, start.log.read_text()
            row, = server.rows("SELECT count() AS n, uniqExact(number) AS u FROM full.user_stored")
            assert row["n"] == row["u"]
    finally:
        subprocess.run(["umount", str(state)], check=True)


def test_two_databases_have_nothing_in_common(server, target, tmp_path):
    """An unreachable database keeps its rows for later, whatever has arrived at the other."""
    writer = Writer(target, tmp_path / "data")
    other = tmp_path / "other"
    other.mkdir()
    away = "clickhouse://127.0.0.1:1/away"
    with daemon(tmp_path, "--to", server.url("near"), "--every", "100ms", writer.pid) as near, \
            daemon(other, "--to", away, "--every", "100ms", "--state", tmp_path / "probing",
                   writer.pid) as far:
        near()
        far()
        wait_for(lambda: "rows wait" in far.log.read_text(), far.log.read_text)
        for _ in range(5):
            writer.write(8000)
            wait_for(lambda: count(server, "near.user_stored") == writer.count, near.log.read_text)
        folders = list((tmp_path / "probing").glob("ship-*.waiting"))
        wait_for(lambda: any(path.stat().st_size for folder in folders for path in folder.iterdir()),
                 far.log.read_text)
        assert len(folders) == 2


SHARDS = """<remote_servers><all>%s</all></remote_servers>"""
SHARD = "<shard><replica><host>127.0.0.1</host><port>%d</port></replica></shard>"


def test_shards_are_one_database_and_a_dead_one_is_named(target, tmp_path):
    """As docs/clickhouse.md says: a table of the engine Distributed for each."""
    servers = [clickhouse_server.Server() for _ in range(2)]
    more = SHARDS % "".join(SHARD % each.tcp for each in servers)
    try:
        for number, each in enumerate(servers):
            config = each.folder / "config.xml"
            config.write_text(config.read_text().replace("</yandex>", more + "</yandex>"))
            each.start()
            writer = Writer(target, tmp_path / ("data%d" % number), RANK=str(number), WORLD_SIZE="2",
                            MASTER_ADDR="10.1.2.12", MASTER_PORT="2950%d" % number)
            writer.write(1000)
            done = ship(tmp_path, "--to", each.url("training"), "--once", writer.pid)
            assert done.returncode == 0, done
        servers[0].ask("CREATE DATABASE whole")
        servers[0].ask("CREATE TABLE whole.user_stored AS training.user_stored "
                       "ENGINE = Distributed(all, training, user_stored)")
        sql = "SELECT rank, count(*) AS n, sum(number) AS s FROM user.stored GROUP BY rank ORDER BY rank"
        assert ask(servers[0], "whole", sql) == [{"rank": rank, "n": 1000, "s": 499500} for rank in (0, 1)]
        servers[1].kill()
        done = subprocess.run([support.BINARY, servers[0].url("whole"), "query", sql], capture_output=True,
                              text=True, timeout=60, check=False,
                              env=clickhouse_server.environment("/nowhere"))
        assert done.returncode == 1 and "127.0.0.1:%d" % servers[1].tcp in done.stderr, done
        assert not done.stdout
    finally:
        for each in servers:
            each.stop()


# Equivalent statements in both dialects; rows of user.stored, in a ring and in the database.
SAME = [
    "SELECT count(*) AS n, count(DISTINCT kind) AS k, min(number) AS low, max(number) AS high FROM user.stored",
    "SELECT kind, count(*) AS n, sum(number) AS s FROM user.stored GROUP BY kind ORDER BY kind",
    "SELECT kind, avg(number) AS mean FROM user.stored GROUP BY kind HAVING count(*) > 142 ORDER BY kind",
    "SELECT number, text FROM user.stored WHERE kind = 'kind3' AND number BETWEEN 10 AND 100 ORDER BY number",
    "SELECT DISTINCT length(text) AS l FROM user.stored WHERE number < 60 ORDER BY l DESC LIMIT 5",
    "SELECT number, CASE WHEN number % 2 = 0 THEN 'even' ELSE 'odd' END AS parity FROM user.stored "
    "WHERE number < 5 ORDER BY number",
    "SELECT iif(number > 2, 'more', 'less') AS which, count(*) AS n FROM user.stored GROUP BY which ORDER BY which",
    "SELECT count(*) FILTER (WHERE number < 10) AS few, sum(number) FILTER (WHERE kind = 'kind1') AS s, "
    "count(DISTINCT kind) FILTER (WHERE number < 3) AS kinds FROM user.stored",
    "SELECT group_concat(number, ' ') AS list FROM (SELECT number FROM user.stored WHERE number < 5 ORDER BY number)",
    "SELECT group_concat(kind) AS list FROM (SELECT DISTINCT kind FROM user.stored ORDER BY kind)",
    "WITH few AS (SELECT number, kind FROM user.stored WHERE number < 20) SELECT kind, count(*) AS n FROM few "
    "GROUP BY kind ORDER BY kind",
    "WITH a AS (SELECT number FROM user.stored WHERE number < 20), b AS (SELECT number FROM a WHERE number > 10) "
    "SELECT count(*) AS n, min(b.number) AS low FROM b",
    "SELECT count(*) AS n FROM user.stored WHERE number IN (SELECT number FROM user.stored WHERE kind = 'kind2')",
    "SELECT number FROM user.stored WHERE text LIKE 'xxxx%' AND kind IN ('kind1', 'kind2') ORDER BY number LIMIT 7",
    "SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY number) AS p, median(number) AS m FROM user.stored",
    "SELECT number, substr(kind, 5) AS digit, upper(kind) AS loud, kind || '!' AS said FROM user.stored "
    "WHERE number < 3 ORDER BY number",
    "SELECT coalesce(NULL, number) AS c, ifnull(text, '') AS t, abs(-number) AS a, round(number / 3.0, 2) AS r "
    "FROM user.stored WHERE number < 4 ORDER BY number",
    "SELECT instr(text, 'x') AS at, total(number) AS t FROM user.stored WHERE number < 3 GROUP BY at ORDER BY at",
    "SELECT CAST(number AS TEXT) AS t, CAST('7' AS INTEGER) AS i, CAST(number AS REAL) AS r FROM user.stored "
    "WHERE number = 12",
    "SELECT count(*) AS n FROM user.stored WHERE timestamp > now() - interval '1 hour' AND timestamp < "
    "now() + interval 2 minutes",
    "SELECT date_trunc('day', timestamp) = date_trunc('day', now() - 0) OR 1 AS today, count(*) AS n "
    "FROM user.stored GROUP BY today",
    "SELECT year(timestamp) > 2000 AS y, month(timestamp) BETWEEN 1 AND 12 AS m, day(timestamp) > 0 AS d, "
    "hour(timestamp) < 24 AS h, minute(timestamp) < 60 AS min, second(timestamp) < 60 AS s FROM user.stored LIMIT 1",
    "SELECT a.number, b.number AS other FROM user.stored a LEFT JOIN (SELECT number, text FROM user.stored "
    "WHERE number < 2) b ON a.number = b.number WHERE a.number < 4 ORDER BY a.number",
    "SELECT number FROM user.stored WHERE number < 3 UNION ALL SELECT number FROM user.stored WHERE number = 9 "
    "ORDER BY number",
    "SELECT rank, pid > 0 AS p FROM user.stored LIMIT 1",
]


def test_tables_and_those_that_are_not_there(server, writer, probing, tmp_path):
    writer.write(1)
    assert ship(tmp_path, "--to", server.url("named"), "--once", "--metrics", "1s", writer.pid).returncode == 0
    assert ask(server, "named", "SHOW TABLES") == [{"name": "probing.metrics"}, {"name": "user.stored"}]
    result = probing(server.url("named"), "query", "SELECT * FROM python.threads")
    assert result.code == 1 and "'SHOW TABLES' lists those that were sent" in result.err, result
    result = probing(server.url("named"), "backtrace")
    assert result.code == 3 and "a target of 'query' only" in result.err, result
    done = ship(tmp_path, "--to", server.url("named"), "--once", tmp_path / "none.profile")
    assert done.returncode == 1 and "cannot read %s" % (tmp_path / "none.profile") in done.stderr, done


@pytest.mark.parametrize("number", range(len(SAME)))
def test_statements_mean_the_same(server, writer, probing, tmp_path, number):
    if count(server, "same.user_stored") is None:
        writer.write(1000)
        assert ship(tmp_path, "--to", server.url("same"), "--once", writer.pid).returncode == 0
    else:
        writer.write(1000)
    here = probing(writer.pid, "query", "-f", "csv", SAME[number])
    for job in ("", "torch 10.1.2.12:29500"):
        there = subprocess.run([support.BINARY, server.url("same", job=job), "query", "-f", "csv", SAME[number]],
                               capture_output=True, text=True, timeout=60, check=False,
                               env=clickhouse_server.environment("/nowhere"))
        assert here.code == 0 and there.returncode == 0, (here, there)
        if "UNION ALL" in SAME[number]:  # the order is that of the last part there
            assert sorted(there.stdout.split()) == sorted(here.out.split())
        else:
            assert numbers(there.stdout) == numbers(here.out), there


def test_a_job_has_no_rows_of_others(server, writer, tmp_path):
    """For every use of the table in a statement, whatever its conditions are."""
    writer.write(10)
    assert ship(tmp_path, "--to", server.url("jobs"), "--once", writer.pid).returncode == 0
    server.ask("INSERT INTO jobs.user_stored (job, number, kind) SELECT 'other', number, kind FROM jobs.user_stored")
    for sql, n in (("SELECT count(*) AS n FROM user.stored", 10),
                   ("SELECT count(*) AS n FROM user.stored WHERE number < 2 OR number > 7", 4),
                   ("SELECT count(*) AS n FROM (SELECT number FROM user.stored WHERE number < 2 OR 1) x", 10),
                   ("SELECT count(*) AS n FROM user.stored AS s WHERE number IN (SELECT number FROM user.stored "
                    "WHERE number = 1 OR number = 2) OR 0", 2),
                   ("SELECT count(*) AS n FROM user.stored a JOIN user.stored b ON a.number = b.number", 10),
                   ("SELECT sum(n) AS n FROM (SELECT count(*) AS n FROM user.stored UNION ALL "
                    "SELECT count(*) AS n FROM user.stored WHERE 1 OR 1)", 20),
                   ("WITH few AS (SELECT number FROM user.stored GROUP BY number) SELECT count(*) AS n FROM few", 10),
                   ("SELECT number AS n FROM user.stored GROUP BY number HAVING count(*) = 1 ORDER BY n DESC LIMIT 1",
                    9)):
        assert ask(server, "jobs", sql, job="torch 10.1.2.12:29500") == [{"n": n}], sql


def numbers(text):
    """Words of rows; 4 and 4.0 are the same."""
    def plain(word):
        try:
            return float(word)
        except ValueError:
            return word
    return [[plain(word) for word in line.split(",")] for line in text.splitlines()]

# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables, rows and statements on a newer ClickHouse than Debian has, which comes with the package chdb."""
import subprocess
import sys

import pytest

import clickhouse_server
import support
from test_clickhouse import Writer, ship
from test_clickhouse_schema import SAME, numbers

NEWER = ["SELECT number, row_number() OVER (PARTITION BY kind ORDER BY number) AS place FROM user.stored "
         "ORDER BY number LIMIT 20",
         "SELECT number, lag(number) OVER (ORDER BY number) IS NULL AS first FROM user.stored WHERE number > 0 "
         "ORDER BY number LIMIT 1"]


@pytest.fixture(scope="module")
def newer():
    pytest.importorskip("chdb")
    with support.Program([sys.executable, support.HERE / "programs" / "newer_clickhouse.py"]) as process:
        yield "clickhouse://127.0.0.1:%s/newer" % process.line().split()[1]


def test_all_of_it(newer, target, probing, tmp_path):
    writer = Writer(target, tmp_path / "data", RANK="3", WORLD_SIZE="4", MASTER_ADDR="10.1.2.14",
                    MASTER_PORT="29500")
    writer.write(1000)
    path = tmp_path / "run.profile"
    subprocess.run([support.BINARY, str(writer.pid), "perf", "--duration", "200ms", "-o", path], check=True,
                   stdout=subprocess.DEVNULL, timeout=60)
    for rows in (True, False):
        done = ship(tmp_path, "--to", newer, "--once", writer.pid, path, *["--metrics", "1s"] * rows)
        assert done.returncode == 0 and (" 0 rows of" in done.stderr) != rows, done

    def ask(sql):
        return subprocess.run([support.BINARY, newer, "query", "-f", "csv", sql], capture_output=True, text=True,
                              timeout=60, check=False, env=clickhouse_server.environment("/nowhere"))

    made = ask("SHOW CREATE TABLE newer.user_stored").stdout
    for part in ("CODEC(DoubleDelta, LZ4)", "CODEC(Gorilla", "`job` LowCardinality(String)", "TYPE minmax"):
        assert part in made, made
    for sql in SAME + NEWER:
        here, there = probing(writer.pid, "query", "-f", "csv", sql), ask(sql)
        assert there.returncode == 0, there
        if "UNION ALL" in sql:
            assert sorted(here.out.split()) == sorted(there.stdout.split())
        else:
            assert numbers(here.out) == numbers(there.stdout), there
    for sql in ("SELECT sum(samples) > 0 AS some FROM profile.samples",
                "SELECT max(value) AS some FROM probing.metrics WHERE metric = 'probing_up'"):
        assert numbers(ask(sql).stdout) == [["some"], [1]]
    failed = ask("SELECT no_such FROM user.stored")
    assert failed.returncode == 1 and "no_such" in failed.stderr and "(version" not in failed.stderr, failed

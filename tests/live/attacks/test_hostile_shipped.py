# SPDX-License-Identifier: GPL-3.0-or-later
"""Names, jobs and rings of another user's process, which root sends to ClickHouse: they remain plain text."""
import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

import clickhouse_server
import support
from clickhouse_server import needs_clickhouse
from files_support import USER, folder, give, needs_root, program  # noqa: F401 (fixtures)

pytestmark = [needs_clickhouse, needs_root]
PACKAGE = support.ROOT / "package"
AGENT = Path(support.BINARY).with_name("libprobing-agent.so")
# Separators of cells, rows and statements, invalid UTF-8, and large texts.
ODD = ["tab\there", "line\nbreak\r", "\\N", "nul\0inside", "it's `quoted` \\", "'); DROP TABLE x; --", "lone \udcff byte",
       "\x1b[2J", "\N{SNOWMAN}" * 40, "long" * 5000, "", " "]
BURN = """
import sys, threading
odd = eval(sys.argv[1])
def burn(more):
    if more:
        return more[0](more[1:])
    while True:
        sum(range(1000))
def renamed(name):
    names = {"co_name": name, "co_filename": name}
    if hasattr(burn.__code__, "co_qualname"):
        names["co_qualname"] = name
    return type(burn)(burn.__code__.replace(**names), globals())
functions = [renamed(name) for name in odd]
for name in odd[:3]:
    threading.Thread(target=functions[0], args=(functions[1:],), name=name, daemon=True).start()
print("ready", flush=True)
functions[0](functions[1:])
"""
TABLE = """
import sys
sys.path.insert(0, sys.argv[1])
import probing
table = probing.table("odd", "number integer, text text, real real")
for number, text in enumerate(eval(sys.argv[2])):
    table.append(number, text, number * 0.5)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def server():
    with clickhouse_server.running() as running:
        yield running


def run(*words, state="/nowhere"):
    return subprocess.run([support.BINARY, *map(str, words)], capture_output=True, timeout=100, check=False,
                          stdin=subprocess.DEVNULL, env=clickhouse_server.environment(state))


def ship(server, database, state, *words):
    return run("cluster", "ship", "--to", server.url(database), "--once", *words, state=state)


def rows(target, sql):
    done = run(target, "query", "-f", "json", sql)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def job_env(**more):
    return dict({key: value for key, value in os.environ.items() if not key.startswith("PROBING_")}, WORLD_SIZE="4",
                MASTER_PORT="29500", **more)


def test_names_of_functions_files_and_threads(server, folder, tmp_path):  # noqa: F811
    env = job_env(RANK="3", MASTER_ADDR="10.1.2.15")
    with program(BURN, repr(ODD), env=env) as process:
        path = tmp_path / "run.profile"
        done = run(process.pid, "perf", "--duration", "2s", "-o", path)
        assert done.returncode == 0, done
        done = ship(server, "odd", tmp_path, path)
        assert done.returncode == 0, done
    local = rows(path, "SELECT count(*) AS n, sum(samples) AS samples, max(qualname) AS q, max(file) AS f, "
                       "max(length(file)) AS l FROM profile.samples JOIN profile.stacks USING (stack) WHERE depth = 0")
    assert local[0]["n"], local
    there = rows(server.url("odd"), "SELECT count(*) AS n, sum(samples) AS samples, max(qualname) AS q, max(file) AS f, "
                 "max(lengthUTF8(file)) AS l FROM profile.samples")
    assert there == local
    assert rows(server.url("odd"), "SELECT DISTINCT pid, uid, recording FROM profile.samples") == \
        [{"pid": process.pid, "uid": os.geteuid(), "recording": "run.profile"}]
    names = {row["thread"] for row in rows(server.url("odd"), "SELECT DISTINCT thread FROM profile.samples")}
    assert names == {row["thread"] for row in rows(path, "SELECT DISTINCT thread FROM profile.samples")}
    stack, = rows(server.url("odd"), "SELECT stack FROM profile.samples ORDER BY length(stack) DESC LIMIT 1")
    for name in ODD[:3]:
        assert name in stack["stack"], stack["stack"][:400]


@pytest.mark.parametrize("address, rank", [
    ("10.1.2.15\t'; DROP TABLE x; --\n\\", "3"),
    ("a" * 5000, "3"),
    ("\udcff\x1b[2J", "3"),
    ("10.1.2.15", "99999999999999999999"),
], ids=["statement", "long", "bytes", "rank"])
def test_a_job_is_text(server, folder, tmp_path, address, rank):  # noqa: F811
    """Which its processes choose: it gets into no statement, and no other column."""
    data = folder / "data"
    data.mkdir(mode=0o700)
    shutil.copytree(PACKAGE, folder / "package")
    shutil.copy(AGENT, folder / "agent.so")
    env = job_env(RANK=rank, MASTER_ADDR=address, PROBING_DATA_DIR=str(give(data)),
                  PROBING_AGENT=str(folder / "agent.so"))
    database = "job%d" % len(address)
    with program(TABLE, str(folder / "package"), repr([text for text in ODD if len(text) < 1000]), env=env) as process:
        done = ship(server, database, tmp_path, "--metrics", "1s", process.pid)
        assert done.returncode == 0 and b"ClickHouse:" not in done.stderr, done
    expected = [(number, text.encode(errors="backslashreplace").hex().upper())
                for number, text in enumerate(text for text in ODD if len(text) < 1000)]
    found = server.rows("SELECT number, hex(text) AS text, real FROM %s.user_odd ORDER BY number" % database)
    assert [(row["number"], row["text"]) for row in found] == expected
    assert all(row["real"] == row["number"] * 0.5 for row in found)
    for table in ("user_odd", "probing_metrics"):
        row, = server.rows("SELECT uniqExact(job) AS jobs, max(length(job)) AS longest, any(uid) AS user, min(rank) "
                           "AS lowest FROM %s.%s WHERE pid = %d" % (database, table, process.pid))
        assert row["jobs"] == 1 and row["longest"] <= 256 and row["user"] == USER, row
        assert row["lowest"] == (3 if rank == "3" else None), row
    job, = server.rows("SELECT DISTINCT hex(job) AS job FROM %s.user_odd" % database)
    said = b"torch " + address.encode(errors="surrogateescape")[:100] if rank == "3" else b""  # there is no such rank
    assert bytes.fromhex(job["job"]).startswith(said) and bool(job["job"]) == bool(said), job


def test_rings_that_are_damaged_on_purpose(server, folder, tmp_path):  # noqa: F811
    """Changed bytes of a real ring: whatever rows they make, the server can read every batch of them."""
    chance = random.Random(33)
    data, mine = folder / "data", folder / "4194298-1"
    data.mkdir(mode=0o700)
    shutil.copytree(PACKAGE, folder / "package")
    shutil.copy(AGENT, folder / "agent.so")
    env = job_env(PROBING_DATA_DIR=str(give(data)), PROBING_AGENT=str(folder / "agent.so"))
    with program(TABLE, str(folder / "package"), repr([text for text in ODD if len(text) < 1000] * 20), env=env):
        ring, = data.glob("*/user.odd.ring")
        content = ring.read_bytes()
    written = len(content.rstrip(b"\0"))
    mine.mkdir(mode=0o700)
    for number in range(support.count(40, 400)):
        changed = bytearray(content)
        for _ in range(chance.choice((1, 3, 30))):
            # The header up to its names, its columns, or rows.
            at = chance.choice((chance.randrange(16, 72), chance.randrange(4096, 5000), chance.randrange(4096, written)))
            changed[at] = chance.choice((0, 1, 0x7f, 0xff, chance.randrange(256)))
        path = mine / ("user.odd%d.ring" % number)
        path.write_bytes(changed[:written])  # the rest are holes, as in a real ring
        os.truncate(path, len(content))
        give(path)
    done = ship(server, "damaged", tmp_path, give(mine))
    assert done.returncode == 0 and b"ClickHouse:" not in done.stderr and b"its rows wait" not in done.stderr, done
    tables = server.rows("SELECT name FROM system.tables WHERE database = 'damaged'")
    assert any(row["name"] == "user_odd" for row in tables), (tables, done)
    assert server.rows("SELECT DISTINCT uid FROM damaged.user_odd") == [{"uid": USER}]

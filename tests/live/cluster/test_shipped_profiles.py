# SPDX-License-Identifier: GPL-3.0-or-later
"""Samples of recordings, and metrics, that `probing cluster ship` and `probing node` send."""
import json
import os
import random
import re
import subprocess
import time

import pytest

import clickhouse_server
import support
from clickhouse_server import needs_clickhouse
from test_clickhouse import Writer, ask, count, daemon, ship, wait_for

pytestmark = needs_clickhouse
SUMS = ("SELECT count(*) AS n, sum(samples) AS samples, sum(cpu_ns) AS cpu, sum(wall_ns) AS wall, "
        "sum(runqueue_ns) AS queue, count(DISTINCT func) AS funcs, min(lineno) AS low, "
        "max(lineno) AS high FROM profile.samples")


@pytest.fixture(scope="module")
def server():
    with clickhouse_server.running() as running:
        yield running


def record(target, path, **env):
    """A recording of a process that does something, and the process."""
    process = target("profiled.py", env=env or None)
    process.send(b"go 1\n")
    done = subprocess.run([support.BINARY, str(process.pid), "perf", "--duration", "1", "--rate", "500",
                           "-o", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 0, done
    process.line()
    return process


def here(path, sql, schema="profile"):
    """The recording's own data."""
    done = subprocess.run([support.BINARY, str(path), "query", "-f", "json", sql], text=True, check=False,
                          capture_output=True, timeout=60)
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def test_samples_arrive_as_they_are(server, target, tmp_path):
    path = tmp_path / "run.profile"
    process = record(target, path)
    # A line of a function, which our own table of samples has in another table.
    local = here(path, "SELECT count(*) AS n, sum(samples) AS samples, sum(cpu_ns) AS cpu, sum(wall_ns) AS "
                       "wall, sum(runqueue_ns) AS queue, count(DISTINCT func) AS funcs, min(lineno) AS low, "
                       "max(lineno) AS high FROM profile.samples JOIN profile.stacks USING (stack) "
                       "WHERE depth = 0")
    words = ("--to", server.url("sampled"), "--once", path)
    done = ship(tmp_path, *words)
    assert done.returncode == 0 and " %d rows of 1 rings" % local[0]["n"] in done.stderr, done
    assert ask(server, "sampled", SUMS) == local
    row, = ask(server, "sampled", "SELECT DISTINCT pid, uid, recording FROM profile.samples")
    assert row == {"pid": process.pid, "uid": os.geteuid(), "recording": "run.profile"}
    stacks = ask(server, "sampled", "SELECT stack, func, qualname FROM profile.samples WHERE stack <> ''")
    assert all(row["stack"].split(";")[-1] == row["qualname"] for row in stacks)
    assert any(";burn" in row["stack"] for row in stacks), stacks
    # Nothing twice: not by the state, not without it, and not of a copy.
    for folder, file in ((tmp_path, path), (tmp_path / "other", path)):
        again = ship(folder, *words[:3], file)
        assert again.returncode == 0 and " 0 rows of" in again.stderr, again
    copy = tmp_path / "copy.profile"
    copy.write_bytes(path.read_bytes())
    again = ship(tmp_path / "third", *words[:3], copy)
    assert again.returncode == 0 and " 0 rows of" in again.stderr, again


def test_background_recordings_come_by_themselves(server, target, tmp_path):
    """With the job and rank of their process; a recording still in progress is sent when it ends."""
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    env = {"XDG_RUNTIME_DIR": str(run)}
    process = target("profiled.py", env={"RANK": "2", "WORLD_SIZE": "4", "MASTER_ADDR": "10.1.2.13",
                                         "MASTER_PORT": "29500"})
    perf = [support.BINARY, str(process.pid), "perf"]
    done = subprocess.run([*perf, "--background", "--json"], env=dict(os.environ, **env), check=True,
                          stdout=subprocess.PIPE, timeout=60)
    path = json.loads(done.stdout)["recording"]
    process.send(b"go 1\n")
    process.line()
    with daemon(tmp_path, "--to", server.url("behind"), "--every", "100ms", process.pid, **env) as start:
        shipping = start()
        subprocess.run([*perf, "--stop"], env=dict(os.environ, **env), check=True,
                       stdout=subprocess.DEVNULL, timeout=60)
        total = here(path, "SELECT count(*) AS n FROM profile.samples")[0]["n"]
        wait_for(lambda: count(server, "behind.profile_samples") == total, start.log.read_text)
        assert ask(server, "behind", "SELECT DISTINCT job, rank FROM profile.samples") == \
            [{"job": "torch 10.1.2.13:29500", "rank": 2}]
        process.kill()
        assert shipping.wait(60) == 0, start.log.read_text()


def test_a_recording_that_goes_on(target, tmp_path):
    """Its complete chunks come while it is made, each once, while the daemon is killed."""
    if not support.LONG:  # a chunk is complete after a minute
        return
    chance = random.Random(26)
    run = tmp_path / "run"
    run.mkdir(mode=0o700)
    env = {"XDG_RUNTIME_DIR": str(run)}
    process = target("profiled.py")
    perf = [support.BINARY, str(process.pid), "perf"]
    done = subprocess.run([*perf, "--background", "--ring", "1h", "--json"], env=dict(os.environ, **env),
                          check=True, stdout=subprocess.PIPE, timeout=60)
    path = json.loads(done.stdout)["recording"]
    with clickhouse_server.running() as server, \
            daemon(tmp_path, "--to", server.url("goes"), "--every", "100ms", process.pid, **env) as start:
        shipping = start()
        end = time.monotonic() + 200
        while time.monotonic() < end:
            process.send(b"go 1\n")
            process.line()
            if chance.random() < 0.5:
                shipping.kill()
                shipping.wait()
                shipping = start()
        assert count(server, "goes.profile_samples")
        subprocess.run([*perf, "--stop"], env=dict(os.environ, **env), check=True,
                       stdout=subprocess.DEVNULL, timeout=60)
        sql = "SELECT count(*) AS n, sum(samples) AS s, sum(cpu_ns) AS c FROM profile.samples"
        total = here(path, sql)
        wait_for(lambda: count(server, "goes.profile_samples") == total[0]["n"], start.log.read_text)
        assert ask(server, "goes", sql) == total


def test_kills_lose_and_double_no_samples(target, tmp_path):
    chance = random.Random(27)
    paths = [tmp_path / ("run%d.profile" % number) for number in range(3)]
    for path in paths:
        record(target, path)
    with clickhouse_server.running() as server:
        for turn in range(support.count(3, 60)):
            database = "turn%d" % turn
            words = ("--to", server.url(database), "--every", "10ms", *paths)
            with daemon(tmp_path, *words) as start:
                for _ in range(4):
                    process = start()
                    time.sleep(chance.random() * 0.1)
                    if chance.random() < 0.3:
                        server.kill()
                        server.start()
                    process.kill()
                    process.wait()
                assert start().wait(90) == 0, start.log.read_text()
            total = sum(here(path, "SELECT count(*) AS n FROM profile.samples")[0]["n"] for path in paths)
            assert server.rows("SELECT count() AS n, uniqExact(_ring, _row) AS u FROM %s.profile_samples" %
                               database) == [{"n": total, "u": total}]


def test_files_that_are_no_recordings(server, tmp_path):
    path = tmp_path / "bad.profile"
    path.write_bytes(b"SQLite format 3\0" + bytes(52) + b"PRBF" + bytes(4000))
    done = ship(tmp_path, "--to", server.url("bad"), "--once", path)
    assert done.returncode != 0 and str(path) in done.stderr, done


def exported(pid):
    """Series that 'probing export' prints of the process: name, label, value."""
    done = subprocess.run([support.BINARY, "export", "prometheus", str(pid)], capture_output=True, text=True,
                          check=True, timeout=60)
    found = set()
    for line in done.stdout.splitlines():
        match = re.fullmatch(r'(\w+)\{pid="\d+"(?:,rank="\d+")?(?:,\w+="(\w+)")?\} (\S+)', line)
        if match:
            found.add((match[1], match[2]))
    return found


def test_metrics_are_those_of_export(server, target, tmp_path):
    writer = Writer(target, tmp_path / "data", RANK="3", WORLD_SIZE="4", MASTER_ADDR="10.1.2.13",
                    MASTER_PORT="29500")
    done = ship(tmp_path, "--to", server.url("metered"), "--once", "--metrics", "1s", writer.pid)
    assert done.returncode == 0, done
    rows = ask(server, "metered", "SELECT metric, label FROM probing.metrics WHERE pid = %d" % writer.pid)
    assert {(row["metric"], row["label"]) for row in rows} == exported(writer.pid)
    assert ask(server, "metered", "SELECT DISTINCT job, rank, uid, pid FROM probing.metrics") == \
        [{"job": "torch 10.1.2.13:29500", "rank": 3, "uid": os.geteuid(), "pid": writer.pid}]
    row, = ask(server, "metered", "SELECT value FROM probing.metrics WHERE metric = 'probing_up'")
    assert row == {"value": 1}
    assert not list((tmp_path / "probing").glob("*.ring"))


def test_kills_lose_and_double_no_metrics(target, tmp_path):
    """Each ring of metrics is there from its first row on, each row once."""
    chance = random.Random(28)
    writer = Writer(target, tmp_path / "data")
    state = tmp_path / "probing"
    with clickhouse_server.running() as server, \
            daemon(tmp_path, "--to", server.url("kills"), "--every", "50ms", "--metrics", "100ms",
                   writer.pid) as start:
        shipping = start()
        for _ in range(support.count(6, 100)):
            before = count(server, "kills.probing_metrics")
            wait_for(lambda: (count(server, "kills.probing_metrics") or 0) > (before or 0),
                     start.log.read_text)
            time.sleep(chance.random() * 0.1)
            if chance.random() < 0.6:
                shipping.kill()
                shipping.wait()
                shipping = start()
            else:
                server.kill()
                server.start()
        shipping.kill()
        shipping.wait()
        # Data read by killed daemons is sent by the next one.
        done = ship(tmp_path, "--to", server.url("kills"), "--once", writer.pid)
        assert done.returncode == 0 and not list(state.glob("*.ring")), done
        rings = server.rows("SELECT _ring, count() AS n, uniqExact(_row) AS u, max(_row) + 1 AS m "
                            "FROM kills.probing_metrics GROUP BY _ring")
    assert rings and all(row["n"] == row["u"] == row["m"] for row in rings), rings


def test_metrics_need_a_database(probing):
    result = probing("node", "--listen", "127.0.0.1:0", "--metrics", "5s")
    assert result.code == 2 and "are for --to" in result.err, result
    result = probing("cluster", "nodes", "--metrics", "5s")
    assert result.code == 2 and "are for 'ship'" in result.err, result

# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing cluster ship` to a real clickhouse-server, and statements for it."""
import contextlib
import json
import os
import random
import signal
import subprocess
import time
import urllib.parse
from pathlib import Path

import pytest

import clickhouse_server
import support
from clickhouse_server import PASSWORD, WITHOUT_LIBCURL, needs_clickhouse

pytestmark = needs_clickhouse
PACKAGE = Path(__file__).resolve().parents[3] / "package"
AGENT = Path(support.BINARY).with_name("libprobing-agent.so")


@pytest.fixture(scope="module")
def server():
    with clickhouse_server.running() as running:
        yield running


class Writer:
    """A process that appends rows to the ring of user.stored."""

    def __init__(self, target, folder, **env):
        folder.mkdir(mode=0o700, exist_ok=True)
        self.folder = folder
        self.process = target("stored.py", PACKAGE, env={
            "PROBING_DATA_DIR": str(folder), "PROBING_AGENT": str(AGENT), **env})
        self.pid, self.count = self.process.pid, 0

    def write(self, count):
        self.process.send(b"%d\n" % count)
        self.count = int(self.process.line())


@pytest.fixture
def writer(target, tmp_path):
    # A job of this file's own: naming one of its processes means all of its ranks here.
    return Writer(target, tmp_path / "data", RANK="3", WORLD_SIZE="4", MASTER_ADDR="10.1.2.11",
                  MASTER_PORT="29500")


def ship(tmp_path, *words, data=None, way=(), **env):
    if data:
        env["PROBING_DATA_DIR"] = str(data)
    return subprocess.run([*way, support.BINARY, "cluster", "ship", *map(str, words)],
                          env=clickhouse_server.environment(tmp_path, **env), text=True,
                          capture_output=True, timeout=100, check=False, stdin=subprocess.DEVNULL)


def ask(server, database, sql, *words, job=""):
    done = subprocess.run([support.BINARY, server.url(database, job=job), "query", "-f", "json", sql,
                           *words], capture_output=True, text=True, timeout=60, check=False,
                          env=clickhouse_server.environment("/nowhere"))
    assert done.returncode == 0, done
    return json.loads(done.stdout)


OWN = "number, kind, text"


def test_rows_arrive_as_they_are(server, writer, probing, tmp_path):
    writer.write(3000)
    here = probing(writer.pid, "query", "-f", "json",
                   "SELECT timestamp, pid, tid, rank, role, %s FROM user.stored" % OWN)
    done = ship(tmp_path, "--to", server.url("equal"), "--once", writer.pid)
    assert done.returncode == 0 and "3000 rows of 1 rings were sent" in done.stderr, done
    there = ask(server, "equal", "SELECT timestamp, pid, tid, rank, role, %s FROM user.stored "
                "ORDER BY number" % OWN)
    assert there == json.loads(here.out)
    assert ask(server, "equal", "SELECT DISTINCT job, rank FROM user.stored") == \
        [{"job": "torch 10.1.2.11:29500", "rank": 3}]
    # Nothing twice, and only new rows; also by our own HTTP, where libcurl is not.
    writer.write(10)
    again = ship(tmp_path, "--to", server.url("equal"), "--once", writer.pid, way=() if os.getuid() else WITHOUT_LIBCURL)
    assert " 10 rows of 1 rings" in again.stderr, again
    # Without a daemon's state, the server itself gives the position to continue from.
    again = ship(tmp_path / "other", "--to", server.url("equal"), "--once", writer.pid)
    assert " 0 rows of 1 rings" in again.stderr, again
    assert server.rows("SELECT count() AS n, uniqExact(number) AS u FROM equal.user_stored") == \
        [{"n": 3010, "u": 3010}]


@pytest.mark.skipif(os.getuid() != 0 or subprocess.run(["unshare", "-n", "true"], check=False,
                                                       stderr=subprocess.DEVNULL).returncode,
                    reason="no network namespaces here")
def test_jobs_with_the_same_loopback_address(server, newest, tmp_path):
    """Each container has an address 127.0.0.1 of its own, and each machine: two jobs are two."""
    with contextlib.ExitStack() as stack:
        def contained(program, *words, env):
            process = stack.enter_context(support.Program(
                ["unshare", "-n", newest.exe, support.HERE / "programs" / program, *words], env=dict(newest.env, **env)))
            assert process.line().split()[0] == "ready"
            return process

        writers = [Writer(contained, tmp_path / "data", RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1",
                          MASTER_PORT="29517") for _ in range(2)]
        for writer in writers:
            writer.write(10)
        done = ship(tmp_path, "--to", server.url("apart"), "--once", *(writer.pid for writer in writers))
        assert done.returncode == 0 and "20 rows of 2 rings were sent" in done.stderr, done
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().replace("-", "")[:12]
        assert {(row["pid"], row["job"]) for row in ask(server, "apart", "SELECT DISTINCT pid, job FROM user.stored")} == {
            (writer.pid, "torch 127.0.0.1:29517@%s.%d" % (boot, os.stat("/proc/%d/ns/net" % writer.pid).st_ino))
            for writer in writers}
        # One target, by its name.
        name = urllib.parse.quote("torch 127.0.0.1:29517@%s.%d" % (boot, os.stat("/proc/%d/ns/net" % writers[0].pid).st_ino))
        assert ask(server, "apart", "SELECT DISTINCT pid FROM user.stored", job=name) == [{"pid": writers[0].pid}]


@contextlib.contextmanager
def daemon(tmp_path, *words, command=("cluster", "ship"), data=None, **env):
    """A background daemon; a function that restarts it."""
    running = []
    if data:
        env["PROBING_DATA_DIR"] = str(data)

    def start():
        running[:] = [subprocess.Popen(
            [support.BINARY, *command, *map(str, words)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=open(tmp_path / "daemon.log", "a"),
            env=clickhouse_server.environment(tmp_path, **env))]
        return running[0]

    start.log = tmp_path / "daemon.log"
    try:
        yield start
    finally:
        for process in running:
            process.kill()
            process.wait()


def wait_for(condition, what, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what()
        time.sleep(0.05)


def count(server, table):
    """Number of rows, or None if the server does not answer, or lacks the table yet."""
    try:
        return int(server.ask("SELECT count() FROM " + table))
    except (AssertionError, OSError):
        return None


def check_all(server, table, written):
    """Each row is there exactly once."""
    assert server.rows("SELECT count() AS n, uniqExact(number) AS u, max(number) AS m, "
                       "sum(length(text)) AS t FROM " + table) == \
        [{"n": written, "u": written, "m": written - 1, "t": sum(n % 50 for n in range(written))}]


def test_kills_of_either_lose_and_double_nothing(target, tmp_path):
    """The server and the daemon are killed at random moments while rows are written."""
    chance = random.Random(25)
    writer = Writer(target, tmp_path / "data")
    with clickhouse_server.running() as server, \
            daemon(tmp_path, "--to", server.url("kills"), "--every", "50ms", writer.pid) as start:
        shipping = start()
        for _ in range(support.count(8, 200)):
            writer.write(chance.randrange(2000))
            before = count(server, "kills.user_stored")
            if chance.random() < 0.7:  # in the middle of something, more often than not
                wait_for(lambda: count(server, "kills.user_stored") != before or
                         before == writer.count, start.log.read_text)
                writer.write(chance.randrange(500, 4000))
            time.sleep(chance.random() * 0.03)
            if chance.random() < 0.5:
                shipping.kill()
                shipping.wait()
                shipping = start()
            else:
                server.kill()
                server.start()
        writer.write(10)  # a daemon just started can be stopped by now
        wait_for(lambda: (count(server, "kills.user_stored") or 0) >= writer.count, start.log.read_text)
        shipping.send_signal(signal.SIGTERM)
        assert shipping.wait(60) == 0
        check_all(server, "kills.user_stored", writer.count)


def test_two_processes_do_not_send_one_ring(server, target, tmp_path):
    """Whatever their states' folders. Another database is another matter."""
    writer = Writer(target, tmp_path / "data")
    writer.write(100)
    with daemon(tmp_path, "--to", server.url("twice"), "--every", "50ms", "--state", tmp_path / "one", writer.pid) as start:
        start()
        wait_for(lambda: count(server, "twice.user_stored") == 100, start.log.read_text)
        (tmp_path / "other").mkdir()
        with daemon(tmp_path / "other", "--to", server.url("twice"), "--every", "50ms", "--state", tmp_path / "two",
                    writer.pid) as other:
            other()
            wait_for(lambda: "is sent to this database by another process already" in other.log.read_text(),
                     other.log.read_text)
            writer.write(1000)
            wait_for(lambda: (count(server, "twice.user_stored") or 0) >= 1100, start.log.read_text)
        once = ship(tmp_path, "--to", server.url("twice"), "--once", "--state", tmp_path / "three", writer.pid)
        assert "by another process already" in once.stderr, once
        check_all(server, "twice.user_stored", 1100)
        once = ship(tmp_path, "--to", server.url("elsewhere"), "--once", "--state", tmp_path / "four", writer.pid)
        assert once.returncode == 0 and "another process" not in once.stderr, once
        check_all(server, "elsewhere.user_stored", 1100)


def test_an_insert_that_arrives_late_is_refused(server, writer, tmp_path):
    """A killed daemon's insert that the server reads only after another daemon has begun."""
    def session():
        lock, = (tmp_path / "probing").glob("ship-*.lock")
        return lock.read_bytes().rstrip(b"\0").decode()

    def insert():
        """The server may still be at the end of the request before, which locks the session."""
        while True:
            try:
                return insert_once()
            except AssertionError as error:
                if "locked by a concurrent client" not in str(error):
                    raise

    def insert_once():
        server.ask("INSERT INTO late.user_stored (number) VALUES (-1)", session_id=old, session_check="1",
                   session_timeout="60")

    with daemon(tmp_path, "--to", server.url("late"), "--every", "50ms", writer.pid) as start:
        shipping = start()
        writer.write(10)
        wait_for(lambda: count(server, "late.user_stored") == 10, start.log.read_text)
        old = session()
        shipping.kill()
        shipping.wait()
        insert()  # before: this one counts
        assert count(server, "late.user_stored") == 11
        start()
        writer.write(10)
        wait_for(lambda: count(server, "late.user_stored") == 21, start.log.read_text)
        assert session() != old
        with pytest.raises(AssertionError, match="Session not found"):
            insert()
        assert count(server, "late.user_stored") == 21


def test_rows_wait_on_disk_while_the_server_is_away(target, tmp_path):
    writer = Writer(target, tmp_path / "data")
    with clickhouse_server.running() as server, \
            daemon(tmp_path, "--to", server.url("away"), "--every", "100ms", writer.pid) as start:
        shipping = start()
        writer.write(100)
        wait_for(lambda: count(server, "away.user_stored") == 100, start.log.read_text)
        server.kill()
        waiting, = (tmp_path / "probing").glob("ship-*.waiting")
        for _ in range(12):  # a ring has some 25,000 rows
            stored = sum(path.stat().st_size for path in waiting.iterdir())
            writer.write(8000)
            if writer.count > 40000:
                wait_for(lambda: sum(path.stat().st_size for path in waiting.iterdir()) > stored,
                         start.log.read_text)
            else:
                time.sleep(0.3)
        assert "; rows wait" in start.log.read_text()
        shipping.kill()  # another one finds them
        shipping.wait()
        shipping = start()
        server.start()
        wait_for(lambda: count(server, "away.user_stored") == writer.count, start.log.read_text)
        check_all(server, "away.user_stored", writer.count)
        assert "were dropped before" not in start.log.read_text()


def test_what_ended_processes_left(server, target, tmp_path):
    """Also without a daemon while they ran; once all of it was sent, nothing more."""
    writer = Writer(target, tmp_path / "data")
    writer.write(500)
    writer.process.kill()
    words = ("--to", server.url("left"), "--once")
    done = ship(tmp_path, *words, data=tmp_path / "data")
    assert done.returncode == 0, done
    check_all(server, "left.user_stored WHERE pid = %d" % writer.pid, 500)
    # With a state of its own: the first daemon's has rows of other processes of this machine too.
    done = ship(tmp_path / "other", *words, next((tmp_path / "data").iterdir()))
    assert done.returncode == 0 and " 0 rows of 1 rings" in done.stderr, done


TABLES = """
import sys
sys.path.insert(0, sys.argv[1])
import probing
table = probing.table("shaped", sys.argv[2])
table.append(*eval(sys.argv[3]))
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def shaped(newest, tmp_path):
    with contextlib.ExitStack() as stack:
        def start(columns, values):
            file = tmp_path / "shaped.py"
            file.write_text(TABLES)
            folder = tmp_path / "data"
            folder.mkdir(mode=0o700, exist_ok=True)
            process = stack.enter_context(support.Program(
                [newest.exe, file, PACKAGE, columns, repr(values)],
                env=dict(newest.env, PROBING_DATA_DIR=str(folder), PROBING_AGENT=str(AGENT))))
            assert process.line() == "ready"
            return process.pid
        yield start


def test_tables_grow_with_their_rings(server, shaped, tmp_path):
    """More columns, other types, names that each table has, NULL, and bytes that are no UTF-8."""
    pids = [shaped("step integer, loss real", (1, 0.5)),
            shaped("step integer, loss text, job text, extra real", (None, "odd\udcff\t'\\", "j", None)),
            shaped("extra integer", (7,))]
    done = ship(tmp_path, "--to", server.url("shapes"), "--once", *pids[:2])
    assert done.returncode == 0 and " 2 rows of 2 rings" in done.stderr, done
    done = ship(tmp_path, "--to", server.url("shapes"), "--once", pids[2])
    assert done.returncode == 0, done
    rows = ask(server, "shapes", "SELECT step, loss, loss__text, job_, extra, extra__integer "
               "FROM user.shaped ORDER BY timestamp")
    assert rows == [
        {"step": 1, "loss": 0.5, "loss__text": None, "job_": None, "extra": None, "extra__integer": None},
        {"step": None, "loss": None, "loss__text": "odd\\udcff\t'\\", "job_": "j", "extra": None,
         "extra__integer": None},
        {"step": None, "loss": None, "loss__text": None, "job_": None, "extra": None,
         "extra__integer": 7}]


def test_statements_of_ours(server, writer, tmp_path):
    writer.write(1000)
    done = ship(tmp_path, "--to", server.url("asked"), "--once", writer.pid)
    assert done.returncode == 0, done
    recent = "SELECT count(*) AS n FROM user.stored WHERE timestamp > now() %s interval '1 hour'"
    assert ask(server, "asked", recent % "-") == [{"n": 1000}]
    assert ask(server, "asked", recent % "+") == [{"n": 0}]
    assert ask(server, "asked", "SELECT kind, count(*) AS n, max(number) AS m FROM user.stored AS s "
               "WHERE text <> 'it''s' GROUP BY kind ORDER BY kind LIMIT 1;") == \
        [{"kind": "kind0", "n": 143, "m": 994}]
    assert ask(server, "asked", "SELECT hour(timestamp) = hour(now()) OR 1 AS same, "
               "date_trunc('hour', timestamp) <= timestamp AS before FROM user.stored LIMIT 1") == \
        [{"same": 1, "before": 1}]
    assert ask(server, "asked", "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY number) AS p "
               "FROM user.stored") == [{"p": 499.5}]
    assert ask(server, "asked", "SELECT count(*) AS n FROM user.stored",
               job="torch 10.1.2.11:29500") == [{"n": 1000}]
    assert ask(server, "asked", "SELECT count(*) AS n FROM user.stored", job="torch%20other") == \
        [{"n": 0}]
    assert len(ask(server, "asked", "SELECT number FROM user.stored", "--limit", "5")) == 5
    reads = subprocess.run([support.BINARY, server.url("asked", "reader"), "query", "-f", "csv",
                            "SELECT count(*) AS n FROM user.stored"], capture_output=True, text=True,
                           timeout=60, check=False, env=clickhouse_server.environment("/nowhere"))
    assert reads.stdout.split() == ["n", "1000"], reads


@pytest.mark.parametrize("sql, said", [
    ("SELECT text ~ 'x' FROM user.stored", "regular expressions"),
    ("SELECT text ->> 'x' FROM user.stored", "operators of JSON"),
    ("SELECT number::real FROM user.stored", "casts with ::"),
    ("SELECT 1; SELECT 2", "one statement at a time"),
    ("SELECT 'open", "an open quote"),
    ("SELECT number FROM user.stored FORMAT CSV", "FORMAT is for other clients"),
    ("DROP TABLE refused.user_stored", "readonly"),
    ("SELECT no_such FROM user.stored", "no_such"),
])
def test_statements_that_cannot_be_run(server, writer, probing, tmp_path, sql, said):
    if count(server, "refused.user_stored") is None:
        writer.write(1)
        assert ship(tmp_path, "--to", server.url("refused"), "--once", writer.pid).returncode == 0
    result = probing(server.url("refused"), "query", sql)
    assert result.code in (1, 2) and said in result.err and not result.out, result


def test_passwords(server, writer, probing, tmp_path):
    writer.write(1)
    to = server.url("secret", "probing")
    done = ship(tmp_path, "--to", to.replace("probing@", "probing:%s@" % PASSWORD), "--once")
    assert done.returncode == 2 and "a password does not belong" in done.stderr, done
    assert PASSWORD not in done.stderr
    done = ship(tmp_path, "--to", to, "--once", writer.pid)
    assert done.returncode == 4 and "refuses user probing" in done.stderr, done
    (tmp_path / "password").write_text(PASSWORD + "\n")
    done = ship(tmp_path, "--to", to, "--once", "--password-file", tmp_path / "password", writer.pid)
    assert done.returncode == 0, done
    result = probing(to, "query", "-f", "csv", "SELECT count(*) AS n FROM user.stored",
                     env={"PROBING_CLICKHOUSE_PASSWORD": PASSWORD})
    assert result.out.split() == ["n", "1"], result


def logs_in(server):
    try:
        return server.ask("SELECT 1", user="probing", password=PASSWORD)
    except AssertionError:
        return False


@pytest.mark.parametrize("command", [("cluster", "ship"), ("node",)])
def test_a_password_that_is_changed(server, writer, tmp_path, command):
    """A daemon reads the file again; only `cluster ship` ends if it is wrong from the beginning."""
    password, users = tmp_path / "password", server.folder / "users.xml"
    words = ("--to", server.url("changed_" + command[-1], "probing"), "--every", "100ms", "--password-file", password)
    table = "changed_%s.user_stored" % command[-1]
    password.write_text("wrong\n")
    writer.write(10)
    with daemon(tmp_path, *words, command=command, data=tmp_path / "data") as start:
        process = start()
        if command == ("node",):
            wait_for(lambda: "; rows wait" in start.log.read_text(), start.log.read_text)
            assert "refuses user probing" in start.log.read_text()
            password.write_text(PASSWORD + "\n")
        else:
            assert process.wait(60) == 4 and "refuses user probing" in start.log.read_text()
            password.write_text(PASSWORD + "\n")
            process = start()
        wait_for(lambda: count(server, table + " WHERE pid = %d" % writer.pid) == 10, start.log.read_text)
        try:
            users.write_text(clickhouse_server.USERS.format(password="another"))
            said = start.log.read_text().count("refuses user probing")
            wait_for(lambda: writer.write(1) or start.log.read_text().count("refuses user probing") > said,
                     start.log.read_text)
            assert process.poll() is None
            password.write_text("another\n")
            wait_for(lambda: count(server, table + " WHERE pid = %d" % writer.pid) == writer.count, start.log.read_text)
        finally:
            users.write_text(clickhouse_server.USERS.format(password=PASSWORD))
            wait_for(lambda: logs_in(server), start.log.read_text)


def test_only_one_ships_to_a_database(server, writer, tmp_path):
    with daemon(tmp_path, "--to", server.url("once"), writer.pid) as start:
        start()
        writer.write(1)
        wait_for(lambda: count(server, "once.user_stored") == 1, start.log.read_text)
        done = ship(tmp_path, "--to", server.url("once"), "--once", writer.pid)
        assert done.returncode == 1 and "another process ships" in done.stderr, done


def test_a_table_that_was_dropped_is_made_again(server, writer, tmp_path):
    with daemon(tmp_path, "--to", server.url("dropped"), "--every", "100ms", writer.pid) as start:
        start()
        writer.write(10)
        wait_for(lambda: count(server, "dropped.user_stored") == 10, start.log.read_text)
        server.ask("DROP TABLE dropped.user_stored")
        writer.write(10)
        wait_for(lambda: count(server, "dropped.user_stored") in (10, 20), start.log.read_text)


def test_the_dashboard_asks_what_there_is(server, target, tmp_path):
    """Each statement of docs/grafana/clickhouse.json runs, and has rows."""
    job = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "10.1.2.11", "MASTER_PORT": "29500"}
    (tmp_path / "data").mkdir(mode=0o700)
    process = target("own_events.py", PACKAGE, env={
        "PROBING_DATA_DIR": str(tmp_path / "data"), "PROBING_AGENT": str(AGENT), **job})
    busy = target("profiled.py", env=job)
    busy.send(b"go 60\n")
    recording = tmp_path / "run.profile"
    subprocess.run([support.BINARY, str(busy.pid), "perf", "--duration", "1s", "-o", recording],
                   check=True, stdout=subprocess.DEVNULL, timeout=60)
    done = ship(tmp_path, "--to", server.url("shown"), "--once", "--metrics", "1s", process.pid, recording)
    assert done.returncode == 0, done
    dashboard = json.loads((PACKAGE.parent / "docs/grafana/clickhouse.json").read_text())
    job, = server.rows(dashboard["templating"]["list"][1]["query"].replace(
        "main_training_logs", "shown.main_training_logs"))
    now = time.time()
    for panel in dashboard["panels"]:
        sql = panel["targets"][0]["rawSql"].replace("${job}", job["job"])
        sql = sql.replace("$__from", str(int(now - 600) * 1000)).replace("$__to", str(int(now + 600) * 1000))
        assert "$" not in sql and server.rows(sql, database="shown"), panel["title"]

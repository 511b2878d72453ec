# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers that are no ClickHouse, and rings of another user that root sends to one."""
import contextlib
import http.server
import os
import struct
import subprocess
import threading
from pathlib import Path

import pytest

import clickhouse_server
import support
from clickhouse_server import WITHOUT_LIBCURL, needs_clickhouse
from files_support import USER, folder, give, needs_root  # noqa: F401 (fixtures)

DEAD = 4194298  # above any pid that this machine gives
HEADER, COLUMN = 4096, 88


@contextlib.contextmanager
def serving(answer):
    """A server that replies with answer(statement): status, headers, parts of a body."""
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode(errors="replace")
            status, headers, parts = answer(body)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            with contextlib.suppress(OSError):  # the client has left
                for part in parts:
                    self.wfile.write(part)

        def log_message(self, *words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield "clickhouse://127.0.0.1:%d/db" % server.server_port
        finally:
            server.shutdown()
            thread.join()


def run(*words, env=None, way=()):
    return subprocess.run([*way, support.BINARY, *map(str, words)], capture_output=True, timeout=60,
                          check=False, stdin=subprocess.DEVNULL,
                          env=env or clickhouse_server.environment("/nowhere"))


def forever(part):
    while True:
        yield part


@pytest.fixture(params=["libcurl", pytest.param("without", marks=needs_root)])
def way(request):
    """What begins a command: nothing, or what hides libcurl, so that we speak HTTP ourselves."""
    return WITHOUT_LIBCURL if request.param == "without" else ()


@pytest.mark.parametrize("status, headers, parts, said", [
    (500, {}, [b"Code: 1, e.displayText() = DB::Exception: \x1b]0;owned\x07\x1b[2J, e.what() = x"],
     rb"ClickHouse: \x1b]0;owned\x07\x1b[2J (status 500)"),
    (500, {}, None, b"ClickHouse: xxx"),
    (302, {"Location": "http://127.0.0.1:1/"}, [b""], b"(status 302)"),
    (200, {}, [b"a\tb\nInt64\tInt64\n1\n"], b"makes no sense: a row has other columns"),
    (200, {}, [b"a\tb\nInt64\tInt64\n1\t2\n3"], b"makes no sense: it ends within a row"),
    (200, {}, [b"a\0b\nInt64\n1\n"], b"makes no sense: a column has no name"),
    (200, {}, [b"\t" * 5000 + b"\n"], b"makes no sense: it has too many columns"),
    (200, {"Content-Length": "100"}, [b"a\nInt64\n"], b"no answer from http://127.0.0.1"),
    (200, {"Transfer-Encoding": "chunked"}, [b"4\r\na\nUI\r\n"], b"no answer from http://127.0.0.1"),
    (200, {"Transfer-Encoding": "chunked"}, [b"oh\r\n"], b"no answer from http://127.0.0.1"),
    (200, {"X": "y" * 300000}, [b"a\nInt64\n1\n"], b"no answer from http://127.0.0.1"),
])
def test_answers_to_a_query(way, status, headers, parts, said):
    with serving(lambda _: (status, headers, parts or forever(b"x" * 65536))) as url:
        done = run(url, "query", "SELECT 1", way=way)
    assert done.returncode == 1 and said in done.stderr, done
    assert b"\x1b" not in done.stderr and len(done.stderr) < 2000, done


def test_an_endless_row():
    with serving(lambda _: (200, {}, forever(b"x" * 65536))) as url:
        done = run(url, "query", "SELECT 1")
    assert done.returncode == 1 and b"a row is longer than 16 MiB" in done.stderr, done


def test_endless_rows_end_with_the_limit():
    def answer(_):
        def parts():
            yield b"a\nString\n"
            yield from forever(b"\x1b[2J\n" * 1000)
        return 200, {}, parts()

    with serving(answer) as url:
        done = run(url, "query", "-f", "csv", "--limit", "3", "SELECT 1")
    assert done.returncode == 0 and done.stdout.count(b"\n") == 4, done


@pytest.fixture
def ring(folder):  # noqa: F811
    """A ring of an ended process with two rows of user.mine, and its folder; all is the user's."""
    made = folder / ("%d-1" % DEAD)
    made.mkdir(mode=0o700)
    (made / "user.mine.ring").write_bytes(make_ring(b"user", b"mine", [(b"number", 0)]))
    give(made / "user.mine.ring")
    return give(made) / "user.mine.ring"


def make_ring(schema, name, columns, head=2, shift=6):
    slot = 128
    header = bytearray(HEADER)
    struct.pack_into("=8sIIIIIIII", header, 0, b"PRBRING\n", 1, HEADER, len(columns), slot, shift, 4, 0, 0)
    struct.pack_into("=QqqqQII64s64s", header, 40, 0, 10 ** 18, 5, 5, 1, DEAD, 0, schema, name)
    struct.pack_into("=Q", header, 384, head)
    data = bytes(header) + b"".join(
        struct.pack("=64s16sII", column, b"", kind, 0) for column, kind in columns)
    data += bytes(16 * 4)
    data += bytes(-len(data) % 4096)
    for number in range(2):
        row = struct.pack("=QqIIII", number << 3 | 2, 10 ** 18 + number, DEAD, 1, 0, 0)
        data += (row + struct.pack("=q", number) * len(columns)).ljust(slot, b"\0")
    return data + bytes(slot * (4 * 64 - 2))


def other_ring(ring):
    """The same ring of another user, in a folder of its own."""
    folder = ring.parents[1] / "other" / ("%d-1" % DEAD)
    folder.mkdir(mode=0o755, parents=True)
    copy = folder / ring.name
    copy.write_bytes(ring.read_bytes())
    for path in (copy, folder):
        os.chown(path, USER + 1, USER + 1)
    return copy


def ship(url, tmp_path, *words):
    return run("cluster", "ship", "--to", url, "--once", *words,
               env=clickhouse_server.environment(tmp_path))


@needs_root
@pytest.mark.parametrize("version, columns, places, said", [
    (b"nonsense\n", b"", b"", b"does not answer as ClickHouse does"),
    (b"", b"", b"", b"does not answer as ClickHouse does"),
    (b"18.16.1\n", b"", b"", b"has no column number although it was made"),
    (b"18.16.1\n", b"number\tNullable(Int64)\n" + b"x`) DROP\tNullable(Int64)\n" * 1000, b"",
     b"2 rows of 1 rings were sent"),
    (b"18.16.1\n", b"\t\n\n" + b"number\tNullable(Int64)\n" b"number\t\tString\n",
     b"0\n-1\t-1\n99999999999999999999999\t1\nx\t\n", b"2 rows of 1 rings were sent"),
])
def test_answers_to_a_daemon(ring, tmp_path, version, columns, places, said):
    def answer(statement):
        if "version()" in statement:
            return 200, {}, [version]
        if "session" in statement or "SELECT 1" == statement:
            return 200, {}, [b"1\n"]
        if "system.columns" in statement:
            return 200, {}, [columns]
        return 200, {}, [places]

    with serving(answer) as url:
        done = ship(url, tmp_path, ring.parent)
    assert said in done.stderr, done


@needs_root
def test_a_daemon_reads_no_endless_answer(ring, tmp_path):
    with serving(lambda _: (200, {}, forever(b"x" * 65536))) as url:
        done = ship(url, tmp_path, ring.parent)
    assert done.returncode == 1 and b"the answer is longer than 8 MiB" in done.stderr, done


@needs_clickhouse
@needs_root
def test_rings_of_another_user(ring, tmp_path):
    """Names reach no statement; lies about counts and a file that is cut harm this ring only."""
    folder = ring.parent  # noqa: F811
    rings = {
        "user.a.ring": make_ring(b"user", b"a` (x Int8) --", [(b"number", 0)]),
        "user.b.ring": make_ring(b"system", b"tables", [(b"number", 0)]),
        "user.c.ring": make_ring(b"user", b"c", [(b"n`, DROP", 0)]),
        "user.d.ring": make_ring(b"user", b"d", [(b"number", 0)], head=2 ** 62),
        "user.e.ring": make_ring(b"user", b"e", [(b"number", 0)])[:5000],
        "user.f.ring": make_ring(b"user", b"f", [(b"text", 2)]),
        "user.g.ring": b"PRBRING\n" + os.urandom(9000),
        # Tables that the daemon itself reads from processes.
        "probing.metrics.ring": make_ring(b"probing", b"metrics", [(b"value", 1)]),
        "profile.samples.ring": make_ring(b"profile", b"samples", [(b"cpu_ns", 0)]),
    }
    for name, content in rings.items():
        (folder / name).write_bytes(content)
        give(folder / name)
    (folder / "user.h.ring").symlink_to("/etc/passwd")
    os.mkfifo(folder / "user.i.ring")
    with clickhouse_server.running() as server:
        done = ship(server.url("hostile"), tmp_path, folder)
        assert done.returncode == 0, done
        assert b"a word" in done.stderr and b"the name of a column" in done.stderr, done
        assert server.rows("SELECT number, uid, pid FROM hostile.user_mine ORDER BY number") == \
            [{"number": 0, "uid": USER, "pid": DEAD}, {"number": 1, "uid": USER, "pid": DEAD}]
        tables = {row["name"] for row in server.rows(
            "SELECT name FROM system.tables WHERE database = 'hostile'")}
    assert tables <= {"user_mine", "user_d", "user_e", "user_f"}, tables


@needs_clickhouse
@needs_root
def test_a_ring_that_says_it_is_another_users(ring, tmp_path):
    """Rows are attributed to the owner of the file: a copied header hides no other user's rows."""
    copy = other_ring(ring)
    with clickhouse_server.running() as server:
        for path in (ring.parent, copy.parent):
            done = ship(server.url("claims"), tmp_path, path)
            assert done.returncode == 0 and b"2 rows of 1 rings" in done.stderr, done
        assert server.rows("SELECT uid, count() AS n FROM claims.user_mine GROUP BY uid "
                           "ORDER BY uid") == [{"uid": USER, "n": 2}, {"uid": USER + 1, "n": 2}]


@needs_clickhouse
@needs_root
def test_rings_that_are_to_keep_a_daemon_busy(ring, tmp_path):
    """Files full of holes, chunks of gigabytes, and unwritten slots: the rest is sent."""
    folder = ring.parent  # noqa: F811
    sparse = {"user.large.ring": (make_ring(b"user", b"large", [(b"number", 0)], 2 ** 40), 2 ** 41),
              "user.chunks.ring": (make_ring(b"user", b"chunks", [(b"number", 0)], 2 ** 40, 16), 2 ** 30),
              "user.holes.ring": (make_ring(b"user", b"holes", [(b"number", 0)], 2 ** 30), 2 ** 27)}
    for name, (content, size) in sparse.items():
        content = bytearray(content)
        if "holes" in name:  # as many chunks as the file has room for
            struct.pack_into("=I", content, 28, 2 ** 16)
        if "chunks" in name:  # of a slot size that no agent has
            struct.pack_into("=I", content, 20, 4096)
        (folder / name).write_bytes(bytes(content))
        os.truncate(folder / name, size)
        give(folder / name)
    copy = other_ring(ring)
    with clickhouse_server.running() as server:
        done = ship(server.url("busy"), tmp_path, folder, copy.parent)
        assert done.returncode == 0 and done.stderr.count(b"it is larger than any") == 2, done
        assert server.rows("SELECT count() AS n, uniqExact(uid) AS u FROM busy.user_mine") == \
            [{"n": 4, "u": 2}]


@needs_clickhouse
@needs_root
def test_a_user_with_many_rings_keeps_nobody_out(ring, tmp_path):
    """Neither from the files that a daemon may open, nor from the tables that it makes."""
    folder = ring.parent  # noqa: F811
    for number in range(140):
        path = folder / ("user.t%d.ring" % number)
        path.write_bytes(make_ring(b"user", b"t%d" % number, [(b"number", 0)]))
        give(path)
    copy = other_ring(ring)
    with clickhouse_server.running() as server:
        for files, said in ((100, b"has over 18 rings"), (2000, b"user %d has over 128 tables" % USER)):
            done = subprocess.run(
                ["prlimit", "--nofile=%d" % files, support.BINARY, "cluster", "ship", "--to",
                 server.url("many%d" % files), "--once", folder, copy.parent], capture_output=True,
                timeout=100, check=False, stdin=subprocess.DEVNULL,
                env=clickhouse_server.environment(tmp_path))
            assert done.returncode == 0 and said in done.stderr, done
            assert server.rows("SELECT count() AS n FROM many%d.user_mine WHERE uid = %d" %
                               (files, USER + 1)) == [{"n": 2}]


def test_nothing_of_the_password_is_seen(tmp_path):
    """Neither in the words of a process, nor in an address, nor in a message."""
    seen = []

    def answer(statement):
        seen.append(statement)
        return 500, {}, [b"no"]

    with serving(answer) as url:
        env = dict(clickhouse_server.environment(tmp_path),
                   PROBING_CLICKHOUSE_PASSWORD="do not show")
        done = run(url, "query", "SELECT 1", env=env)
    assert seen and b"do not show" not in done.stderr + done.stdout
    assert "do not show" not in str(seen) and "do not show" not in Path("/proc/self/cmdline").read_text()

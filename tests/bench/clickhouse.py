# SPDX-License-Identifier: GPL-3.0-or-later
"""What `cluster ship` sends in a second to a clickhouse-server of this machine; beside curl, which posts the
same rows in as many parts, to show what the server takes. What an idle `probing node` costs. And, with
--shards, how long queries over several servers take, all of them on this machine."""
import argparse
import contextlib
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1] / "live"), str(HERE.parents[1])]
import clickhouse_server  # noqa: E402

PACKAGE = HERE.parents[2] / "package"
COLUMNS = "step integer, module text, stage text, duration real, offset real, allocated integer, cached integer"
PART = 250000
ROWS = """
import sys
sys.path.insert(0, sys.argv[1])
import probing
from probing import _rings
kept = _rings.Ring.__init__
_rings.Ring.__init__ = lambda self, table, columns, size=0: kept(self, table, columns, int(sys.argv[4]))
table = probing.table("calls", sys.argv[3])
for i in range(int(sys.argv[2])):
    table.append(i // 100, "model.layers.%d.attention" % (i % 48), "forward", i * 0.5, i * 0.25, i << 10, i << 11)
print(table.path, flush=True)
sys.stdin.read()
"""


def processor(pid):
    words = Path("/proc/%d/stat" % pid).read_text().rsplit(")", 1)[1].split()
    return sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK")  # with children that have ended


def own():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextlib.contextmanager
def writer(agent, folder, rows, size=0):
    folder.mkdir(mode=0o700)
    process = subprocess.Popen(
        [sys.executable, "-c", ROWS, str(PACKAGE), str(rows), COLUMNS, str(size)],
        env=dict(os.environ, PROBING_DATA_DIR=str(folder), PROBING_AGENT=str(agent)),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process, Path(process.stdout.readline().strip()).parent
    finally:
        process.kill()
        process.wait()


def measure(server, name, rows, run):
    before, used, start = processor(server.process.pid), own(), time.monotonic()
    run()
    seconds = time.monotonic() - start
    print("%-8s %9.0f rows/s; processor for a million rows: %.2f s, and %.2f s of the server" %
          (name, rows / seconds, (own() - used) * 1e6 / rows,
           (processor(server.process.pid) - before) * 1e6 / rows), flush=True)


def post(server, data):
    subprocess.run(["curl", "-sSf", "--noproxy", "*", "-H", "Expect:", "--data-binary", "@" + str(data),
                    "http://127.0.0.1:%d/?query=INSERT%%20INTO%%20bench.copy%%20FORMAT%%20RowBinary" %
                    server.http], check=True)


def rate(probing, agent, rows, folder):
    with writer(agent, folder / "data", rows, rows * 192) as (process, left):
        process.kill()
        process.wait()
    with clickhouse_server.running() as server:
        measure(server, "ship", rows, lambda: subprocess.run(
            [probing, "cluster", "ship", "--to", server.url("bench"), "--once", left], check=True,
            env=clickhouse_server.environment(folder), stderr=subprocess.DEVNULL))
        assert server.ask("SELECT count() FROM bench.user_calls") == "%d\n" % rows
        server.ask("CREATE TABLE bench.copy AS bench.user_calls ENGINE = MergeTree PARTITION BY _shipped "
                   "ORDER BY (job, ifNull(step, -1), ifNull(rank, -1), _ring, _row)")
        parts = []
        for first in range(0, rows, PART):
            parts.append(folder / ("part%d" % first))
            with open(parts[-1], "wb") as file:
                subprocess.run(["curl", "-sSf", "--noproxy", "*", "--data-binary",
                                "SELECT * FROM bench.user_calls ORDER BY _row LIMIT %d, %d FORMAT RowBinary" %
                                (first, PART), "http://127.0.0.1:%d/" % server.http], stdout=file, check=True)
        measure(server, "curl", rows, lambda: [post(server, part) for part in parts])


def idle(probing, agent, count, seconds, folder, *words):
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(clickhouse_server.running())
        for number in range(count):
            stack.enter_context(writer(agent, folder / ("idle%d%s" % (number, "".join(words))), 10))
        node = subprocess.Popen([probing, "node", "--to", server.url("idle"), "--state", folder / "state", *words],
                                env=clickhouse_server.environment(folder), stderr=subprocess.DEVNULL)
        stack.callback(node.wait)
        stack.callback(node.terminate)
        while not clickhouse_server_has(server, count * 10):
            time.sleep(0.2)
        parts = [node.pid, *map(int, Path("/proc/%d/task/%d/children" % (node.pid, node.pid))
                                .read_text().split())]
        time.sleep(10)
        before = sum(map(processor, parts))
        time.sleep(seconds)
        used = sum(map(processor, parts)) - before
        rss, pss = ([sum(int(re.search(r"^%s: +(\d+)" % what, Path("/proc/%d/smaps_rollup" % pid).read_text(),
                                       re.M)[1]) for pid in parts) for what in ("Rss", "Pss")])
        print("idle     %d processes with rings %s: %.2f %% of a processor; %.1f MiB resident, %.1f MiB of its own"
              % (count, " ".join(words), used * 100 / seconds, rss / 1024, pss / 1024), flush=True)


def clickhouse_server_has(server, rows):
    try:
        return int(server.ask("SELECT count() FROM idle.user_calls")) >= rows
    except (AssertionError, OSError):
        return False


JOB = "torch 10.1.2.3:29500"
SHARD = "<shard><replica><host>127.0.0.1</host><port>%d</port></replica></shard>"
FILL = """INSERT INTO training.user_calls (job, host, uid, rank, pid, tid, timestamp, _ring, _row, _shipped, step, module,
stage, duration, offset, allocated, cached) SELECT 'torch 10.1.2.3:29500', 'node1', 1000, bitAnd(n, 7), 42, 42,
1700000000 + n / 1000, 1, n + 10, today(), intDiv(n, 100), concat('model.layers.', toString(n %% 48)),
'forward', n %% 1009 * 0.5, n * 0.25, n, n FROM (SELECT number + %d AS n FROM system.numbers LIMIT %d)"""
BY_RANK = "SELECT rank, count(*) AS n, avg(duration) AS mean FROM user.calls GROUP BY rank ORDER BY rank"
ASKED = {
    "by rank": BY_RANK,
    "by rank of a job": BY_RANK,
    "some steps of a job": "SELECT rank, max(duration) AS longest FROM user.calls WHERE step BETWEEN 50000 AND "
                           "50999 GROUP BY rank ORDER BY rank",
    "by module": "SELECT module, percentile_cont(0.99) WITHIN GROUP (ORDER BY duration) AS p99 FROM user.calls "
                 "GROUP BY module ORDER BY p99 DESC LIMIT 10",
}


def fastest(probing, servers, url, sql, folder):
    """Seconds of the fastest of some runs, and the least that all servers used of processors."""
    times, used = [], []
    for _ in range(7):
        start, before = time.monotonic(), sum(processor(server.process.pid) for server in servers)
        subprocess.run([probing, url, "query", sql], check=True, stdout=subprocess.DEVNULL,
                       env=clickhouse_server.environment(folder))
        times.append(time.monotonic() - start)
        used.append(sum(processor(server.process.pid) for server in servers) - before)
    return min(times), min(used)


def link(source, to):
    """What a server never changes is there once for all of them, on the disk and in memory."""
    if source.endswith((".bin", ".mrk")):
        os.link(source, to)
    else:
        shutil.copy2(source, to)


def shards(probing, agent, count, rows, folder):
    """Each server has @rows rows; the first one asks all."""
    servers = [clickhouse_server.Server() for _ in range(count)]
    known = "<remote_servers><all>%s</all></remote_servers>" % "".join(SHARD % each.tcp for each in servers)
    try:
        for server in servers:
            config = server.folder / "config.xml"
            config.write_text(config.read_text().replace("</yandex>", known + "</yandex>"))
        servers[0].start()
        with writer(agent, folder / "shape", 10) as (_, left):
            subprocess.run([probing, "cluster", "ship", "--to", servers[0].url("training"), "--once", left],
                           check=True, stderr=subprocess.DEVNULL, env=clickhouse_server.environment(folder))
        for first in range(0, rows, PART):
            servers[0].ask(FILL % (first, min(PART, rows - first)))
        servers[0].kill()
        for server in servers[1:]:  # making the same rows again would take minutes
            shutil.copytree(servers[0].folder / "data", server.folder / "data", dirs_exist_ok=True,
                            copy_function=link)
        for server in servers:
            server.start()
        servers[0].ask("CREATE DATABASE whole")
        servers[0].ask("CREATE TABLE whole.user_calls AS training.user_calls "
                       "ENGINE = Distributed(all, training, user_calls)")
        for name, sql in ASKED.items():
            for database, number in (("training", 1), ("whole", count)):
                url = servers[0].url(database, job=JOB if "of a job" in name else "")
                seconds, used = fastest(probing, servers, url, sql, folder)
                print("shards   %-18s over %d of %d rows: %.2f s; of processors %.2f s, %.3f s for each" %
                      (name, number, rows, seconds, used, used / number), flush=True)
    finally:
        for server in servers:
            server.stop()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--probing", required=True)
    parser.add_argument("--rows", type=int, default=2000000)
    parser.add_argument("--processes", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--shards", type=int, default=0)
    parser.add_argument("--shard-rows", type=int, default=10000000)
    options = parser.parse_args()
    probing = str(Path(options.probing).resolve())
    agent = Path(probing).with_name("libprobing-agent.so")
    with tempfile.TemporaryDirectory() as folder:
        if options.rows:
            rate(probing, agent, options.rows, Path(folder))
        if options.processes:
            for words in ((), ("--metrics", "15s")):
                idle(probing, agent, options.processes, options.seconds, Path(folder), *words)
        if options.shards:
            shards(probing, agent, options.shards, options.shard_rows, Path(folder))


main()

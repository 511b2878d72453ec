# SPDX-License-Identifier: GPL-3.0-or-later
"""What records cost: appending rows from C, SQL over a ring of ten million rows (beside SQLite's shell on
a table of its own and DuckDB on the same rows as Parquet), recording from Python, and start-up.

Processor time, since nothing of it waits; the best of some rounds for queries and calls, minimum and
median for start-up, whose commands run in turn."""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path

import events

ROOT = Path(__file__).resolve().parents[2]
ROWS, ROUNDS, STARTS = 10000000, 3, 200
QUERIES = {"count(*)": "SELECT count(*) FROM %s",
           "sum, avg, min, max of 3 columns": "SELECT sum(a), avg(h), min(b), max(b) FROM %s",
           "97 groups": "SELECT b, count(*), avg(h) FROM %s GROUP BY b"}
FILL = ("CREATE TABLE big AS WITH RECURSIVE n(a) AS (SELECT 0 UNION ALL SELECT a + 1 FROM n WHERE a < %d) "
        "SELECT 1.0 AS timestamp, 1 AS pid, 1 AS tid, a, a %% 97 AS b, a %% 1000 / 8.0 AS h FROM n" % (ROWS - 1))
DUCKDB = "import duckdb, sys; print(duckdb.sql(sys.argv[1]).fetchall()[:1])"
PARQUET = "COPY (SELECT a, a %% 97 AS b, a %% 1000 / 8.0 AS h FROM range(%d) t(a)) TO '%s' (FORMAT parquet)"


NOTE = """
SQLite runs the statements; the difference to its own table is what reading rings costs. To group, it sorts the rows of its own table,
while those of a ring come by their groups. DuckDB reads only the columns of a statement, and computes with whole vectors."""


def processor_time(command, env=None):
    """Seconds of processor time of a command, and those of the clock."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, took


def best(command):
    return min(processor_time(command)[0] for _ in range(ROUNDS))


def compile_writer(folder, build):
    path = folder / "rings"
    subprocess.run(["cc", "-O2", "-I", str(ROOT), "-o", str(path), str(ROOT / "tests/bench/rings.c"),
                    str(build / "libprobing-agent.so"), "-Wl,-rpath," + str(build)], check=True)
    return path


def sql(args, folder, ring):
    """{title: {query: rows a second}}"""
    big = folder / "big.db"
    subprocess.run(["sqlite3", str(big), FILL], check=True)
    programs = {"probing, ring": lambda q: [args.probing, ring, "query", q % "user.big"],
                "sqlite3, its own table": lambda q: ["sqlite3", str(big), q % "big"]}
    python = args.duckdb
    if python:
        file = folder / "big.parquet"
        subprocess.run([python, "-c", DUCKDB.replace("print(", "(").replace(".fetchall()[:1]", ""),
                        PARQUET % (ROWS, file)], check=True)
        programs["DuckDB, Parquet"] = lambda q: [python, "-c", DUCKDB, q % ("'%s'" % file)]
    return {name: {title: ROWS / best(command(query)) for title, query in QUERIES.items()}
            for name, command in programs.items()}


def rings(args, folder):
    """Lines about appending and SQL."""
    writer = compile_writer(folder, Path(args.probing).resolve().parent)
    data = folder / "data"
    data.mkdir(mode=0o700)
    environment = dict(os.environ, PROBING_DATA_DIR=str(data), PROBING_MAX_MEMORY="4G")
    with subprocess.Popen([str(writer), str(ROWS)], env=environment, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        given, clocked, ring = process.stdout.readline().decode().split()
        found = sql(args, folder, ring)
        process.stdin.close()
    lines = ["", "### Rows of 8 columns from C, one thread", "", "| | million rows a second |", "|---|---|",
             "| with a given time | %.1f |" % (float(given) / 1e6),
             "| which reads the clock | %.1f |" % (float(clocked) / 1e6),
             "", "### SQL over a ring of %d million rows, million rows a second" % (ROWS // 10 ** 6), "",
             "| | %s |" % " | ".join(QUERIES), "|---|%s" % ("---|" * len(QUERIES))]
    return lines + ["| %s | %s |" % (name, " | ".join("%.1f" % (rate / 1e6) for rate in rates.values()))
                    for name, rates in found.items()] + NOTE.split("\n")


def make_environment(folder, wheel):
    venv.create(folder, symlinks=True, with_pip=False)
    if wheel:
        site = next((folder / "lib").glob("python3*")) / "site-packages"
        with zipfile.ZipFile(str(wheel)) as archive:
            archive.extractall(str(site))
    return str(folder / "bin" / "python")


def find_program(environment):
    """The command of an unpacked wheel."""
    path, = environment.glob("lib/python3*/site-packages/*.data/scripts/probing")
    path.chmod(0o755)
    return str(path)


def starts(args, folder):
    """Lines about start-up."""
    wheel = next(iter(sorted((Path(args.probing).resolve().parent / "wheel").glob("*.whl"))), None)
    if wheel is None:
        return []
    plain = {key: value for key, value in os.environ.items()
             if not key.startswith(("PROB", "PYTHONDONTWRITE"))}
    recorded = dict(plain, PROBING="1", PROBING_DATA_DIR=str(folder / "data"))
    none, ours = make_environment(folder / "none", None), make_environment(folder / "ours", wheel)
    cases = {"without the package": (none, plain), "with it, nothing set": (ours, plain),
             "with it, `PROBING=1`": (ours, recorded)}
    original = args.peer.get("original") if getattr(args, "peer", None) else None
    if original:
        cases["the original, `PROBING=1`"] = original, dict(plain, PROBING="1")
    commands = {name: ([python, "-c", "pass"], environment) for name, (python, environment) in cases.items()}
    commands["`probing --version`"] = [find_program(folder / "ours"), "--version"], plain
    times = {name: [] for name in commands}
    for _ in range(STARTS):
        for name, command in commands.items():
            times[name].append([1000 * each for each in processor_time(*command)])
    lines = ["", "### Start of Python, milliseconds", "",
             "| | minimum | median | processor time, minimum | median |", "|---|---|---|---|---|"]
    for name, pairs in times.items():
        used, took = zip(*pairs)
        lines.append("| %s | %.2f | %.2f | %.2f | %.2f |" % (
            name, min(took), statistics.median(took), min(used), statistics.median(used)))
    return lines


def calls(args, folder):
    """Lines about recording from Python."""
    results = events.results(str(Path(args.probing).resolve().parent / "libprobing-agent.so"),
                             args.telemetry, str(folder))
    lines = ["", "### Recording from Python, microseconds of processor time", "",
             "| | event | with 3 attributes | span | row of a table |", "|---|---|---|---|---|"]
    return lines + ["| %s | %s |" % (name, " | ".join(
        "%.2f" % result[key] if key in result else "–" for key in ("event", "attributes", "span", "row")))
        for name, result in results.items()]


def find_peer(folder, module):
    python = Path(folder) / module / "bin/python"
    done = python.exists() and subprocess.run([str(python), "-c", "import " + {
        "telemetry": "opentelemetry.sdk"}.get(module, module)], stderr=subprocess.DEVNULL, check=False)
    return str(python) if done and not done.returncode else None


def page(args):
    args.duckdb, args.telemetry = find_peer(args.peers, "duckdb"), find_peer(args.peers, "telemetry")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return rings(args, folder) + calls(args, folder) + starts(args, folder)


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--probing", required=True)
    parser.add_argument("--peers", required=True)
    sys.stdout.write("\n".join(page(parser.parse_args())) + "\n")

# SPDX-License-Identifier: GPL-3.0-or-later
"""A ring as a target of SQL, of a process that was killed; and rings that are wrong."""

import json
import struct
from pathlib import Path

import pytest
import support

PACKAGE = Path(__file__).resolve().parents[3] / "package"
AGENT = Path(support.BINARY).with_name("libprobing-agent.so")
COLUMNS, NAME = 4096, 88


@pytest.fixture
def writer(target, tmp_path):
    """A process with rings that waits."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    return target("own_events.py", PACKAGE, env={"PROBING_DATA_DIR": str(folder),
                                                 "PROBING_AGENT": str(AGENT)})


@pytest.fixture
def rings(writer):
    writer.kill()
    return {path.name: path for path in Path(writer.ready[0]).parent.iterdir()}


def query(probing, sql, *paths):
    targets = [word for path in paths for word in ("-t", path)]
    result = probing(*targets, "query", "--format", "json", sql)
    assert result.code == 0, result
    return json.loads(result.out)


def test_rows_of_a_dead_process(probing, rings):
    losses, events = rings["user.losses.ring"], rings["python.trace_event.ring"]
    steps = rings["main.training_logs.ring"]
    assert query(probing, "SELECT step, loss FROM user.losses", losses) == \
        [{"step": 1, "loss": 0.5}, {"step": 2 ** 62, "loss": None}]
    assert query(probing, "SELECT epoch, loss, metrics ->> 'accuracy' AS accuracy "
                 "FROM training_logs WHERE epoch", steps) == \
        [{"epoch": 1, "loss": 0.5, "accuracy": 0.25}]
    assert query(probing, "SELECT i.name, o.name AS parent FROM python.trace_event i JOIN "
                 "python.trace_event o ON i.parent_id = o.span_id AND o.record = 'span_begin' "
                 "WHERE i.name = 'within'", events) == [{"name": "within", "parent": "inner"}]
    assert query(probing, "SELECT count(*) AS n FROM python.trace_event WHERE timestamp "
                 "BETWEEN now() - interval '1 hour' AND now() AND record = 'event' "
                 "AND name = 'before'", events) == [{"n": 1}]
    assert query(probing, "SELECT l.step FROM user.losses l JOIN training_logs t ON t.epoch = "
                 "l.step", losses, steps) == [{"step": 1}]
    assert query(probing, "SELECT table_schema || '.' || table_name AS t FROM "
                 "information_schema.columns WHERE table_schema = 'user' AND column_name = "
                 "'note'", losses) == \
        [{"t": "user.losses"}]


SPANS = ("SELECT operation_name, count(*) AS n, min(duration_ms) >= 0 AS timed FROM profiling_data "
         "WHERE timestamp > now() - interval '1 hour' GROUP BY 1 ORDER BY 1 LIMIT 2")
FOUND = [{"operation_name": "failed", "n": 1, "timed": 1},
         {"operation_name": "gather", "n": 1, "timed": 1}]


def test_a_process_before_and_after_its_end(probing, writer):
    folder = Path(writer.ready[0]).parent
    everything = "SELECT * FROM python.trace_event"
    before = query(probing, everything, writer.pid)
    assert query(probing, SPANS, writer.pid) == FOUND and len(before) > 10
    assert query(probing, "SHOW TABLES FROM user", writer.pid)[0]["table_name"] == "losses"
    columns = query(probing, "DESCRIBE training_logs", writer.pid)
    assert [row["column_name"] for row in columns] == [
        "timestamp", "pid", "tid", "rank", "role", "epoch", "step", "loss", "lr", "grad_norm", "duration",
        "metrics", "steps", "loss_min", "loss_max", "lr_min", "lr_max", "grad_norm_min", "grad_norm_max", "duration_min",
        "duration_max"]
    listed = probing("list", "--dead", "--json", env={"PROBING_DATA_DIR": str(folder.parent)})
    assert str(folder) not in listed.out
    writer.kill()
    listed = probing("list", "--dead", "--json", env={"PROBING_DATA_DIR": str(folder.parent)})
    entry, = [row for row in json.loads(listed.out) if row["folder"] == str(folder)]
    assert (entry["pid"], entry["rings"]) == (writer.pid, 8)  # training_logs has four of its history
    found = probing(writer.pid, "query", "-f", "json", everything,
                    env={"PROBING_DATA_DIR": str(folder.parent)})
    assert json.loads(found.out) == before and "has ended" in found.err
    assert query(probing, everything, folder) == before
    assert query(probing, SPANS, folder) == FOUND
    gone = probing(writer.pid, "backtrace", env={"PROBING_DATA_DIR": str(folder.parent)})
    assert gone.code == 6, gone


def test_times_reach_the_chunks(probing, writer):
    """Rows outside of the range are the same as without push-down."""
    times = [row["timestamp"] for row in query(probing, "SELECT timestamp FROM python.trace_event",
                                               writer.pid)]
    for time in (times[0], times[4], times[-1], times[-1] + 1, times[0] - 1):
        for operator in ("<", "<=", "=", ">=", ">"):
            rows = query(probing, "SELECT count(*) AS n FROM python.trace_event WHERE timestamp "
                         "%s %.9f" % (operator, time), writer.pid)
            both = query(probing, "SELECT count(*) AS n FROM python.trace_event WHERE timestamp + 0 "
                         "%s %.9f" % (operator, time), writer.pid)
            assert rows == both


def test_a_removed_ring_of_a_live_process(probing, writer):
    Path(writer.ready[0]).unlink()
    result = probing(writer.pid, "query", "-f", "json", "SELECT count(*) AS n FROM user.losses")
    if result.code:  # the kernel's own links to mapped files are for root
        assert "no such table: user.losses" in result.err and "not available" in result.err, result
    else:
        assert json.loads(result.out) == [{"n": 2}]


def changed(path, offset, data):
    copy = path.with_name("changed.ring")
    content = bytearray(path.read_bytes())
    content[offset:offset + len(data)] = data
    copy.write_bytes(content)
    return copy


def test_names_reach_no_statement(probing, rings):
    path = rings["user.losses.ring"]
    content = path.read_bytes()
    name = content.index(b"losses\0", 64, 4096)
    for offset, text in ((name, b"x; ATTACH 'y' AS z\0"), (name, b"x\"(\0"),
                         (name - 64, b"temp\0"), (name - 64, b"system\0"),
                         (COLUMNS, b"a\", b TEXT, \"c\0"),
                         (COLUMNS, b"Pid\0"), (COLUMNS, b"loss\0")):
        result = probing(changed(path, offset, text), "query", "SELECT 1")
        assert result.code == 3 and "SQL cannot have the table or a column" in result.err, result


def test_files_that_lie_or_end(probing, rings):
    path = rings["user.losses.ring"]
    for count in (0, 33, 2 ** 32 - 1):
        result = probing(changed(path, 16, struct.pack("=I", count)), "query", "SELECT 1")
        assert result.code == 1 and "is no ring: its columns are out of bounds" in result.err
    cut = path.with_name("cut.ring")
    cut.write_bytes(path.read_bytes()[:1 << 17])
    assert query(probing, "SELECT count(*) AS n FROM user.losses", cut) == [{"n": 2}]
    cut.write_bytes(path.read_bytes()[:5000])
    result = probing(cut, "query", "SELECT count(*) FROM user.losses")
    assert "Traceback" not in result.err and result.code in (0, 1), result
    result = probing(path, "debug", "--dump")
    assert result.code == 3 and "a ring holds the rows" in result.err, result

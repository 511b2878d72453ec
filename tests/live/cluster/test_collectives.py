# SPDX-License-Identifier: GPL-3.0-or-later
"""python.comm_collective of four ranks on gloo: the arrival of each rank."""
import contextlib
import json
import socket

import pytest

import browser
import support
import training
from environment import OK
from gateway_client import Gateway
from web_page import BUILT, Page

WORLD, LATE, STEPS = 4, 2, 6


@pytest.fixture(scope="module", params=training.TORCHES, ids=repr)
def ranks(request, tmp_path_factory, probing):
    """Four ranks that got their agents one after the other, between different steps, and have made some
    steps."""
    folder = tmp_path_factory.mktemp("ranks")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with contextlib.ExitStack() as stack:
        found = []
        for rank in range(WORLD):
            env = dict(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK=str(rank),
                       WORLD_SIZE=str(WORLD), OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
            found.append(stack.enter_context(request.param.start(
                "ddp.py", str(LATE), folder, env=env)))
        for rank in found:
            assert rank.line(timeout=400) == "ready"
        for rank in found:
            assert probing(rank.pid, "config", "torch.profiling=0.5").code == OK
            run(found, 1)
        run(found, STEPS)
        yield found


def run(ranks, count):
    for rank in ranks:
        rank.send(b"run %d\n" % count)
    for rank in ranks:
        assert rank.line(timeout=120) == "done"


def ask(probing, ranks, sql):
    words = [word for rank in ranks for word in ("-t", str(rank.pid))]
    done = probing(*words, "query", "-f", "json", sql)
    assert done.code == OK, done
    return json.loads(done.out)


def test_who_is_late(probing, ranks):
    found = ask(probing, ranks, "SELECT operation, seq, rank, timestamp FROM python.comm_collective "
                "WHERE record = 'begin' ORDER BY timestamp")
    arrivals = {}
    for row in found:
        arrivals.setdefault((row["operation"], row["seq"]), []).append(row["rank"])
    whole = {key: value for key, value in arrivals.items() if len(value) == WORLD}
    for operation in ("allreduce", "broadcast", "ddp_backward"):
        assert sum(key[0] == operation for key in whole) == STEPS + 1, operation
    # Numbers are torch's, so late ranks have the same ones; each rank is there once.
    assert all(sorted(value) == list(range(WORLD)) for value in whole.values())
    late = [value[-1] for key, value in sorted(whole.items()) if key[0] == "allreduce"]
    assert late == [LATE] * (STEPS + 1)
    # As docs/cookbook.md has it.
    sql = [each for each in (support.ROOT / "docs/cookbook.md").read_text().split("```sql\n")
           if "arrivals" in each and "comm_collective" in each][0].split("```")[0]
    found = ask(probing, ranks, sql)
    assert found[0]["late_rank"] == LATE and found[0]["mean_wait_ms"] > 100, found


def test_what_was_done(probing, ranks):
    found = ask(probing, ranks[1:2], "SELECT * FROM python.comm_collective WHERE operation = "
                "'allreduce' ORDER BY timestamp LIMIT 2")
    assert [row["record"] for row in found] == ["begin", "end"]
    assert found[0]["duration"] is None and found[1]["duration"] > 0
    for row in found:
        assert (row["bytes"], row["dtype"], row["group_size"], row["group_rank"], row["rank"]) == \
            (4, "torch.float32", WORLD, 1, 1)
    found = ask(probing, ranks[3:], "SELECT src_rank, dst_rank, avg(latency_ms) AS ms FROM comm_metrics "
                "WHERE operation = 'broadcast' GROUP BY 1, 2")
    assert [(row["src_rank"], row["dst_rank"]) for row in found] == [(1, 3)] and found[0]["ms"] > 0
    assert ask(probing, ranks, "SELECT src_rank, dst_rank, avg(latency_ms) FROM comm_metrics")


@pytest.mark.skipif(not browser.COMMAND, reason="chromium is not installed")
@pytest.mark.skipif(not BUILT, reason="the page was not built: 'make web' builds it, with npm")
def test_in_the_page(probing, ranks):
    for rank in ranks:
        assert probing(rank.pid, "config", "torch.profiling=0.5").code == OK
        run(ranks, 1)
    run(ranks, 2)
    with Gateway(*(rank.pid for rank in ranks)) as gateway, Page(gateway) as page:
        page.show("training", target=ranks[0].pid)
        page.sees("Collectives by rank", "allreduce")
        shown = page.wait("""(() => {
            const table = document.querySelector('[aria-label="Collectives by rank"] table');
            return table && [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent));
        })()""")
        reduced = [row for row in shown if row[0] == "allreduce"]
        assert [row[2:4] for row in reduced] == [[str(n), str(rank.pid)] for n, rank in enumerate(ranks)], shown
        # The latest rank waits least.
        assert min(reduced, key=lambda row: float(row[5]))[2] == str(LATE), shown
        assert not page.errors


def test_it_goes(probing, ranks):
    code = "import torch; g = torch._C._distributed_c10d.ProcessGroup; " \
           "type(g.allreduce).__name__, type(torch._C._distributed_c10d.Work.wait).__name__"
    assert probing(ranks[0].pid, "eval", code).out == "('function', 'function')\n"
    assert probing(ranks[0].pid, "config", "torch.profiling=off").code == OK
    assert "'function'" not in probing(ranks[0].pid, "eval", code).out
    done = probing(ranks[0].pid, "eject")
    assert done.code == OK and "unmapped" in done.out, done
    run(ranks, 2)


def test_flight_recorder(probing, ranks):
    """torch's own records, if it makes them: the same numbers on all ranks."""
    run(ranks, 1)
    for rank in ranks:
        assert probing(rank.pid, "inject").code == OK
    done = probing(ranks[0].pid, "query", "SELECT count(*) FROM torch.flight_recorder")
    assert done.code == OK, done
    if "no flight recorder" in done.err:
        assert probing(ranks[0].pid, "eval", "import torch; torch.__version__ < '2.8'").out == "True\n"
        return
    found = ask(probing, ranks, "SELECT rank, operation, seq, backend, state, created FROM "
                "(SELECT *, _rank AS rank FROM torch.flight_recorder) WHERE operation = 'all_reduce' "
                "AND input_sizes = '[[1]]'")
    of = [{row["seq"] for row in found if row["rank"] == rank} for rank in range(WORLD)]
    assert of[0] and of == [of[0]] * WORLD
    assert {row["backend"] for row in found} == {"gloo"}
    arrived = [max((row["created"], row["rank"]) for row in found if row["seq"] == seq)[1]
               for seq in of[0]]
    assert set(arrived) == {LATE}

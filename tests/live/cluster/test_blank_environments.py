# SPDX-License-Identifier: GPL-3.0-or-later
"""Ranks that have written over their environment: it is read from their memory."""
import contextlib
import json
import os

import pytest

import jobs
import support
from library import Session

TITLE = support.HERE / "programs" / "title.py"
LAUNCHERS = {
    "torch": {"RANK": "%d", "WORLD_SIZE": "2", "MASTER_ADDR": jobs.ADDRESS, "MASTER_PORT": "29533"},
    "mpi": {"OMPI_COMM_WORLD_RANK": "%d", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_MCA_ess_base_jobid": "295331"},
}


@contextlib.contextmanager
def ranks(interpreter, titles, variables):
    """Two; their number is in each variable with a %d."""
    with contextlib.ExitStack() as stack:
        started = []
        for rank in range(2):
            env = dict(os.environ, TITLES=str(titles), ODD="ä\n'\"\\x41",
                       **{name: value.replace("%d", str(rank)) for name, value in variables.items()})
            process = stack.enter_context(support.Target(interpreter, TITLE, env=env))
            assert process.line() == "ready"
            started.append(process.pid)
        yield started


@pytest.mark.parametrize("titles", [1, 30], ids=["short", "long"])
@pytest.mark.parametrize("launcher", sorted(LAUNCHERS))
def test_ranks_are_found(interpreter, launcher, titles):
    with ranks(interpreter, titles, LAUNCHERS[launcher]) as started:
        with open("/proc/%d/environ" % started[0], "rb") as file:
            assert b"RANK=" not in file.read()
        done = jobs.cluster("cluster", "nodes", "--json", str(started[0]))
        job, = json.loads(done.stdout)
        assert [rank["pid"] for rank in job["ranks"]] == started, done


def test_tables_have_it(interpreter, probing):
    with ranks(interpreter, 1, LAUNCHERS["torch"]) as started:
        with Session(started[1]) as session:
            assert session.query("SELECT rank, world_size FROM process.info") == [(1, 2)]
            assert session.query("SELECT value FROM process.environ WHERE name = 'ODD'") == \
                [("ä\n'\"\\x41",)]
        done = probing(started[1], "query", "SELECT count(*) FROM process.environ")
        assert "written over its environment" in done.err and "os.environ" in done.err, done


def test_metrics_have_it(newest, probing):
    with ranks(newest, 1, LAUNCHERS["torch"]) as started:
        done = probing("export", "prometheus", started[1])
        assert 'rank="1"' in done.out, done

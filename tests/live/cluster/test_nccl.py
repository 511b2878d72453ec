# SPDX-License-Identifier: GPL-3.0-or-later
"""One rank on NCCL, on a machine with a GPU: its activity, and the records of torch and NCCL."""
import json
import os
import socket

import pytest

import support
from environment import OK, PROGRAMS
from test_gpu import PYTHON, trains_here
from test_ras import SSH

pytestmark = pytest.mark.skipif(not trains_here(), reason="no NVIDIA GPU with torch here")
RECORDED = 3


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="module")
def rank():
    env = dict(os.environ, RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1",
               MASTER_PORT=str(free_port()), TORCH_NCCL_TRACE_BUFFER_SIZE="2000",
               TORCH_FR_BUFFER_SIZE="2000", PYTHONUNBUFFERED="1")
    with support.Program([PYTHON, PROGRAMS / "training" / "nccl.py"], env=env) as process:
        assert process.line(timeout=300) == "ready"
        yield process


def run(rank, count):
    rank.send(b"run %d\n" % count)
    assert rank.line(timeout=100) == "done"


def rows(probing, rank, sql):
    done = probing(rank.pid, "query", "-f", "json", sql)
    assert done.code == OK, done
    return json.loads(done.out)


def test_collectives(probing, rank):
    assert probing(rank.pid, "config", "torch.profiling=0.5").code == OK
    run(rank, 4)
    assert probing(rank.pid, "config", "torch.profiling=off").code == OK
    found = rows(probing, rank, "SELECT operation, seq, bytes, group_size, count(*) AS n FROM "
                                "python.comm_collective WHERE operation = 'allreduce' GROUP BY 1, 2, 3, 4")
    assert len(found) >= RECORDED and {row["bytes"] for row in found} == {4000}, found
    process, = rows(probing, rank, "SELECT * FROM torch.processes")
    assert (process["rank"], process["world_size"]) == (0, 1) and "nccl" in str(process["backend"]), process


def test_flight_recorder(probing, rank):
    run(rank, 3)
    assert probing(rank.pid, "inject").code == OK
    sql = "SELECT operation, seq, state, backend, input_sizes FROM torch.flight_recorder ORDER BY created"
    before = rows(probing, rank, sql)
    assert {row["operation"] for row in before} >= {"all_reduce", "broadcast"}, before[:5]
    assert {row["backend"] for row in before} == {"nccl"}
    rank.send(b"hold\n")
    assert rank.line() == "holds"
    try:
        assert [row["seq"] for row in rows(probing, rank, sql)] == [row["seq"] for row in before]
        stacks = support.dump(rank.pid)
        assert any(thread.get("gil") or thread.get("holds_gil") for thread in stacks["threads"]) or stacks
    finally:
        rank.send(b"x")
    assert rank.line(timeout=60) == "done"


def test_ras(probing, rank, tmp_path):
    """NCCL's service on this machine names the job's only host, and so does the command that asks it."""
    text = b""
    with socket.create_connection(("127.0.0.1", 28028), timeout=30) as client:
        client.sendall(b"CLIENT PROTOCOL 2\nSET FORMAT json\nVERBOSE STATUS\n")
        while True:
            part = client.recv(65536)
            if not part:
                break
            text += part
    assert b'"nccl_version"' in text and str(rank.pid).encode() in text
    # This machine has an address there, which is reached as others are.
    ssh = tmp_path / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    done = probing("cluster", "nodes", "--json", "--ras", env={
        "PATH": "%s:%s" % (tmp_path, os.environ["PATH"]), "LOG": str(tmp_path / "log"),
        "PROBING_REMOTE_PROGRAM": str(support.BINARY)})
    assert done.code == OK, done
    node, = json.loads(done.out)
    assert [each["pid"] for each in node["ranks"]] == [rank.pid], node

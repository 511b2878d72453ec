# SPDX-License-Identifier: GPL-3.0-or-later
"""`cluster hang --save`: an ended job can be inspected, from one file."""
import io
import json
import os
import pathlib
import subprocess
import tarfile
import tempfile

import pytest

import jobs
import support
from gateway_client import Gateway

PYTHON = "/usr/bin/python3"
UNKNOWN, OK, FAILED, USAGE = 16, 0, 1, 2
USERS = (2001, 2001, 2002)


@pytest.fixture(name="open_path")
def fixture_open_path():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield pathlib.Path(folder)


def rows(*words):
    done = jobs.cluster(*words)
    assert done.returncode == OK, done
    return json.loads(done.stdout)


def test_all_is_there_when_the_job_is_gone(tmp_path):
    file = tmp_path / "hang.probing"
    with jobs.ranks(PYTHON, 3) as ranks:
        done = jobs.cluster("cluster", "hang", jobs.ADDRESS, "--save", file)
        assert done.returncode == UNKNOWN, done
        assert "saved       %s: snapshots of 3 of 3 ranks" % file in done.stdout
        pids = [rank.pid for rank in ranks]
    assert file.stat().st_mode & 0o777 == 0o600
    found = rows(file, "query", "-f", "json", "SELECT _rank, _pid, func FROM python.backtrace "
                 "WHERE depth = 0 ORDER BY 1")
    assert [(row["_rank"], row["_pid"], row["func"]) for row in found] == \
        [(rank, pids[rank], "step") for rank in range(3)]
    values = rows(file, "query", "-f", "json", "SELECT _rank, value FROM python.locals "
                  "WHERE name = 'loss' ORDER BY 1")
    assert [row["value"] for row in values] == ["0", "1", "2"]

    again = jobs.cluster(file, "cluster", "hang")
    assert again.returncode == UNKNOWN and "rank 2 is at step rank.py:" in again.stdout
    assert "next        probing %s dump" % file in again.stdout
    for words in ((file, "dump"), ("cluster", "dump", file)):
        tree = jobs.cluster(*words).stdout
        assert "3 ranks, saved in %s" % file in tree and "[0-2]" in tree and "step  rank.py" in tree
    assert json.loads(jobs.cluster(file, "dump", "--json").stdout)["unread"] == []
    nodes = rows("cluster", "nodes", "--json", file)[0]
    assert [rank["pid"] for rank in nodes["ranks"]] == pids

    slow = jobs.cluster("cluster", "slow", file)
    assert slow.returncode == USAGE and "'slow' is of a job that runs" in slow.stderr, slow

    one = jobs.cluster("%s/1" % file, "dump", "--locals")
    assert one.returncode == OK and "loss = 1" in one.stdout, one
    assert jobs.cluster("%s/1" % file, "print", "weight").stdout.strip() == "1"
    several = jobs.cluster(file, "dump", "--locals")
    assert several.returncode == USAGE and "choose one by '%s/0'" % file in several.stderr
    none = jobs.cluster("%s/7" % file, "dump")
    assert none.returncode == FAILED and "has no snapshot of rank 7" in none.stderr


def test_each_rank_is_served(tmp_path):
    file = tmp_path / "hang.probing"
    with jobs.ranks(PYTHON, 2) as ranks:
        assert jobs.cluster("cluster", "hang", jobs.ADDRESS, "--save", file).returncode == UNKNOWN
        pids = [rank.pid for rank in ranks]
    with Gateway(file) as gateway:
        targets = gateway.ask("/v1/targets").json["targets"]
        assert [target["file"] for target in targets] == ["%s/%d" % (file, rank) for rank in range(2)]
        for target, pid in zip(targets, pids):
            stacks = gateway.ask("/v1/targets/%s/stacks" % target["id"]).json
            assert stacks["target"]["pid"] == pid
            assert "step" in [frame["func"] for frame in stacks["threads"][0]["frames"]]


def test_hundreds_of_ranks_are_served(tmp_path):
    """Here one rank of a bundle, again and again."""
    one, many = tmp_path / "one.probing", tmp_path / "many.probing"
    with jobs.ranks(PYTHON, 1):
        jobs.cluster("cluster", "hang", "--save", one, jobs.ADDRESS)
    with tarfile.open(str(one)) as source, tarfile.open(str(many), "w", format=tarfile.USTAR_FORMAT) as made:
        for member in source.getmembers():
            data = source.extractfile(member).read()
            for rank in range(150 if member.name == "rank-0.snapshot" else 1):
                again = tarfile.TarInfo(member.name.replace("rank-0", "rank-%d" % rank))
                again.size = len(data)
                made.addfile(again, io.BytesIO(data))
    with Gateway(many) as gateway:
        assert len(gateway.ask("/v1/overview").json["targets"]) == 150
        assert gateway.ask("/v1/query", {"sql": "SELECT count(DISTINCT _target) AS n FROM python.threads"}).json == [{"n": 150}]


def test_redacted_and_refused(tmp_path):
    file = tmp_path / "hang.probing"
    with jobs.ranks(PYTHON, 1):
        words = ("cluster", "hang", jobs.ADDRESS, "--redact")
        assert jobs.cluster(*words).returncode == USAGE
        assert jobs.cluster(*words, "--save", "-").returncode == USAGE
        assert jobs.cluster("cluster", "dump", "--save", file).returncode == USAGE
        assert not file.exists()
        assert jobs.cluster(*words, "--save", file).returncode == UNKNOWN
        # An older bundle is replaced.
        assert jobs.cluster(*words, "--save", file).returncode == UNKNOWN
    # One rank needs no choice; the environment is not there.
    dump = jobs.cluster(file, "bt", "--locals")
    assert dump.returncode == OK and "loss = 0" not in dump.stdout
    with tarfile.open(file) as archive:
        assert archive.getnames() == ["probing-bundle", "rank-0.snapshot", "looks-0.json"]
        archive.extract("rank-0.snapshot", tmp_path)
    assert jobs.cluster(tmp_path / "rank-0.snapshot", "bt").returncode == OK


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_a_bundle_of_several_hosts(open_path):
    (open_path / "odd.json").write_text("no bundle")
    env = jobs.reach_hosts(open_path, jobs.SSH % (open_path / "odd.json"))
    file = open_path / "all.probing"
    with jobs.ranks(PYTHON, 3, USERS):
        done = jobs.cluster("cluster", "hang", jobs.ADDRESS, "--hosts", "node2001,node2002,node2003,odd",
                            "--save", file, "--json", env=env)
    verdict = json.loads(done.stdout)
    assert (verdict["saved"], verdict["saved_ranks"]) == (str(file), 3), done
    assert "odd: the answer: the file ends early" in done.stderr, done
    nodes = rows("cluster", "nodes", "--json", file)[0]
    assert [rank["host"] for rank in nodes["ranks"]] == ["node2001", "node2001", "node2002"]
    found = rows(file, "query", "-f", "json", "SELECT _rank, value FROM python.locals "
                 "WHERE name = 'loss' ORDER BY 1")
    assert [row["value"] for row in found] == ["0", "1", "2"]


def test_no_space_is_an_error_and_leaves_no_file(tmp_path):
    """The file has its name when all of it is written."""
    file = tmp_path / "hang.probing"
    with jobs.ranks(PYTHON, 1):
        done = subprocess.run(
            ["sh", "-c", "ulimit -f 1; trap '' XFSZ; exec \"$@\"", "sh", support.BINARY, "cluster",
             "hang", jobs.ADDRESS, "--save", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == FAILED and "cannot write the bundle" in done.stderr, done
    assert "rank 0 is not saved: " in done.stderr
    assert not os.listdir(tmp_path)

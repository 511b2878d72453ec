# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of every release are read by all later ones: tests/tools/record-release has kept them, once each."""
import json
import tarfile

import pytest

import support
from environment import OK

RELEASES = sorted(path.parent.name for path in (support.ROOT / "tests/data/releases").glob("*/files.tar.xz"))
CYCLE = 14


@pytest.fixture(scope="module", params=RELEASES)
def files(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    with tarfile.open(support.ROOT / "tests/data/releases" / request.param / "files.tar.xz") as archive:
        archive.extractall(folder)
    return folder


def answer(probing, *words, code=OK):
    done = probing(*words)
    assert done.code == code and not done.err, done
    return json.loads(done.out)


def test_the_first_is_there():
    assert "1.0.0" in RELEASES


def test_snapshot(files, probing):
    threads = answer(probing, files / "hang.snapshot", "dump", "--locals", "--json")["threads"]
    assert [(frame["func"], frame["line"]) for frame in threads[0]["frames"]] == [
        ("wait_for_other", 40), ("main", 53), ("<module>", 56)]
    assert threads[0]["waits_for"].startswith("futex: waiting for a Lock held by ")
    assert {"name": "ROWS", "kind": "name", "type": "int", "value": "200"} in threads[0]["frames"][2]["locals"]
    assert answer(probing, files / "hang.snapshot", "query", "-f", "json",
                  "SELECT count(*) AS n FROM python.threads") == [{"n": 1}]


def test_recording(files, probing):
    profile = answer(probing, files / "run.profile", "perf", "--json")
    assert profile["functions"][0]["func"] == "spin" and profile["functions"][0]["share"] > 0.99
    assert sum(row["self_ns"] for row in profile["functions"]) == profile["weight_ns"] > 0
    assert answer(probing, files / "run.profile", "query", "-f", "json",
                  "SELECT file FROM profile.functions WHERE func = 'spin'") == [{"file": "/srv/kept.py"}]


def test_rings(files, probing):
    folder = next((files / "rings").iterdir())
    assert answer(probing, folder, "query", "-f", "json",
                  "SELECT phase, count(*) AS rows, sum(step) AS steps, min(rank) AS rank FROM user.losses "
                  "GROUP BY phase ORDER BY 1") == [
        {"phase": "train", "rows": 190, "steps": 19855, "rank": 0},
        {"phase": "warm-up", "rows": 10, "steps": 45, "rank": 0}]


def test_job(files, probing):
    stacks = answer(probing, files / "hang.probing", "dump", "--json")
    assert stacks["world_size"] == 2 and [rank["unread"] for rank in stacks["ranks"]] == [None, None]
    verdict = answer(probing, "cluster", "hang", files / "hang.probing", "--json", code=CYCLE)
    assert verdict["verdict"] == "cycle" and verdict["ranks"] == [0]

# SPDX-License-Identifier: GPL-3.0-or-later
"""Conclusions of `cluster hang` from the numbers of collectives in torch's flight recorders. The hosts'
answers are made up; test_flight_jobs.py has real ones."""
import json
import os
import pathlib
import tempfile

import pytest

import jobs

DEVICE, LATE, MISMATCH, MOVES = 15, 13, 12, 0
STILL, COMPUTES, MOVING = 0, 1, 2
C10D = "torch.distributed.distributed_c10d"
FRAMES = [
    {"kind": 0, "func": "all_reduce", "module": C10D, "file": "/x/distributed_c10d.py", "line": 7},
    {"kind": 0, "func": "train", "module": "__main__", "file": "/x/train.py", "line": 41},
    {"kind": 0, "func": "read", "module": "__main__", "file": "/x/data.py", "line": 28},
]
IN_COLLECTIVE, IN_READ = [0, 1], [2]


@pytest.fixture(name="folder", scope="module")
def fixture_folder():
    """Its ssh shows the file of that name."""
    with tempfile.TemporaryDirectory() as name:
        ssh = pathlib.Path(name, "ssh")
        ssh.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nexec cat "%s/$2.json"\n' % name)
        ssh.chmod(0o755)
        yield pathlib.Path(name)


def group(entered, *opened, name="0", about="default_pg", members="0-3"):
    """Of one rank: the number of its last collective, and the unfinished ones."""
    return {"name": name, "about": about, "members": members, "entered": entered,
            "open": [{"seq": seq, "operation": operation, "data": data}
                     for seq, operation, data in opened]}


def reduce(seq, data="(4,) float32"):
    return seq, "all_reduce", data


def rank(number, frames, *groups, movement=STILL, asked=True):
    seen = {"rank": number, "local_rank": number, "pid": 100 + number, "command": "python3 train.py",
            "gone": False, "state": "S", "state_before": "S", "movement": movement,
            "entered": frames == IN_COLLECTIVE, "main": 100 + number,
            "threads": [{"tid": 100 + number, "state": "idle", "idle": 9.5, "frames": frames}]}
    if asked:
        seen["flight"] = list(groups)
    else:
        seen["no_flight"] = "no agent is loaded"
    return seen


def hang(folder, ranks, expected, world=4):
    document = {"format": 3, "job": "torch 10.0.0.1:29500", "uid": 0, "world_size": world, "span": 1.0,
                "ranks": ranks, "frames": FRAMES}
    (folder / "a.json").write_text(json.dumps(document))
    env = dict(os.environ, PATH="%s:%s" % (folder, os.environ["PATH"]))
    done = jobs.cluster("cluster", "hang", "--json", "--hosts", "a", env=env)
    assert done.returncode == expected, done
    return json.loads(done.stdout)


def waiting(number, seq=57, **how):
    return rank(number, IN_COLLECTIVE, group(seq, reduce(seq)), **how)


def test_a_late_rank(folder):
    found = hang(folder, [waiting(0), waiting(1), rank(2, IN_READ, group(56)), waiting(3)], LATE)
    assert found["ranks"] == [2] and found["confidence"] == "high"
    assert found["sentence"].startswith("rank 2 (a, pid 102) never entered all_reduce #57 of group default_pg; it "
                                        "is at read data.py:28")
    assert "flight recorder: ranks 0,1,3 have called all_reduce #57 of group default_pg ((4,) float32); rank 2 " \
        "has not: its last one there is #56\n" in found["evidence"]
    assert found["rests_on"] == "the stacks of 4 of 4 ranks, seen for 1.0 s; the flight recorders of ranks 0-3"

    # It computes: perhaps it comes.
    found = hang(folder, [waiting(0), rank(1, IN_READ, group(56), movement=MOVING), waiting(2), waiting(3)], LATE)
    assert found["ranks"] == [1] and found["confidence"] == "medium"
    assert "has not yet entered all_reduce #57" in found["sentence"]


def test_whoever_has_called_it_is_not_late(folder):
    """Rank 1 has called it without waiting; rank 2 is in no collective either, and has not."""
    found = hang(folder, [waiting(0), rank(1, IN_READ, group(57, reduce(57))), rank(2, IN_READ, group(56)),
                          waiting(3)], LATE)
    assert found["ranks"] == [2]
    # Nor is a member of no group that waits.
    pair = group(9, reduce(9), name="3", about=None, members="0,3")
    found = hang(folder, [rank(0, IN_COLLECTIVE, group(56), pair), rank(1, IN_READ, group(56)),
                          rank(2, IN_READ, group(56)),
                          rank(3, IN_READ, group(56), dict(pair, entered=8, open=[]))], LATE)
    assert found["ranks"] == [3] and "never entered all_reduce #9 of group 3;" in found["sentence"]


def test_a_call_of_another_kind(folder):
    other = rank(1, IN_COLLECTIVE, group(57, (57, "broadcast", "(4,) float32")))
    found = hang(folder, [waiting(0), other, waiting(2), waiting(3)], MISMATCH)
    # The stacks do not tell the two calls apart: the numbers alone say so.
    assert found["ranks"] == [1] and found["confidence"] == "medium" and len(found["signs"]) == 1
    assert found["sentence"] == "rank 1 called broadcast of (4,) float32 at train.py:41, as #57 of group " \
        "default_pg, where rank 0 called all_reduce of (4,) float32 at train.py:41"
    # The same operation of a tensor of another size; the two that agree are right.
    odd = rank(0, IN_COLLECTIVE, group(57, reduce(57, "(8,) float32")))
    found = hang(folder, [odd, waiting(1), waiting(2), waiting(3)], MISMATCH)
    assert found["ranks"] == [0] and "called all_reduce of (8,) float32" in found["sentence"]


def test_what_one_rank_cannot_end(folder):
    found = hang(folder, [waiting(0), waiting(1, 56), waiting(2), waiting(3)], DEVICE)
    assert found["ranks"] == [1] and found["confidence"] == "medium"
    assert found["sentence"] == "rank 1 cannot end all_reduce #56 of group default_pg, which the other members have " \
        "ended: device or network, the host cannot see the culprit"


def test_the_root_of_several(folder):
    """Ranks 0 and 1 wait for 2, which waits in a group with 3: rank 3 is to blame."""
    inner = dict(name="5", about="tp", members="2,3")
    found = hang(folder, [waiting(0), waiting(1),
                          rank(2, IN_COLLECTIVE, group(56), group(9, reduce(9), **inner)),
                          rank(3, IN_READ, group(56), group(8, **inner))], LATE)
    assert found["ranks"] == [3] and "never entered all_reduce #9 of group tp;" in found["sentence"], found


def test_all_have_called_it(folder):
    found = hang(folder, [waiting(number) for number in range(4)], DEVICE)
    assert found["sentence"] == "ranks 0-3 cannot end all_reduce #57 of group default_pg, which all members have " \
        "called in the same way: device or network, the host cannot see the culprit"
    assert found["confidence"] == "medium" and found["ranks"] == []
    # One recorder is missing: that the others agree proves nothing, and nothing says so.
    found = hang(folder, [waiting(0), waiting(1), waiting(2), waiting(3, asked=False)], DEVICE)
    assert "#57" not in found["sentence"]
    assert found["rests_on"].endswith("the flight recorders of ranks 0-2, not of the others: no agent is loaded")


def test_recorders_of_some(folder):
    """A late rank with a known recorder is late, even if others' are unknown."""
    found = hang(folder, [waiting(0), rank(1, IN_READ, group(56)), waiting(2, asked=False), waiting(3)], LATE)
    assert found["ranks"] == [1] and "never entered all_reduce #57" in found["sentence"]


@pytest.mark.parametrize("flight", [
    7, {}, [7, None, []], [{"name": 5}], [{"name": "0", "entered": "x"}], [{"name": "0", "entered": -5}],
    [{"name": "0", "entered": (1 << 63) - 1, "open": 7}],
    [{"name": "0", "entered": 57, "members": "9999999999-1,x", "open": [{"seq": 57}, 5, {"seq": 99, "operation": "a"}]}],
    [{"name": "\x1b[2J" * 99, "about": "\x1b[2J", "entered": 57, "members": "0-3",
      "open": [{"seq": 57, "operation": "\x1b[2J", "data": "\x1b[2J" * 99}]}],
], ids=range(9))
def test_what_makes_no_sense(folder, flight):
    """A hostile rank says nothing that is believed about others, and nothing that a terminal obeys."""
    odd = dict(rank(1, IN_READ), flight=flight)
    found = hang(folder, [waiting(0), odd, waiting(2), waiting(3)], LATE)
    assert found["ranks"] == [1] and "\x1b" not in json.dumps(found, ensure_ascii=False)

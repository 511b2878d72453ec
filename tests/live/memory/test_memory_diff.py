# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing memory --diff`: growth between two snapshots, and the holders."""
import json

import pytest

from environment import FAILED, OK, UNSUPPORTED, USAGE
from test_memory import check_growth, leak


def save(probing, process, path, *options):
    done = probing(process.pid, "snapshot", "-o", path, *options)
    assert done.code == OK, done
    return path


@pytest.fixture
def snapshots(probing, target, newest, tmp_path):
    """Two of a process that leaked meanwhile; the process is gone."""
    return take_two(probing, target("leaks.py", interpreter=newest), tmp_path)


def take_two(probing, process, folder):
    leak(process, 1)
    first = save(probing, process, folder / "a.snapshot", "--heap")
    leak(process, 3)
    second = save(probing, process, folder / "b.snapshot", "--heap")
    process.kill()
    return first, second


def test_the_same_as_growth(probing, target, interpreter, tmp_path):
    first, second = take_two(probing, target("leaks.py", interpreter=interpreter), tmp_path)
    done = probing("memory", "--diff", first, second, "--json")
    assert done.code == OK, done
    check_growth(json.loads(done.out)["interpreters"][0])


def test_text(probing, snapshots):
    first, second = snapshots
    done = probing(second, "memory", "--diff", first)
    assert done.code == OK, done
    assert "(snapshot)" in done.out and "    objects      bytes  held by" in done.out, done
    assert "__main__.CACHE: dict" in done.out
    same = probing("memory", "--diff", first, first)
    assert same.code == OK and "no type grew" in same.out, same


def test_the_wrong_way_round(probing, snapshots):
    first, second = snapshots
    done = probing("memory", "--diff", second, first)
    assert done.code == USAGE and "the first one is the later one" in done.err, done


def test_of_two_processes(probing, target, newest, tmp_path, snapshots):
    other = target("leaks.py", interpreter=newest)
    path = save(probing, other, tmp_path / "other.snapshot", "--heap")
    done = probing("memory", "--diff", snapshots[0], path)
    assert done.code == USAGE and "of two processes" in done.err, done


def test_without_the_heap(probing, target, newest, tmp_path):
    process = target("leaks.py", interpreter=newest)
    leak(process, 1)
    path = save(probing, process, tmp_path / "small.snapshot")
    done = probing("memory", "--diff", path, path)
    assert done.code == UNSUPPORTED and "--heap" in done.err, done


@pytest.mark.parametrize("damage", ["cut", "zeros", "bits"])
def test_a_damaged_one(probing, snapshots, tmp_path, damage):
    first, second = snapshots
    data = bytearray(first.read_bytes())
    if damage == "cut":
        del data[len(data) // 2:]
    elif damage == "zeros":
        data[len(data) // 2:len(data) // 2 + 4096] = bytes(4096)
    else:
        for at in range(200, len(data), 977):
            data[at] ^= 1 << at % 8
    bad = tmp_path / "bad.snapshot"
    bad.write_bytes(data)
    for arguments in ((bad, second), (first, bad)):
        done = probing("memory", "--diff", *arguments)
        assert done.code == FAILED and "bad.snapshot" in done.err and not done.out, done

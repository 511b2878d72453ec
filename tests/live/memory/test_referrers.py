# SPDX-License-Identifier: GPL-3.0-or-later
"""python.referrers() names the same holders and the same shortest ways in a process, a core and a snapshot."""
import json
import shutil

import pytest

import support
import tables
from environment import OK

HOLDERS = """
import sys
class Service(object):
    def __init__(self):
        self.cache = {}
        self.handlers = []
def keeper():
    kept = []
    def keep(value):
        kept.append(value)
    return keep
service = Service()
keep = keeper()
def main():
    record = [len(sys.argv) + 0.5]
    service.cache["first"] = record
    service.handlers.append(record)
    keep(record)
    mine = {"other": record}
    print("%d %d" % (id(record), id(record[0])))
    del record
    # Frames that are objects (up to 3.10) are read with what their stacks held before.
    min(1, 2, 3, 4, 5, 6, 7, 8)
    sys.stdout.flush()
    sys.stdin.readline()
    return mine
main()
"""
EXPECTED = {
    ("dict", "__main__.service.cache"),
    ("list", "__main__.service.handlers"),
    ("list", "__main__.keep.__closure__[0].cell_contents"),
    ("dict", "mine in main()"),
}
SHORTEST = {("list", "__main__.service.cache['first']"), ("list", "__main__.service.handlers[0]")}


def holders(probing, target, address):
    done = probing(str(target), "query", "-f", "json",
                   "SELECT type, holder, _error FROM python.referrers(%s)" % address)
    assert done.code == OK, done
    rows = json.loads(done.out)
    assert not [row for row in rows if row["_error"]], rows
    found = {(row["type"], row["holder"]) for row in rows}
    assert len(found) == len(rows), rows
    return found


@pytest.mark.skipif(not shutil.which("gcore"), reason="gcore is not installed")
def test_the_same_everywhere(probing, interpreter, tmp_path):
    with support.Program([interpreter.exe, "-c", HOLDERS], env=interpreter.env) as process:
        record, number = process.line().split()
        tables.core_of(process.pid, tmp_path)
        snapshot = tmp_path / "heap.snapshot"
        done = probing(process.pid, "snapshot", "-o", snapshot, "--heap")
        assert done.code == OK, done
        live = holders(probing, process.pid, number)
        assert holders(probing, process.pid, record) == EXPECTED
    assert live and live <= SHORTEST, live
    for target in tmp_path / ("core.%d" % process.pid), snapshot:
        assert holders(probing, target, record) == EXPECTED
        assert holders(probing, target, number) == live

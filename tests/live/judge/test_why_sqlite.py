# SPDX-License-Identifier: GPL-3.0-or-later
"""The rule `sqlite` of `probing why`: a thread waits for a database that another connection has locked; and healthy twins."""
import json
import sys

import pytest

import support
from environment import wait_until
from test_why import why

LOCKS = 13
SOURCE = """
import os, sqlite3, sys, tempfile, time
journal, other, waits = sys.argv[1:]
folder = tempfile.TemporaryDirectory()
path = folder.name + "/data.db"
def connect(**options):
    return sqlite3.connect(path, isolation_level=None, **options)
def lock():
    connection = connect()
    connection.execute("begin immediate")
    connection.execute("insert into t values (1)")
    return connection
connect().execute("create table t (x)")
connect().execute("pragma journal_mode = " + journal)
ready, told = os.pipe()
pid = os.fork() if other == "process" else None
if pid == 0:
    held = lock()
    os.write(told, b"x")
    os.read(0, 1)
    os._exit(0)
if pid:
    os.read(ready, 1)
else:
    held = lock()
mine = connect(timeout=1000)
print(pid or os.getpid(), flush=True)
while waits == "no":
    time.sleep(0.1)
mine.execute("insert into t values (2)")
"""


def started(*words):
    return support.Program([sys.executable, "-c", SOURCE, *words])


def judge(pid):
    code, out, _ = why("--json", str(pid))
    [target] = json.loads(out)["targets"]
    return code, [each for each in target["findings"] if each["rule"] == "sqlite"]


@pytest.mark.parametrize("journal", ["delete", "wal"])
@pytest.mark.parametrize("other", ["connection", "process"])
def test_a_database_that_is_locked(journal, other):
    with started(journal, other, "yes") as program:
        holder, last = int(program.line()), []

        def is_found():
            last[:] = judge(program.pid)
            return last[1]
        wait_until(is_found)
        code, [finding] = last
    assert code == LOCKS and finding["confidence"] == "medium"
    assert "in `<module>` <string>:30" in finding["sentence"]
    if other == "process":
        assert finding["pids"] == [holder] and " that process %d has locked" % holder in finding["sentence"]
    else:
        assert not finding["pids"] and " that another connection of this process has locked" in finding["sentence"]


def test_a_loop_with_short_sleeps_beside_a_locked_database():
    with started("wal", "process", "no") as program:
        program.line()
        assert judge(program.pid) == (0, [])

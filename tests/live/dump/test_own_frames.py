# SPDX-License-Identifier: GPL-3.0-or-later
"""--native leaves out the C frames by which the interpreter calls; --native=all has them."""

import json
import re

import pytest

import environment
import support
import tables

CODE = """
import functools, sys, threading, time

class Key:
    started = threading.Event()
    def __lt__(self, other):
        self.started.set()
        time.sleep(1000)
    def __call__(self):
        return sorted([self, Key()])

key = Key()
thread = threading.Thread(target=functools.partial(key), daemon=True)
thread.start()
key.started.wait()
print("ready", flush=True)
sys.stdin.read()
"""
# Functions that a program requested by name are not the interpreter's own.
ASKED = {"builtin_sorted", "list_sort_impl", "listsort", "time_sleep", "pysleep", "list_sort"}
COLUMNS = "SELECT tid, func, frame_type, file, lineno, ip, module FROM %s ORDER BY tid, depth"


def stacks(found):
    return {thread["tid"]: [(frame["func"], frame["kind"], frame["file"], frame["line"],
                             frame["ip"], frame["module"]) for frame in thread["frames"]]
            for thread in found["threads"]}


def rows(pid, table):
    threads = {}
    for row in tables.query(pid, COLUMNS % table):
        row = dict(row)
        threads.setdefault(row.pop("tid"), []).append(tuple(
            row[key] for key in ("func", "frame_type", "file", "lineno", "ip", "module")))
    return threads


FROM_3_6 = [each for each in support.INTERPRETERS if each.version >= (3, 6)]


@pytest.fixture(params=FROM_3_6, ids=repr)
def asleep(request):
    interpreter = request.param
    with support.Program([interpreter.exe, "-c", CODE], env=interpreter.env) as program:
        program.line()
        environment.settle(program.pid, 2)
        yield program.pid


def test_what_is_left_out(asleep):
    brief, whole = (support.dump(asleep, option) for option in ("--native", "--native=all"))
    shown, everything = stacks(brief), stacks(whole)
    left_out = 0
    for tid, frames in everything.items():
        rest = [frame for frame in frames if frame not in shown[tid]]
        left_out += len(rest)
        assert [frame for frame in frames if frame in shown[tid]] == shown[tid]
        assert all(frame[1] != "python" for frame in rest), rest
        assert not ASKED & {frame[0] for frame in rest}, rest
    assert brief["own_frames"] == left_out > 5 and whole["own_frames"] == 0
    names = [frame[0] or "" for frames in shown.values() for frame in frames if frame[1] != "python"]
    assert not [name for name in names if name.startswith(("Py", "_Py", "slot_", "cfunction_"))]
    assert any((frame[0] or "").startswith(("Py", "_Py")) for frame in sum(everything.values(), []))


def test_sql_agrees(asleep):
    assert rows(asleep, "native.backtrace") == stacks(support.dump(asleep, "--native"))
    assert rows(asleep, "native.frames") == stacks(support.dump(asleep, "--native=all"))
    # Each table keeps its own content within one statement.
    both = tables.query(asleep, "SELECT (SELECT count(*) FROM native.backtrace) AS some, "
                                "(SELECT count(*) FROM native.frames) AS whole")[0]
    assert both["some"] == sum(map(len, rows(asleep, "native.backtrace").values())) < both["whole"]


def test_text_says_how_many(probing, asleep):
    count = support.dump(asleep, "--native")["own_frames"]
    said = " · %d C frames of the interpreter left out\n" % count
    assert said in probing(asleep, "dump", "--native").out
    assert said in probing(asleep, "dump", "-nl").out
    for options in ([], ["--native=all"]):
        assert "left out" not in probing(asleep, "dump", *options).out
    assert "own_frames" not in support.dump(asleep)


def test_a_snapshot_has_both(probing, asleep, tmp_path):
    file = tmp_path / "own.snap"
    assert probing(asleep, "snapshot", "-o", file).code == 0
    for option in ("--native", "--native=all"):
        live, saved = support.dump(asleep, option), json.loads(probing(file, "dump", "--json", option).out)
        assert stacks(live) == stacks(saved) and live["own_frames"] == saved["own_frames"]


def test_wrong_values(probing):
    for word in ("--native=some", "--native=ALL"):
        result = probing("1", "dump", word)
        assert result.code == 2 and re.search(r"--native is followed by nothing or by =all", result.err)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks of asyncio, compared with Python's own data."""
import json
import re
import shutil
import subprocess

import pauses
import pytest
import support
from library import UNSUPPORTED, Error, Session

TASKS = ("task", "name", "state", "coro", "waits_kind", "waits_for", "seconds_left", "awaiters",
         "chain", "depth", "file", "lineno", "loop", "tid", "interpreter", "read", "_error")
FRAMES = ("task", "name", "depth", "func", "qualname", "file", "lineno", "end_lineno", "col",
          "end_col", "coroutine")
WITH_TASKS = [i for i in support.INTERPRETERS if i.version >= (3, 7)]
EACH = pytest.mark.parametrize("interpreter", WITH_TASKS, ids=repr)
ONE_EACH = pytest.mark.parametrize("interpreter", support.one_per_version(first=(3, 7)), ids=repr)

# What tasks of programs/asyncio_shapes.py wait for: kind, and the words for it with the labels of
# tasks in place of their names. Those that are not here sleep for 1000 s.
WAITS = {
    "event": ("event", r"Event\.wait of 0x[0-9a-f]+"),
    "timeout": ("event", r"Event\.wait of 0x[0-9a-f]+"),
    "queue": ("queue", r"Queue\.get of 0x[0-9a-f]+"),
    "lock": ("lock", r"Lock\.acquire of 0x[0-9a-f]+, held by task lock-holder, in use_lock asyncio_shapes\.py:\d+"),
    "condition": ("condition", r"Condition\.wait of 0x[0-9a-f]+"),
    "semaphore": ("semaphore", r"Semaphore\.acquire of 0x[0-9a-f]+"),
    "shared-by-1": ("task", "task shared"),
    "shared-by-2": ("task", "task shared"),
    "gather": ("gather", "gather of tasks child-0, child-1"),
    "nested-gather": ("gather", "gather of tasks child-0, child-1, child-2"),
    "wait": ("wait", "wait for tasks child-2, wait-child"),
    "wait_for": ("wait_for", "wait_for task wait_for-child"),
    "shield": ("task", "a future of task shield-child"),
    "executor": ("executor", "executor, running"),
    "old-style": ("future", "Future at 0x[0-9a-f]+"),
    "awaitable": ("future", "Future at 0x[0-9a-f]+"),
    "future": ("future", "Future at 0x[0-9a-f]+"),
    "socket": ("socket", r"sock_recv on fd \d+"),
    "stream": ("stream", r"StreamReader\._wait_for_data on fd \d+"),
    "group": ("group", "TaskGroup of tasks group-child-1, group-child-2"),
    "python-future": ("future", "Future at 0x[0-9a-f]+"),
    "python-parent": ("task", "task python-child"),
    "eager-parent": ("task", "task eager-child"),
    "unstarted": ("ready", "its turn to start"),
}
# Since 3.12 wait_for() awaits the task itself.
NEWER_WAITS = {"wait_for": ("task", "task wait_for-child")}
AWAITERS = {
    "shared": {"shared-by-1", "shared-by-2"},
    "child-0": {"gather", "nested-gather"},
    "child-1": {"gather", "nested-gather"},
    "child-2": {"nested-gather", "wait"},
    "wait-child": {"wait"},
    "wait_for-child": {"wait_for"},
    "shield-child": {"shield"},
    "group-child-1": {"group"},
    "group-child-2": {"group"},
    "python-child": {"python-parent"},
    "eager-child": {"eager-parent"},
}


def rows(session, table, columns):
    return [dict(zip(columns, row)) for row in session.query(
        "SELECT %s FROM python.%s" % (", ".join(columns), table))]


def read(target):
    """The rows of both tables, and a chain of (qualified name, file, line) for each task."""
    with Session(target) as session:
        tasks, frames = rows(session, "tasks", TASKS), rows(session, "task_frames", FRAMES)
        assert not session.warnings
    for task in tasks:
        chain = [frame for frame in frames if frame["task"] == task["task"]]
        assert [frame["depth"] for frame in chain] == list(range(task["depth"]))
        task["frames"] = [[frame["qualname"], frame["file"], frame["lineno"]]
                          for frame in reversed(chain)]
    return {task["task"]: task for task in tasks}


@pytest.fixture
def shapes(interpreter, target):
    process = target("asyncio_shapes.py", interpreter=interpreter)
    process.truth = {int(address): entry for address, entry in json.loads(process.line()).items()}
    return process


def is_told(interpreter, truth):
    """From 3.14 on an ended task is in no registry any more; those in Python stay."""
    return interpreter.version < (3, 14) or truth["state"] in ("pending", "running") or \
        truth["label"].startswith("python")


def labelled(words, tasks):
    """Words with labels of tasks for their names (addresses before 3.8), several in order."""
    for address, entry in tasks.items():
        words = words.replace("%#x" % address, entry["label"])
    head, several, names = words.partition(" tasks ")
    return head + several + ", ".join(sorted(names.split(", ")))


@EACH
def test_as_python_tells(interpreter, shapes):
    found = read(shapes.pid)
    for address, truth in shapes.truth.items():
        if not is_told(interpreter, truth):
            continue
        task = found[address]
        assert task["_error"] is None and task["read"] == "idle", task
        for key in ("name", "state", "coro", "loop"):
            assert task[key] == truth[key], (key, truth["label"], task)
        if truth["tid"]:  # Python has it since 3.8
            assert task["tid"] == truth["tid"], task
        if truth["chain"] is not None:
            assert task["frames"] == truth["chain"], truth["label"]
    for address in set(found) - set(shapes.truth):  # tasks made by run_until_complete()
        assert found[address]["state"] == "done", found[address]


@EACH
def test_what_they_wait_for(interpreter, shapes):
    found = read(shapes.pid)
    expected = dict(WAITS, **(NEWER_WAITS if interpreter.version >= (3, 12) else {}))
    for address, truth in shapes.truth.items():
        if not is_told(interpreter, truth):
            continue
        task, label = found[address], truth["label"]
        awaiters = labelled(task["awaiters"] or "", shapes.truth)
        assert set(filter(None, awaiters.split(", "))) == AWAITERS.get(label, set()), task
        if truth["state"] != "pending":
            assert task["waits_kind"] is None and task["waits_for"] is None, task
            continue
        kind, words = expected.get(label, ("sleep", r"sleep\(1000\)"))
        assert task["waits_kind"] == kind, task
        assert re.fullmatch(words, labelled(task["waits_for"], shapes.truth)), task
        if kind == "sleep":
            assert 900 < task["seconds_left"] < 1000, task
        elif kind == "wait_for":
            assert 4900 < task["seconds_left"] < 5000, task
        else:
            assert task["seconds_left"] is None, task


@EACH
def test_a_running_task_shows_the_functions_it_called(interpreter, shapes):
    running = [task for task in read(shapes.pid).values() if task["state"] == "running"]
    assert [task["coro"] for task in running] == ["block"]
    names = [name for name, _, _ in running[0]["frames"]]
    assert names[:2] == ["block", "wait_blocked"] and names[-1] == "Condition.wait"


@ONE_EACH
def test_snapshot_tells_the_same(interpreter, shapes, probing, tmp_path, monkeypatch):
    live = read(shapes.pid)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for options in ([], ["--redact"]):
        file = tmp_path / "snapshot"
        assert probing(shapes.pid, "snapshot", "-o", file, *options).code == 0
        there = read(file)
        for address, task in there.items():
            if options and task["waits_kind"] != "ready" and task["waits_for"]:
                # Without variables the lock and the time are unknown.
                words = re.sub(r"\(1000\)| (of|on) (fd|0x).*", "", live[address]["waits_for"])
                assert task["waits_for"] == words
            task["waits_for"] = live[address]["waits_for"]
            # The clock of the snapshot is stopped; without variables there is no deadline.
            before, left = live[address]["seconds_left"], task["seconds_left"]
            assert (left is None) == (before is None or bool(options))
            assert left is None or before - 60 < left <= before
            task["seconds_left"] = before
        assert there == live


@pytest.mark.skipif(not shutil.which("gcore"), reason="gcore is not installed")
@ONE_EACH
def test_core_tells_the_same(interpreter, shapes, tmp_path):
    live = read(shapes.pid)
    subprocess.run(["gcore", "-o", tmp_path / "core", str(shapes.pid)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    there = read(tmp_path / ("core.%d" % shapes.pid))
    for address, task in live.items():
        task["seconds_left"] = None  # a core does not know the time
        if task["state"] == "running" and there[address]["_error"]:
            there[address] = task  # gcore leaves out stacks that have a guard inside
    assert there == live


def is_possible(task):
    """Whether a task of programs/asyncio_churn.py can have that chain."""
    whole = [" → ".join(["churn"] + ["%s_%d" % (family, level) for level in range(9, -1, -1)])
             for family in ("left", "right")]
    if task["state"] == "running":
        return any((each + " → ").startswith(task["chain"] + " → ") or
                   task["chain"].startswith(each + " → ") for each in whole)
    return task["chain"] in [each + end for each in whole
                             for end in (" → sleep", " → sleep → __sleep0")]


@ONE_EACH
@pytest.mark.parametrize("mode", ["default", "nonblocking"])
def test_no_impossible_chain_of_tasks_that_run(interpreter, mode, target):
    process = target("asyncio_churn.py", "20", interpreter=interpreter)
    exact = total = 0
    with Session(process.pid) as session:
        session.set("probing.query.mode", mode)
        for _ in range(support.count(10, 300)):
            # Of a task that began to run, not even the coroutine may be known: then main()'s cannot be
            # distinguished from the others.
            tasks = [task for task in rows(session, "tasks", TASKS)
                     if task["coro"] == "churn" or task["_error"]]
            good = [task for task in tasks if task["_error"] is None]
            assert len(tasks) in (20, 21) and not [t for t in good if not is_possible(t)]
            exact += len([task for task in good if task["read"] != "unstable"])
            total += 20
    assert mode == "nonblocking" or exact == total


def test_no_asyncio(target):
    with Session(target("threads.py").pid) as session:
        assert rows(session, "tasks", TASKS) == rows(session, "task_frames", FRAMES) == []


def test_before_3_7(target):
    old = [i for i in support.INTERPRETERS if i.version == (3, 6)]
    if not old:
        pytest.skip("no Python 3.6 here")
    with Session(target("threads.py", interpreter=old[0]).pid) as session:
        with pytest.raises(Error) as caught:
            session.query("SELECT * FROM python.tasks")
    assert caught.value.code == UNSUPPORTED and "3.7" in str(caught.value)


def test_frames_of_one_task(target):
    process = target("asyncio_shapes.py")
    truth = json.loads(process.line())
    address = next(key for key, entry in truth.items() if entry["label"] == "generator")
    with Session(process.pid) as session:
        assert session.query("SELECT func FROM python.task_frames(%s)" % address) == \
            session.query("SELECT func FROM python.task_frames WHERE task = %s" % address) == \
            [("sleep",), ("numbers",), ("use_generator",)]


def test_target_is_not_disturbed(newest, target):
    process = target("asyncio_churn.py", "20", interpreter=newest)
    with Session(process.pid) as session:
        for _ in range(20):
            rows(session, "tasks", TASKS)
    assert process.alive()
    assert pauses.nobody_traced(process.pid)

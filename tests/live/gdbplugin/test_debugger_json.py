# SPDX-License-Identifier: GPL-3.0-or-later
"""`set probing format json` in the debuggers: the same output as the command's for the target; and the
selected thread and inferior are used."""

import json
import os
import re
import subprocess

import debuggers
import pytest
import support
from debuggers import gdb, lldb, opened
from debuggers import known, sleeper  # noqa: F401 (fixtures)

# Values that depend on the time and way of reading.
PASSING = ("timestamp", "pause_us", "paused_threads", "warnings")
PASSING_OF_THREADS = ("os_name", "state", "idle_seconds", "waits_for", "read", "pause_us")
TOOLS = [pytest.param(gdb, "set probing format json", marks=debuggers.needs_gdb, id="gdb"),
         pytest.param(lldb, "probing set format json", marks=debuggers.needs_lldb, id="lldb")]


@pytest.fixture
def several(known):
    """Threads that sleep for good, with calls and variables of many kinds."""
    with support.Target(known, debuggers.PROGRAMS / "recorded.py") as process:
        process.line()
        support.wait_for_all_asleep(process.pid, len(support.thread_ids(process.pid)))
        yield process


def shell(process, *options):
    done = subprocess.run([support.BINARY, "-p", str(process.pid), *options], check=True,
                          stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    return json.loads(done.stdout.decode())


def lasting(dump):
    """The dump without values that change."""
    dump = {key: value for key, value in dump.items() if key not in PASSING}
    dump["target"] = dict(dump["target"], kind=None, exe=None, argv=None)
    dump["threads"] = [{key: value for key, value in thread.items()
                        if key not in PASSING_OF_THREADS} for thread in dump["threads"]]
    return dump


def printed(session, name):
    return json.loads(next(line for line in session.part(name).splitlines()
                           if line.startswith(("{", "["))))


@pytest.mark.parametrize("way", debuggers.WAYS)
@pytest.mark.parametrize("tool, setting", TOOLS)
def test_json_is_that_of_the_command(several, tool, setting, way, tmp_path):
    everything = shell(several, "backtrace", "--all", "--json", "--locals")
    one = shell(several, "backtrace", "--json", "--native")
    rows = shell(several, "query", "-f", "json", "SELECT * FROM python.threads")
    assert len(everything["threads"]) == len(rows) > 1 and support.python_frames(one["threads"][0])
    assert all(row["name"] for row in rows)
    with opened(tool, way, several, tmp_path) as run:
        session = run(setting, ("all",), "probing backtrace --all --locals", ("one",),
                      "probing backtrace --native --tid %d" % several.pid, ("threads",),
                      "probing threads", ("end",))
    assert lasting(printed(session, "all")) == lasting(everything)
    found, expected = (lasting(dump)["threads"][0] for dump in (printed(session, "one"), one))
    assert [f["qualname"] for f in support.python_frames(found)] == \
        [f["qualname"] for f in support.python_frames(expected)]
    assert way == "gdbserver" and tool is lldb or \
        any(frame["kind"] == "native" for frame in found["frames"])
    assert [(row["tid"], row["name"], row["interpreter"]) for row in printed(session, "threads")] \
        == [(row["tid"], row["name"], row["interpreter"]) for row in rows]


@pytest.mark.parametrize("tool, setting", TOOLS)
def test_an_error_is_no_json(sleeper, tool, setting):
    session = tool(setting, ("bt",), "probing backtrace --tid 1", arguments=["-p", sleeper.pid])
    assert "probing: " in session.err and "no Python thread 1" in session.err, session
    assert "{" not in session.part("bt")


@debuggers.needs_gdb
def test_another_thread_of_gdb(target):
    process = target("threads.py")
    names = gdb("set probing format json", ("each",), "thread apply all -q -s probing backtrace",
                arguments=["-p", process.pid])
    dumps = [json.loads(line) for line in names.part("each").splitlines() if line[:1] == "{"]
    assert sorted(dump["threads"][0]["tid"] for dump in dumps) == \
        support.thread_ids(process.pid), names
    assert all(len(dump["threads"]) == 1 for dump in dumps)


@debuggers.needs_lldb
def test_another_thread_of_lldb(target):
    process = target("threads.py")
    count = len(support.thread_ids(process.pid))
    commands = []
    for number in range(1, count + 1):
        commands += [("t%d" % number,), "thread select %d" % number, "probing backtrace"]
    session = lldb("probing set format json", *commands, arguments=["-p", process.pid])
    tids = [printed(session, "t%d" % number)["threads"][0]["tid"]
            for number in range(1, count + 1)]
    assert sorted(tids) == support.thread_ids(process.pid), session


@debuggers.needs_gdb
def test_several_inferiors(target, known):
    first, second = target("sleeper.py", interpreter=known), target("threads.py")
    session = gdb("attach %d" % first.pid, "add-inferior", "inferior 2", "attach %d" % second.pid,
                  ("two",), "probing backtrace", "probing info", ("one",), "inferior 1",
                  "probing backtrace", "probing up", "probing info", ("again",), "inferior 2",
                  "probing backtrace", "inferior 1", ("kept",), "probing backtrace", ("end",))
    assert not session.code, session
    for name, process, file in (("one", first, "sleeper.py"), ("two", second, "threads.py")):
        assert re.search(r"^%d " % process.pid, session.part(name), re.M), session
        assert re.search(r"^process +%d " % process.pid, session.part(name), re.M)
        assert file in session.part(name)
    assert "\n* #0" in session.part("again")
    assert os.path.basename(str(debuggers.PROGRAMS / "sleeper.py")) in session.part("kept")
    assert first.alive() and second.alive()

# SPDX-License-Identifier: GPL-3.0-or-later
"""One script has the same output on a running process, a paused one, a core file, a snapshot, a served
process, and in gdb and LLDB."""

import os
import subprocess
from pathlib import Path

import pytest
import support
import tables
from debuggers import gdb, lldb
from remote import TOKEN, Service
from scripts import run

SCRIPT = Path(__file__).with_name("matrix_cases.py")
PROGRAM = support.HERE / "programs" / "matrix.py"
THREADS = 3
PAUSED = "with p.pause(): exec(compile(open(%r).read(), %r, 'exec'))" % (str(SCRIPT), str(SCRIPT))
# Values that only the program knows, or lacks.
RAISED = {17: "NotThere", 19: "NotThere", 20: "NeedsCode", 23: "NotThere", 34: "NeedsCode",
          35: "NeedsCode", 36: "NeedsCode", 37: "NeedsCode", 47: "Error", 48: "Gone"}


@pytest.fixture(params=tables.chosen_interpreters(), ids=repr)
def asleep(request):
    with support.Target(request.param, PROGRAM) as process:
        process.line()
        support.wait_for_all_asleep(process.pid, THREADS)
        yield process


def script(*words, **options):
    result = run("script", *words, **options)
    assert (result.code, result.err) == (0, ""), result
    return result.out


def in_debugger(start, process):
    line = "exec(compile(open(%r).read(), 'cases', 'exec'))" % str(SCRIPT)
    session = start(("begin",), ("python " if start is gdb else "script ") + line, ("end",),
                    arguments=["-p", process.pid])
    assert session.code == 0 and "Traceback" not in session.out + session.err, session
    return session.part("begin")


def lines(text):
    return [line for line in text.splitlines() if line.split(" ")[0].isdigit()]


def test_the_same_everywhere(asleep, tmp_path):
    pid = asleep.pid
    live = lines(script(SCRIPT, pid))
    assert len(live) >= 40
    raised = {int(number): text for number, text in (line.split(" ", 1) for line in live)
              if text in ("NotThere", "NeedsCode", "Gone", "Error")}
    assert raised == RAISED, live
    saved = tmp_path / "x.snapshot"
    subprocess.run([support.BINARY, str(pid), "snapshot", "--heap", "-o", str(saved)], check=True,
                   stdout=subprocess.DEVNULL)
    assert lines(script(SCRIPT, saved)) == live
    with Service(pid) as service:
        assert lines(script(SCRIPT, service.address, env={"PROBING_AUTH_TOKEN": TOKEN})) == live
    assert lines(script(SCRIPT, tables.core_of(pid, tmp_path))) == live
    support.wait_for_all_asleep(pid, THREADS)
    os.kill(pid, 0)


@pytest.mark.parametrize("start", [gdb, lldb])
def test_the_same_in_a_debugger(asleep, start):
    live = lines(script(SCRIPT, asleep.pid))
    assert lines(in_debugger(start, asleep)) == live
    support.wait_for_all_asleep(asleep.pid, THREADS)
    os.kill(asleep.pid, 0)


def test_the_same_of_what_is_paused(asleep):
    live = lines(script(SCRIPT, asleep.pid))
    assert lines(script("-c", PAUSED, asleep.pid)) == live

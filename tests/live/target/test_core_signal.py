# SPDX-License-Identifier: GPL-3.0-or-later
"""The cause of death of a core's process: in the first line of a dump, in JSON and in SQL."""
import json
import os
import re
import resource
import signal
from pathlib import Path

import pytest

import support
import tables
from environment import PROGRAMS


@pytest.fixture
def killed(newest, tmp_path):
    """killed(HOW, SIGNAL): the core of a program that died that way, and its pid."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text(encoding="utf-8").strip()
    if pattern != "core":
        pytest.skip("cores of the kernel go to %r here" % pattern)
    limit = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)

    def kill(how, by_us=None):
        with support.Program([newest.exe, PROGRAMS / "dies.py", how], env=newest.env, cwd=tmp_path,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, limit)
                             ) as process:
            assert process.line() == "ready"
            if by_us:
                os.kill(process.pid, by_us)
            process.wait()
            core, = [*tmp_path.glob("core"), *tmp_path.glob("core.%d" % process.pid)]
            return core, process.pid

    return kill


def told(probing, core):
    """The first line of the dump, target.signal, and the columns."""
    text = probing("-t", core, "debug", "--dump")
    rows = probing("-t", core, "query", "-f", "json",
                   "SELECT signal, signal_code, signal_address, signal_sender, signal_tid "
                   "FROM process.info")
    found = support.dump(core)["target"]["signal"]
    row, = json.loads(rows.out)
    assert row == {"signal": found["name"], "signal_code": found["code"],
                   "signal_address": found["address"], "signal_sender": found["sender"],
                   "signal_tid": found["tid"]}, (rows, found)
    return text.out.splitlines()[0], found


def test_an_address(killed, probing):
    core, pid = killed("address")
    line, found = told(probing, core)
    assert line.startswith("%d  " % pid) and "dies.py address" in line.replace("'", ""), line
    assert line.endswith(" · killed by SIGSEGV at address 0xdeadbeef (not mapped)"), line
    assert found == {"number": signal.SIGSEGV, "name": "SIGSEGV", "code": "SEGV_MAPERR",
                     "reason": "not mapped", "address": "0xdeadbeef", "sender": None, "tid": pid}


def test_a_snapshot_of_a_core(killed, probing, tmp_path):
    core, _ = killed("address")
    assert told(probing, tables.snapshot_of(core, tmp_path)) == told(probing, core)


def test_an_address_in_another_thread(killed, probing):
    core, pid = killed("thread")
    line, found = told(probing, core)
    assert found["tid"] != pid
    assert line.endswith("0xdeadbeef (not mapped; thread %d)" % found["tid"]), line


@pytest.mark.parametrize("how, name, code", [("abort", "SIGABRT", "SI_TKILL"),
                                             ("kill", "SIGSEGV", "SI_USER")])
def test_by_itself(how, name, code, killed, probing):
    core, pid = killed(how)
    line, found = told(probing, core)
    assert line.endswith(" · killed by %s sent by itself, %d" % (name, pid)), line
    assert (found["name"], found["code"], found["address"], found["sender"]) == (
        name, code, None, pid)


def test_by_another_process(killed, probing):
    core, _ = killed("sleep", by_us=signal.SIGABRT)
    line, found = told(probing, core)
    assert line.endswith(" · killed by SIGABRT sent by %d" % os.getpid()), line
    assert (found["code"], found["sender"]) == ("SI_USER", os.getpid())


def test_nothing_killed_it(target, probing, tmp_path):
    """A process that lives, its core by gcore, and its snapshot."""
    process = target("sleeper.py")
    core = tables.core_of(process.pid, tmp_path)
    for found in process.pid, core, tables.snapshot_of(process.pid, tmp_path):
        assert support.dump(found)["target"]["signal"] is None
        assert not re.search("killed", probing("-t", found, "debug", "--dump").out)
        row, = json.loads(probing("-t", found, "query", "-f", "json",
                                  "SELECT signal, signal_code FROM process.info").out)
        assert row == {"signal": None, "signal_code": None}

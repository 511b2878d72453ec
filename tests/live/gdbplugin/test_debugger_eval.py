# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing eval` and `probing inject` in gdb and LLDB: code runs in the process that the debugger holds,
or is refused; the process and the user's selections in the debugger stay unchanged."""

import json
import os
import re
import subprocess

import agent
import debuggers
import pytest
import support
import tables
from debuggers import attached, both, printed, problem

PROGRAMS = support.HERE / "programs"


@pytest.fixture(params=tables.chosen_interpreters(), ids=repr)
def sleeping(request):
    """Threads that sleep for good."""
    with support.Target(request.param, PROGRAMS / "recorded.py") as process:
        process.line()
        support.wait_for_all_asleep(process.pid, len(support.thread_ids(process.pid)))
        yield process


@pytest.fixture
def sleeper(target):
    process = target("sleeper.py", interpreter=tables.known_interpreter())
    support.wait_for_sleep(process.pid, "pipe_read")
    return process


def shell(process, code):
    return subprocess.run([support.BINARY, "-p", str(process.pid), "eval", "--no-inject", code],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


# Evaluating

@both
def test_what_is_printed_and_the_value(start, sleeping):
    session = attached(start, sleeping, ("first",), "probing eval print('shown'); 6 * 7",
                       ("second",), "probing eval __import__('threading').current_thread().name",
                       ("none",), "probing eval x = 1", ("kept",), "probing eval x + 1",
                       ("end",), "probing eval [][1]")
    assert printed(session, "first") == "shown\n42", session
    assert printed(session, "second") == "'MainThread'", session
    assert printed(session, "none") == "" and printed(session, "kept") == "2", session
    assert "IndexError: list index out of range" in session.part("end")
    assert problem(session) == "the code raised IndexError"
    assert "ran on" not in session.err
    assert sleeping.alive() and shell(sleeping, "x").stdout == "1\n"
    status = subprocess.run([support.BINARY, str(sleeping.pid), "agent", "status", "--json"],
                            stdout=subprocess.PIPE, check=True).stdout
    assert json.loads(status)["evaluations"] == 6  # also the five of the debugger


@both
@pytest.mark.parametrize("interpreter", tables.chosen_interpreters(), ids=repr)
def test_while_a_thread_computes(start, target, interpreter):
    process = target("threads.py", interpreter=interpreter)
    session = attached(start, process, ("one",), "probing eval 'a' * 3", ("two",),
                       "probing eval 'b' * 3", ("threads",), "probing threads")
    assert "'aaa'" in session.part("one") and "'bbb'" in session.part("two"), session
    assert "rec_busy" in session.part("threads") and not session.code
    assert process.alive() and shell(process, "'c' * 3").stdout == "'ccc'\n"


@both
def test_while_all_threads_allocate(start, target):
    """Wherever it is stopped: in malloc() most of the time."""
    process = target("allocates.py", interpreter=tables.known_interpreter())
    for _ in range(support.count(3, 50)):
        session = attached(start, process, "probing eval len(broken)")
        assert not session.code and re.search(r"^0$", session.out, re.M), session
    assert process.alive() and shell(process, "broken").stdout == "[]\n"


@debuggers.needs_gdb
def test_in_malloc(target):
    process = target("allocates.py", interpreter=tables.known_interpreter())
    for command in ("probing inject", "probing eval len(broken)"):  # some other thread may be fit for the first
        session = attached(debuggers.gdb, process, "break malloc", "continue", ("stack",), "backtrace 1",
                           ("first",), debuggers.tried(debuggers.gdb, command), ("again",), "backtrace 1")
        assert "malloc" in session.part("stack") and printed(session, "stack") == printed(session, "again"), session
    session = attached(debuggers.gdb, process, "break malloc", "continue", ("stack",), "backtrace 1",
                       ("first",), "probing eval --all len(broken)", ("points",), "info breakpoints")
    assert "malloc" in session.part("stack") and printed(session, "first") == "0", session
    assert re.search(r"^1 .* keep y ", session.part("points"), re.M)
    assert process.alive() and shell(process, "broken").stdout == "[]\n"


@debuggers.needs_gdb
def test_at_the_entry_of_a_system_call(target):
    """gdb's call of a function there would have the program's own call fail."""
    process = target("sleeper.py", interpreter=tables.known_interpreter())
    session = attached(debuggers.gdb, process, "catch syscall read", "continue", ("at",),
                       "probing threads", "probing inject")
    assert "at the entry of a system call" in problem(session), session
    assert "let the process run" in problem(session)
    assert process.wait() == (0, "")


@both
def test_what_was_selected_stays(start, sleeper):
    session = attached(start, sleeper, "probing up", ("before",), "probing backtrace",
                       ("eval",), "probing eval sys.argv", ("after",), "probing backtrace", "probing locals")
    assert "\n* #1" in session.part("before"), session
    assert printed(session, "after").startswith(printed(session, "before")), session
    assert "shared" in session.part("after")


@debuggers.needs_gdb
def test_settings_of_gdb_stay(sleeper):
    session = attached(
        debuggers.gdb, sleeper, "break write", "set scheduler-locking step", "set language ada",
        "handle SIGURG nostop print nopass", ("before",), "show language",
        "show scheduler-locking", "info signals SIGURG", "info breakpoints",
        "frame function _PyEval_EvalFrameDefault", "frame", ("eval",), "probing eval print(1)",
        ("after",), "show language", "show scheduler-locking", "info signals SIGURG",
        "info breakpoints", "frame")
    before = session.part("before").splitlines()
    for line in printed(session, "after").splitlines():
        assert line in before, session
    assert printed(session, "eval") == "1" and sleeper.alive()


@both
def test_a_lock_that_a_stopped_thread_has(start, target):
    process = target("allocates.py", interpreter=tables.known_interpreter())
    for _ in range(20):  # where it was attached, all threads may be waiting for locks
        session = attached(start, process, "probing eval -t 0.5 lock.acquire()")
        said = problem(session)
        if "and try again" not in said:
            break
    assert "not ended within 0.5 s, while all other threads stood" in said and "--all" in said
    assert process.alive()
    # The debugger has gone, so the code was interrupted: once the lock is free, it takes it.
    assert shell(process, "lock.release()").returncode == 0


@both
def test_an_endless_loop(start, sleeper):
    for _ in range(2):  # by the same thread
        session = attached(start, sleeper, ("eval",), "probing eval -t 0.5 while True: pass")
        assert "is interrupted as soon as the process runs" in problem(session)
        assert printed(session, "eval") == "" and "SIGURG" not in session.out, session
        assert shell(sleeper, "1 + 1").stdout == "2\n"
        agent.wait_until(lambda: "probing-debug" not in names_of_python_threads(sleeper))
    assert sleeper.alive()


def special():
    """Builds in which an interruption takes longer, and one in which it does not."""
    found = {(i.version, i.debug_build, i.free_threaded): i for i in support.INTERPRETERS
             if i.debug_build or i.free_threaded}
    return [tables.known_interpreter()] + list(found.values())


@both
@pytest.mark.parametrize("interpreter", special(), ids=repr)
def test_directly_after_code_that_was_given_up(start, target, interpreter):
    process = target("sleeper.py", interpreter=interpreter)
    support.wait_for_sleep(process.pid, "pipe_read")
    session = attached(start, process, ("given_up",),
                       debuggers.tried(start, "probing eval -t 0.5 while True: pass"),
                       ("next",), "probing eval 1 + 1", ("last",), "probing eval 2 + 2")
    assert "is interrupted as soon as the process runs" in session.part("given_up"), session
    assert printed(session, "next") == "2" and printed(session, "last") == "4", session
    session = attached(start, process, "probing eval -t 0.5 while True: pass")
    assert "is interrupted as soon as the process runs" in problem(session), session
    session = attached(start, process, ("next",), "probing eval 3 + 3")
    assert printed(session, "next") == "6", session
    assert process.alive()


def names_of_python_threads(process):
    return [row["name"] for row in tables.query(process.pid, "SELECT name FROM python.threads")]


@both
def test_the_debugger_gets_the_process_back(start, target):
    """Though the GIL is held for minutes of processor time."""
    process = target("evaluated.py", "gil", str(10 ** 10), interpreter=tables.known_interpreter())
    session = attached(start, process, "probing eval 6 * 7")
    assert re.search("^42$", session.out, re.M), session
    process.send(b"x")
    assert process.line() == "holds"
    session = attached(start, process, "probing eval -t 0.5 print('late')")
    assert "the interpreter was not free within 0.5 s" in problem(session), session
    session = attached(start, process, "probing eval -t 0.5 1")
    assert "has not ended within 0.5 s, and nothing was run: let" in problem(session), session
    assert process.alive()


@both
def test_with_all_threads(start, sleeper):
    code = "import threading; t = threading.Thread(target=print); t.start(); t.join(); t.is_alive()"
    session = attached(start, sleeper, "probing eval --all " + code)
    assert re.search(r"^False$", session.out, re.M), session


@both
def test_a_core_is_refused(start, sleeper, tmp_path):
    core = tables.core_of(sleeper.pid, tmp_path)
    exe = os.readlink("/proc/%d/exe" % sleeper.pid)
    for command in ("probing eval 1", "probing inject"):
        session = start(command, arguments=[exe, core] if start is debuggers.gdb else
                        ["-c", core, exe])
        assert "needs a process, and this is a core file" in problem(session), session
        assert "probing print" in problem(session)


@both
@pytest.mark.parametrize("command, said", [
    ("probing eval 1", "there is no process: attach to one"),
    ("probing inject", "there is no process: attach to one"),
    ("probing inject now", "what does 'now' mean"),
    ("probing eval", "there is no code: for example"),
    ("probing eval --timeout x 1", "'x' is no time"),
])
def test_without_a_process(start, command, said):
    assert said in problem(start(command))


@debuggers.needs_gdb
@debuggers.needs_gdbserver
def test_behind_a_gdbserver(sleeper):
    with debuggers.gdbserver(sleeper.pid) as address:
        session = debuggers.gdb("target remote " + address, ("one",),
                                "probing eval print('far'); 2 ** 10", ("two",), "probing eval 2",
                                arguments=[os.readlink("/proc/%d/exe" % sleeper.pid)])
    assert printed(session, "one") == "far\n1024" and printed(session, "two") == "2", session
    assert shell(sleeper, "3").stdout == "3\n" and sleeper.alive()


@debuggers.needs_lldb
@debuggers.needs_gdbserver
def test_behind_a_gdbserver_lldb_cannot_call(sleeper):
    with debuggers.gdbserver(sleeper.pid) as address:
        session = debuggers.lldb("gdb-remote " + address, "probing eval 1",
                                 arguments=[os.readlink("/proc/%d/exe" % sleeper.pid)])
    assert "lldb cannot call functions of this process" in problem(session)
    # LLDB itself kills a process behind a gdbserver when it ends.
    assert "gdb can" in problem(session)


@debuggers.needs_gdb
def test_what_is_recorded_is_refused(sleeper):
    session = attached(debuggers.gdb, sleeper, "record full", "probing eval 1")
    assert "'record stop' first" in problem(session)


@debuggers.needs_gdb
def test_non_stop_mode_is_refused(sleeper):
    session = debuggers.gdb("set non-stop on", "attach %d" % sleeper.pid, "probing eval 1")
    assert "in non-stop mode" in problem(session)


@debuggers.needs_gdb
def test_what_runs_in_non_stop_mode(target):
    """A thread stays running that was not interrupted: that is the reason, and both refuse at once."""
    process = target("threads.py", interpreter=tables.known_interpreter())
    run = ("python t = [t for t in gdb.selected_inferior().threads() if t.num != 1][0]",
           "python t.switch(); t.is_stopped() and gdb.execute('continue&')", "thread 1")
    for command, says in (("probing print 1", "while all threads are stopped, and some run: 'interrupt -a'"),
                          ("probing eval 1", "in non-stop mode threads run on: start gdb without")):
        session = debuggers.gdb("set non-stop on", "attach %d" % process.pid, *run, command)
        assert says in problem(session), session


@debuggers.needs_lldb
def test_a_process_that_runs_in_lldb(sleeper):
    session = debuggers.lldb("script lldb.debugger.SetAsync(True)", "process continue",
                             debuggers.tried(debuggers.lldb, "probing locals"),
                             "process interrupt", arguments=["-p", sleeper.pid])
    assert "the process runs: 'process interrupt' stops it" in session.out, session


@debuggers.needs_lldb
def test_a_process_that_has_just_stopped_in_lldb(sleeper):
    """A moment before its threads are there, each command answers as for a running process."""
    words = {"eval": "1", "print": "1", "query": "SELECT 1", "break-py": "work", "trace": "--calls work", "perf": "-d 0.1",
             "frame": "0", "list": "", "until": "1", "snapshot": "/nowhere/x", "info": "sizes"}
    names = sorted(path.stem.replace("_", "-") for path in (support.ROOT / "gdbplugin/core/commands").glob("[a-z]*.py"))
    assert set(words) <= set(names)
    commands = [debuggers.tried(debuggers.lldb, "probing %s %s" % (name, words.get(name, ""))) for name in names]
    session = debuggers.lldb("script lldb.SBProcess.GetSelectedThread = lambda self: lldb.SBThread()", *commands,
                             arguments=["-p", sleeper.pid])
    assert "Traceback" not in session.out + session.err and "Error:" not in session.out, session
    assert session.out.count("process interrupt") >= 8, session


@both
def test_a_name_of_the_frame_alone(start, sleeper):
    session = attached(start, sleeper, "probing eval only_a_local")
    assert "if 'only_a_local' is a variable of another frame" in problem(session), session


# Injecting

@both
def test_injecting(start, sleeping):
    session = attached(start, sleeping, ("first",), "probing inject", ("second",), "probing inject")
    assert "the agent is loaded; once the process runs" in session.part("first"), session
    assert "the agent was there already" in session.part("second")
    assert shell(sleeping, "40 + 2").stdout == "42\n"
    done = subprocess.run([support.BINARY, "-p", str(sleeping.pid), "eject"], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done
    assert sleeping.alive()


@debuggers.needs_gdb
def test_injecting_without_the_file(sleeper):
    session = debuggers.gdb("probing inject", arguments=["-p", sleeper.pid],
                            env={"PROBING_AGENT": "/nonexistent/agent.so"})
    assert "/nonexistent/agent.so" in problem(session) and "PROBING_AGENT" in problem(session)


@debuggers.needs_gdb
@debuggers.needs_gdbserver
def test_injecting_behind_a_gdbserver_that_has_no_file(sleeper, tmp_path):
    file = tmp_path / "agent.so"
    file.write_bytes(b"not a library")
    with debuggers.gdbserver(sleeper.pid) as address:
        session = debuggers.gdb("target remote " + address, "probing inject",
                                arguments=[os.readlink("/proc/%d/exe" % sleeper.pid)],
                                env={"PROBING_AGENT": str(file)})
    assert "the process cannot load %s" % file in problem(session)
    assert "same path" in problem(session) and sleeper.alive()


@both
def test_the_agent_can_go_after_evaluating(start, sleeper):
    session = attached(start, sleeper, "probing eval 1", "probing eval 2")
    assert not session.code, session
    done = subprocess.run([support.BINARY, "-p", str(sleeper.pid), "eject"], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0 and b"reason" not in done.stdout, done
    assert len(support.thread_ids(sleeper.pid)) == 1
    with open("/proc/%d/maps" % sleeper.pid) as maps:
        assert "libprobing-agent" not in maps.read()


BUSY = "print('ready', flush=True)\nwhile True:\n    pass\n"


@debuggers.needs_gdb
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hide files")
def test_a_thread_that_runs_and_no_debug_files(tmp_path):
    """Without names of the C library's functions, the start of a thread is recognised nevertheless."""
    interpreter = tables.known_interpreter()
    hide = 'if [ -d /usr/lib/debug ]; then mount -t tmpfs none /usr/lib/debug; fi && exec "$@"'
    hidden = ["unshare", "-m", "sh", "-c", hide, "sh"]
    with support.Program([*hidden, interpreter.exe, "-c", BUSY], env=interpreter.env) as process:
        assert process.line() == "ready"
        there = tmp_path / "gdb"
        there.write_text('#!/bin/sh\nexec nsenter -m -r -w -t %d gdb "$@"\n' % process.pid)
        there.chmod(0o755)
        session = debuggers.gdb(("eval",), "probing eval 6 * 7", ("next",), program=str(there),
                                arguments=["-p", process.pid],
                                env={"XDG_CACHE_HOME": str(tmp_path)})
        assert printed(session, "eval") == "42", session
        assert process.alive()

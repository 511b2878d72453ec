# SPDX-License-Identifier: GPL-3.0-or-later
"""The plugin in gdb: on attached processes, cores and behind a gdbserver its output equals the command's;
and it behaves as users of gdb expect."""

import json
import os
import re
import shutil
import subprocess
import sys

import agent
import debuggers
import own_gdb
import pytest
import support
import tables
from debuggers import known, sleeper, sleeping  # noqa: F401 (fixtures)
from debuggers import gdb, query_commands, same_rows, shell_rows, tried

pytestmark = debuggers.needs_gdb


def attached(process, *commands, **options):
    return gdb(*commands, arguments=["-p", process.pid], **options)


def last_line(session):
    return session.err.strip().splitlines()[-1]


# The same as the command says

def test_an_attached_process(sleeping):
    expected = shell_rows(sleeping.pid)
    assert expected["stacks"] and expected["locals"] and expected["native"]
    session = attached(sleeping, *query_commands(), ("info",), "probing info")
    same_rows(session, expected)
    assert "memory directly, registers through gdb" in session.part("info")
    with open("/proc/%d/maps" % sleeping.pid, encoding="utf-8") as maps:
        assert "libprobing" not in maps.read()
    assert sleeping.alive()


def test_a_core(sleeping, tmp_path):
    if sleeping.interpreter.version >= (3, 13) and "debian" in sleeping.interpreter.name:
        pytest.skip("gcore stops short at the guard pages of newer C libraries")
    core = tables.core_of(sleeping.pid, tmp_path)
    session = gdb(*query_commands(), ("info",), "probing info",
                  arguments=[os.readlink("/proc/%d/exe" % sleeping.pid), core])
    same_rows(session, shell_rows(core))
    assert "the core file %s" % core in session.part("info")


@debuggers.needs_gdbserver
def test_behind_a_gdbserver(sleeping):
    expected = shell_rows(sleeping.pid)
    with debuggers.gdbserver(sleeping.pid) as address:
        session = gdb("target remote " + address, *query_commands(), ("info",), "probing info",
                      arguments=[os.readlink("/proc/%d/exe" % sleeping.pid)])
    same_rows(session, expected)
    assert "through gdb" in session.part("info") and "directly" not in session.part("info")


def test_the_name_of_a_thread_that_is_not_shown(target, known):
    """One thread is read, and the holder of its lock is named all the same."""
    process = target(support.ROOT / "docs" / "demo.py", interpreter=known)
    query = "SELECT tid, waits_for FROM python.threads WHERE waits_for LIKE '%RLock held by%'"
    agent.wait_until(lambda: tables.query(process.pid, query))
    row = tables.query(process.pid, query)[0]
    assert re.search(r"held by \d+ [a-z]+, in hold demo\.py:\d+$", row["waits_for"]), row
    assert tables.query(process.pid, "SELECT waits_for FROM python.threads WHERE tid = %d"
                        % row["tid"]) == [{"waits_for": row["waits_for"]}]
    session = attached(process, "probing backtrace --tid %d" % row["tid"])
    assert "%d evaluate  in %s\n" % (row["tid"], row["waits_for"]) in session.out, session


def test_a_program_that_gdb_started(known):
    session = gdb("set breakpoint pending on", "break select", "run", ("bt",), "probing backtrace",
                  "kill", ("after",), "probing backtrace",
                  arguments=["--args", known.exe, "-c",
                             "def wait():\n    import select\n    select.select([], [], [], 9)\n"
                             "wait()"])
    assert debuggers.frames_of(session.part("bt")), session
    assert session.code and "there is no process" in last_line(session)


def test_backtrace_is_that_of_the_command(sleeping):
    done = subprocess.run([support.BINARY, "-p", str(sleeping.pid), "debug", "--dump", "--json"],
                          stdout=subprocess.PIPE, check=True)
    session = attached(sleeping, ("all",), "probing backtrace --all --no-fold")
    texts = session.part("all").split("\n\n")
    for thread in json.loads(done.stdout.decode())["threads"]:
        text = next(t for t in texts if t.lstrip("\n").startswith("%d " % thread["tid"]))
        assert debuggers.frames_of(text) == [
            (f["qualname"] or f["func"], "%s:%d" % (f["file"], f["line"]))
            for f in support.python_frames(thread)]


def test_a_snapshot(sleeping, tmp_path):
    file = tmp_path / "saved.snapshot"
    expected = shell_rows(sleeping.pid)
    session = attached(sleeping, "probing snapshot %s" % file)
    assert not session.code, session
    saved = shell_rows(file)
    for name in ("stacks", "locals", "threads"):
        assert saved[name] == expected[name]


# Commands

def test_moving_between_frames(sleeper):
    session = attached(
        sleeper, ("up",), "probing up", "frame", ("down",), "probing down", ("two",),
        "probing frame 2", ("locals",), "probing locals 1", ("marked",), "probing backtrace",
        ("here",), "probing locals", ("print",), "probing print --type sys.argv[0]", ("list",),
        "probing list",
        ("thread",), "thread 1", "probing frame", ("end",), "probing up")
    assert re.search(r"^#1   outer  .*sleeper.py:16\n16       return sleep\(\)\n.*C frame \d+",
                     session.part("up"), re.M), session
    # gdb's own frame is that of the interpreter's loop.
    assert re.search(r"^#\d+ .* in _?PyEval_EvalFrame", session.part("up"), re.M), session
    assert session.part("down").startswith("#0   outer.<locals>.sleep ")
    assert session.part("two").startswith("#2   <module> ")
    assert "cell     shared = 'cell'" in re.sub(" +=", " =", session.part("locals"))
    assert [line[:4] for line in session.part("marked").splitlines() if line[:1] == "*"] == ["* #2"]
    assert "sys" in session.part("here") and "outer" in session.part("here")
    assert re.search(r"^\(str at 0x[0-9a-f]+\) '/\S*sleeper.py'$", session.part("print"), re.M)
    assert re.search(r"^>   19  outer\(", session.part("list"), re.M)
    # It is forgotten only when the thread has run.
    assert "#2   <module>" in session.part("thread")
    assert session.code and last_line(session) == \
        "probing: there is no frame 3: they go from 0 to 2"


def test_the_selected_frame_is_forgotten_when_the_process_runs(target):
    process = target("threads.py")
    session = gdb("attach %d" % process.pid, "probing up", ("before",), "probing backtrace",
                  "detach", "attach %d" % process.pid, ("after",), "thread apply all -q -s probing "
                  "backtrace")
    assert "\n* #1" in session.part("before"), session
    assert session.part("after").count("* #0") >= 4, session


def test_a_thread_that_runs_in_non_stop_mode(target, known):
    process = target("threads.py", interpreter=known)
    session = gdb("set non-stop on", "attach %d" % process.pid, ("threads",), "probing threads",
                  # gdb stops only the first one; whether others are found stopped is chance.
                  "python t = [t for t in gdb.selected_inferior().threads() if t.num != 1][0]",
                  "python t.switch(); t.is_stopped() and gdb.execute('continue&')",
                  ("other",), "probing backtrace", ("up",), "probing up",
                  ("first",), "thread 1", "probing backtrace", "detach")
    assert not session.code, session
    assert "rec_busy" in session.part("threads") and "MainThread" in session.part("threads")
    assert "calls that start the thread)" in session.part("other")
    assert "C frame was not found" in session.part("up")
    assert "main " in session.part("first")
    assert process.alive()


def test_threads_and_locals_in_the_backtrace(target):
    process = target("threads.py")
    session = attached(process, ("threads",), "probing threads", ("bt",),
                       "probing backtrace --all --locals --native")
    for name in ("MainThread", "waiter-0", "waiter-1", "waiter-2", "worker"):
        assert name in session.part("threads") and name in session.part("bt")
    assert re.search(r"^\* %d +MainThread +main " % process.pid, session.part("threads"), re.M)
    assert "argument depth = 0" in session.part("bt")
    assert "_start" in session.part("bt") and "5 threads" in session.part("bt")


def test_tables(newest):
    session = gdb(("all",), "probing tables", ("one",), "probing tables python.stacks",
                  ("bad",), "probing tables no such")
    assert "python" in session.part("all") and "backtrace" in session.part("all")
    assert "lineno" in session.part("one")
    assert session.code and last_line(session).startswith("probing: 'no such' is no name")


@pytest.mark.parametrize("command, words", [
    ("probing query -f xml SELECT 1", ["no format 'xml'", "json"]),
    ("probing query", ["there is no query", "for example"]),
    ("probing query --frobnicate SELECT 1", ["no option '--frobnicate'", "help probing query"]),
    ("probing backtrace 17", ["what does '17' mean"]),
    ("probing backtrace --tid 1", ["thread 1 runs no Python", "probing threads"]),
    ("probing backtrace --tid", ["--tid needs TID"]),
    ("probing backtrace --tid x", ["'x' is no thread"]),
    ("probing frame 99", ["no frame 99", "from 0 to 2"]),
    ("probing down", ["innermost"]),
    ("probing list 4711", ["has only"]),
    ("probing print", ["there is no expression", "for example"]),
    ("probing print text.upper()", ["'()' is not understood", "no code is run"]),
    ("probing print nowhere", ["no variable 'nowhere'"]),
    ("probing snapshot", ["there is no file"]),
    ("probing snapshot /nonexistent/x", ["/nonexistent/x"]),
    ("probing frobnicate", ["no command 'frobnicate'", "help probing"]),
    ("set probing max-string 0", ["from 1 on"]),
])
def test_errors_are_one_line_that_says_what_to_do(sleeper, command, words):
    session = attached(sleeper, ("error",), command)
    assert session.code, session
    lines = [line for line in session.err.splitlines() if line.startswith("probing: ")]
    assert len(lines) == 1 and lines[0] == last_line(session), session
    for word in words:
        assert word in lines[0]
    assert "Traceback" not in session.err


def test_without_a_process():
    for command in ("backtrace", "query SELECT * FROM python.threads", "info", "up", "threads"):
        session = gdb("probing " + command)
        assert session.code and last_line(session).startswith("probing: "), session
        assert "there is no process" in session.err or "no thread is selected" in session.err


def test_a_process_that_is_no_python(newest):
    with support.Program(["sleep", "1000"]) as process:
        session = gdb("probing backtrace", arguments=["-p", process.pid])
        assert session.code and last_line(session).startswith("probing: ")
        assert "not a Python" in last_line(session)


def test_names_that_a_terminal_would_obey(known):
    with support.Target(known, debuggers.PROGRAMS / "odd_names.py") as process:
        process.line()
        sql = "SELECT func FROM python.stacks"
        session = attached(process, "set probing max-string 20000", ("bt",), "probing backtrace", ("q",),
                           "probing query -f json " + sql)
        shown = session.part("bt")
        assert not session.code and "\x1b" not in shown and "\u202e" not in shown, session
        assert r"/tmp/\udcff\udcfe'é.py:1" in shown
        told = subprocess.run([support.BINARY, "-p", str(process.pid), "query", "-f", "json", sql],
                              stdout=subprocess.PIPE, check=True)
        assert session.rows("q") == json.loads(told.stdout.decode())
        assert len(session.rows("q")) == len(debuggers.frames_of(shown))


# Settings and help

def test_settings(sleeper):
    session = attached(
        sleeper, ("shown",), "show probing", "set probing format json", "set probing max-string 3",
        ("json",), "probing query SELECT 'abcdef' AS a, func FROM python.backtrace LIMIT 1", ("one",),
        "show probing format", ("value",), "probing print shared", ("locals",), "probing locals",
        ("stack",), "set probing format table", "probing backtrace",
        "set probing color on", ("color",), "probing query -f table SELECT NULL AS a",
        "set probing color off", ("plain",), "probing query -f table SELECT NULL AS a")
    assert session.part("shown").split() == ["color", "auto", "format", "table", "max-string",
                                             "4096", "pretty", "off"]
    # Values and cells of tables are cut, and nothing else.
    assert session.rows("json") == [{"a": "abcdef", "func": "sle…"}]
    assert session.part("one").strip() == "json" and session.part("value").strip() == "'ce…"
    assert "shared" in session.part("locals") and "'ce…" in session.part("locals"), session
    assert "sleeper.py:13" in session.part("stack"), session
    assert "\x1b[" in session.part("color") and "\x1b[" not in session.part("plain")


def test_how_much_a_query_shows(sleeper):
    shared = "-f json SELECT value FROM python.locals WHERE name = 'shared' LIMIT 1"
    session = attached(sleeper, ("usual",), "probing query " + shared,
                       ("short",), "probing query --max-value 3 " + shared,
                       ("wrong",), tried(gdb, "probing query --depth deep SELECT 1"))
    assert session.rows("usual") == [{"value": "'cell'"}], session
    assert session.rows("short") == [{"value": "'cel'…+1"}], session
    assert "probing.values.depth cannot be 'deep'" in session.out + session.err, session


def test_width(sleeper):
    wide = "probing query SELECT * FROM python.stacks"
    session = attached(sleeper, "set width 60", ("narrow",), wide, ("wide",),
                       wide.replace("query", "query --wide"))
    assert max(map(len, session.part("narrow").splitlines()[:2])) <= 60
    assert "do not fit" in session.part("narrow") and "…" in session.part("narrow")
    assert max(map(len, session.part("wide").splitlines())) > 100


def test_sampling_is_for_a_shell(sleeper):
    session = attached(sleeper, "probing top --batch")
    assert session.code and last_line(session).startswith(
        "probing: gdb holds process %d, and only one program can stop its threads" % sleeper.pid)
    assert "Type 'detach', and in a shell 'probing %d perf'" % sleeper.pid in last_line(session)


def test_help():
    session = gdb(("bare",), "probing", ("help",), "help probing", ("query",), "help probing query",
                  ("complete",), "complete probing ba", ("set",), "help set probing")
    assert session.part("bare") == session.part("help")
    for name in ("backtrace", "query", "threads", "locals", "up", "down", "frame", "list", "print",
                 "tables", "snapshot", "info", "break-py", "eval", "inject", "perf"):
        assert re.search(r"^probing %s(, probing \w+)* -- [A-Z].*\.$" % name, session.part("help"),
                         re.M), session
    assert "--format FORMAT" in session.part("query")
    assert session.part("complete").split() == ["probing", "backtrace"]
    for name in ("format", "max-string", "color", "pretty"):
        assert "set probing %s -- Set" % name in session.part("set")


def test_loading_is_fast_and_leaves_gdb_as_it_was(sleeper):
    handlers = "python print([len(getattr(gdb.events, e).__class__.__name__) and e for e in " \
        "('stop', 'cont', 'exited') if 'probing' in repr(getattr(gdb.events, e))])"
    load = "python import time; t = time.process_time(); gdb.execute('source %s'); " \
        "print('%%.1f' %% ((time.process_time() - t) * 1e3))" % (
            debuggers.PLUGIN / "probing-gdb.py")
    best = min(float(subprocess.run(
        ["gdb", "-nx", "-q", "-batch", "-ex", load], stdout=subprocess.PIPE, check=True,
        env=debuggers.environment()).stdout.split()[-1]) for _ in range(5))
    support.report("gdb: the plugin is loaded in %.1f ms of processor time" % best)
    assert best <= 50
    session = attached(sleeper, handlers, ("own",), "backtrace 1", "up", "down", "info threads")
    assert not session.code and "#0" in session.part("own"), session


def test_commands_are_fast(sleeper):
    timed = "python import time; t = time.process_time(); " \
        "gdb.execute('probing %s', False, True); print('took', (time.process_time() - t) * 1e3)"
    commands = []
    for name, command in (("query", "query SELECT func FROM python.backtrace"),
                          ("backtrace", "backtrace")):
        commands += [(name,)] + [timed % command] * 6
    session = attached(sleeper, *commands)
    for name in ("query", "backtrace"):
        times = sorted(float(t) for t in re.findall(r"took ([\d.]+)", session.part(name)))
        support.report("gdb: probing %s takes %.1f ms of processor time at best" % (name, times[0]))
        assert times[0] <= 50, session


# Start, installation

def test_starting_gdb(sleeper, tmp_path):
    line = subprocess.run([support.BINARY, "gdb", "--print"], stdout=subprocess.PIPE,
                          check=True).stdout.decode()
    assert line == "source %s\n" % (debuggers.PLUGIN / "probing-gdb.py")
    core = tables.core_of(sleeper.pid, tmp_path)
    for target in (str(sleeper.pid), str(core)):
        done = subprocess.run([support.BINARY, "gdb", target], input=b"probing backtrace\n",
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                              timeout=60)
        assert b"sleeper.py:13" in done.stdout
    for words, said in ((["999999999"], b"not a process id"), (["/dev/null"], b"neither a core")):
        done = subprocess.run([support.BINARY, "gdb", *words], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert done.returncode and done.stderr.startswith(b"probing: "), done


def test_installed(sleeper, tmp_path):
    subprocess.run(["make", "-s", "-C", support.ROOT, "install-gdbplugin",
                    "prefix=%s" % tmp_path, "O=%s/build" % tmp_path], check=True, timeout=60)
    for name, place in (("probing", "bin/probing"), ("libprobing.so", "lib/libprobing.so.1")):
        (tmp_path / place).parent.mkdir()
        shutil.copy(os.path.join(os.path.dirname(support.BINARY), name), tmp_path / place)
    line = subprocess.run([tmp_path / "bin/probing", "gdb", "--print"], stdout=subprocess.PIPE,
                          check=True).stdout.decode()
    assert line == "source %s/share/probing/gdbplugin/probing-gdb.py\n" % tmp_path
    env = dict(debuggers.environment())
    del env["PROBING_LIBRARY"]
    done = subprocess.run(
        ["gdb", "-nx", "-q", "-batch", "-p", str(sleeper.pid), "-ex", line.strip(), "-ex",
         "probing backtrace", "-ex", "python import sys; "
         "print(sys.modules['probing_debugger.core.library'].LIBRARY._name)"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, check=False)
    assert b"sleeper.py:13" in done.stdout, done
    assert str(tmp_path / "lib/libprobing.so.1") in done.stdout.decode()


# The page

def commands_of(block):
    """[(command, its output)] of a session."""
    parts = re.split(r"^\(gdb\) (.*)\n", block, flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


@pytest.mark.skipif(own_gdb.stands_in, reason="a gdb of another version selects another thread")
def test_the_page_shows_what_is_printed():
    sys.path.insert(0, str(support.ROOT / "tests" / "lint"))
    import test_docs
    test_docs.skip_other_python()
    page = (support.ROOT / "docs" / "debuggers.md").read_text()
    block = re.search(r"<!-- session of docs/demo.py -->\n```console\n(.*?)^```$", page,
                      re.S | re.M).group(1)
    shown = commands_of(block)
    assert len(shown) > 5
    with support.Program([test_docs.PYTHON, support.ROOT / "docs" / "demo.py"]) as process:
        process.line()
        support.wait_for_sleep(process.pid, "hrtimer_nanosleep")
        support.wait_for_sleep(process.pid, "inet_csk_accept")
        commands = []
        for number, (command, _) in enumerate(shown):
            commands += [("part%d" % number,), command]
        session = attached(process, *commands, ("end",))
    for number, (command, text) in enumerate(shown):
        if command.startswith("probing "):
            printed = session.part("part%d" % number).rstrip("\n")
            assert test_docs.normal(without_folders(printed)) == \
                test_docs.normal(without_folders(text)), command


def without_folders(text):
    """Where the program lies, and how wide that makes things, differs."""
    return re.sub(r" \S*/docs/demo.py", " docs/demo.py", text)

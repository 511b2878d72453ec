# SPDX-License-Identifier: GPL-3.0-or-later
"""The package `probing` in gdb and LLDB: the same script as outside, events, breakpoints with a
function of the user, functions for gdb's expressions."""

import os
import re
import time

import pytest
import support
import tables
from debuggers import (attached, both, gdb, gdbserver, lldb, needs_gdb, needs_gdbserver, needs_lldb,
                       problem)
from scripts import run

PROGRAMS = support.HERE / "programs"
SCRIPT = """
import probing
p = probing.current()
for t in p.threads():
    print(t.name, t.main, [(f.func, f.line) for f in t.frames])
trainer = p.thread("MainThread").frames[0].locals["self"]
print(trainer.type.name, int(trainer.step), trainer.table, trainer.pair[1], [int(x) for x in trainer.queue])
try:
    print(trainer.model.computed)
except probing.NeedsCode as error:
    print(error)
print(list(p.find("Trainer")) == [trainer], p.thread("MainThread").frames[0].source)
print(p.query("SELECT count(*) AS n, NULL AS empty, 1.5 AS half FROM python.threads"))
"""


def until_it_waits(process):
    end = time.monotonic() + 30
    while "Lock" not in run(process.pid, "script", "-c", "print(p.thread('wanter').waits_for)").out:
        assert time.monotonic() < end


def python(start, *lines):
    """A command that runs them in the debugger's Python."""
    text = "; ".join(lines)
    return "python " + text if start is gdb else "script " + text


def ran(start, process, *commands):
    """The output, of a session that went well."""
    session = attached(start, process, ("begin",), *commands)
    assert session.code == 0 and "Traceback" not in session.out + session.err, session
    return session.part("begin")


@both
def test_the_same_script_as_outside(start, target, interpreter, tmp_path):
    process = target("walked.py", interpreter=interpreter)
    until_it_waits(process)
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    outside = run("script", file, process.pid)
    inside = ran(start, process, python(start, "exec(open(%r).read())" % str(file)))
    assert outside.code == 0 and outside.out.count("\n") == 6, outside
    assert outside.out in inside, (outside, inside)


@both
def test_native_values_and_selected_frames(start, target, newest):
    process = target("walked.py")
    until_it_waits(process)
    show = "hex(int(v.native()))" if start is gdb else "hex(v.native().GetValueAsUnsigned())"
    out = ran(start, process, python(start, "import probing", "v = probing.current().thread("
              "'MainThread').frames[0].locals['self']", "print(%s == hex(v.address))" % show))
    assert out.splitlines()[-1 if start is lldb else 0].strip() == "True" or "\nTrue\n" in out, out


@both
def test_breakpoints_with_functions_and_events(start, target, newest):
    process = target("stepping.py")
    out = ran(
        start, process, python(
            start, "import probing", "seen, hits = [], []",
            "_ = probing.events.stopped.connect(lambda e: seen.append((e.reason, e.python)))",
            "_ = probing.events.breakpoint_hit.connect("
            "lambda e: print('at', e.frame.func, int(e.frame.locals['n']) % 10))",
            "b = probing.break_py('stepping.py:11', lambda f: int(f.locals['n']) % 10 == 3)"),
        "continue",
        python(start, "b.delete()", "c = probing.break_py('step', action=lambda f: "
               "hits.append(int(f.locals['n'])) or len(hits) == 3)"),
        "continue", python(start, "c.delete()", "print('hits', [n - hits[0] for n in hits])",
                           "print('seen', sorted(set(seen)))"))
    assert re.findall(r"^at step \d", out, re.M)[0] == "at step 3", out
    assert "hits [0, 1, 2]\n" in out, out
    seen = re.search(r"^seen (.*)$", out, re.M).group(1)
    assert re.fullmatch(r"\[\('Python breakpoint \d', True\), \('Python breakpoint \d', True\)\]",
                        seen), out
    assert process.alive()


@both
def test_a_function_that_fails_stops_and_says_so(start, target, newest):
    process = target("stepping.py")
    session = attached(
        start, process, ("begin",), python(
            start, "import probing", "b = probing.break_py('stepping.py:11', lambda f: 1 // 0)"),
        "continue", python(start, "print('is at', probing.current().thread().frames[0].line)"))
    assert "is at 11" in session.out, session
    assert "ZeroDivisionError" in session.out + session.err, session


@needs_gdb
def test_functions_in_expressions_of_gdb(target, newest):
    process = target("stepping.py")
    out = ran(gdb, process, 'break clock_nanosleep if $probing_local("n") > 5 && $_thread == '
              '$probing_thread("main")', python(gdb, "import probing"), "continue",
              'print $probing_local("n") > 5', 'print $probing_local("value") == '
              '2 * $probing_local("n", 0)', 'print $probing_thread("nobody")')
    assert re.findall(r"^\$\d = (\d)", out, re.M) == ["1", "1", "0"], out


@needs_gdb
def test_functions_in_expressions_of_a_core(target, newest, tmp_path):
    process = target("stepping.py")
    core = tables.core_of(process.pid, tmp_path)
    thread = "python gdb.execute('thread %d' % int(gdb.parse_and_eval('$probing_thread(\"main\")')))"
    session = gdb(thread, 'print $probing_local("n") > 0', arguments=[newest.exe, core])
    assert session.code == 0 and re.search(r"^\$1 = 1$", session.out, re.M), session


BEHIND = (python(gdb, "import probing", "b = probing.break_py('stepping.py:11', "
                 "lambda f: int(f.locals['n']) % 10 == 3)"), "continue",
          python(gdb, "n = int(probing.current().frame().locals['n'])", "print('at', n % 10)", "b.delete()"),
          'break clock_nanosleep if $probing_local("n", 0) % 10 == 7 && $_thread == '
          '$probing_thread("main")', "continue",
          python(gdb, "print('then', int(probing.current().frame().locals['n']) % 10)"), "detach")


def behind_a_server(start, process, *commands):
    with gdbserver(process.pid) as address:
        remote = "target remote " if start is gdb else "gdb-remote "
        return start(remote + address, ("begin",), *commands,
                     arguments=[os.readlink("/proc/%d/exe" % process.pid)])


@needs_gdb
@needs_gdbserver
def test_functions_behind_a_gdbserver(target, newest):
    process = target("stepping.py")
    session = behind_a_server(gdb, process, *BEHIND)
    assert session.code == 0 and "Traceback" not in session.out + session.err, session
    assert "at 3\n" in session.out and "then 7\n" in session.out, session
    assert process.alive()


@needs_gdb
@needs_gdbserver
def test_a_gdb_that_would_need_commands_refuses(target, newest):
    """One before gdb 12 reads files behind a gdbserver by commands, which would end 'continue'."""
    process = target("stepping.py")
    without = python(gdb, "import probing_debugger.gdb_face as face", "face.sends_packets = lambda: False")
    session = behind_a_server(gdb, process, without, BEHIND[0])
    assert "gdb 12 or later can" in session.err and "evaluated in the process" in session.err, session
    session = behind_a_server(gdb, process, without, *BEHIND[3:5])
    assert "gdb 12 or later can" in session.out + session.err, session
    assert process.alive()


@needs_lldb
@needs_gdbserver
def test_functions_behind_a_gdbserver_in_lldb(target, newest):
    process = target("stepping.py")
    session = behind_a_server(lldb, process, python(
        lldb, "import probing", "b = probing.break_py('stepping.py:11', lambda f: True)"))
    assert "lldb cannot call functions of this process" in session.out + session.err, session


@needs_lldb
def test_conditions_of_lldb(target, newest):
    """The nearest that LLDB has to functions in conditions of breakpoints, as the page shows it."""
    page = (support.ROOT / "docs/scripting.md").read_text(encoding="utf-8")
    command = re.search(r"^\(lldb\) (breakpoint command add .*)$", page, re.M).group(1)
    variable = re.search(r"^\(lldb\) (script .*\$step.*)\n\(lldb\) (expr.*)$", page, re.M).groups()
    process = target("stepping.py")
    out = ran(lldb, process, "breakpoint set --name clock_nanosleep", command.replace(
        'probing.current().frame().locals["step"] > 100',
        'int(probing.current().frame().locals["n"]) % 10 == 7'), "continue", python(
            lldb, "import probing", "n = int(probing.current().frame().locals['n'])",
            "print('at', n % 10, 'more', n + 1)"), variable[0].replace('"step"]', '"n"]'), variable[1])
    more = re.search(r"^at 7 more (\d+)$", out, re.M)
    assert more and re.search(r"^\(long\) \$\d = %s$" % more.group(1), out, re.M), out


@needs_gdb
def test_what_gdb_cannot_show(target, newest):
    process = target("walked.py")
    session = attached(gdb, process, 'print $probing_local("nothing")')
    assert "there is no variable nothing" in problem(session) or session.code, session
    session = gdb("python import probing; probing.current().threads()")
    assert "there is no process" in session.err, session


def test_outside_there_is_no_debugger(target, newest):
    process = target("walked.py")
    result = run(process.pid, "script", "-c", "probing.break_py('walked.py:1')")
    assert result.code == 1 and "needs gdb or LLDB" in result.err, result
    result = run(process.pid, "script", "-c", "probing.events.stopped.connect(print)")
    assert result.code == 1 and "needs gdb or LLDB" in result.err, result
    result = run(process.pid, "script", "-c", "p.thread().frames[0].locals['self'].native()")
    assert result.code == 1 and "gdb or LLDB" in result.err, result

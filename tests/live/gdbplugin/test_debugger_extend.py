# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands, tables, texts and words for waits of the user's own, in gdb and LLDB."""

import os

import pytest
import tables
from debuggers import both, gdb, needs_gdb, printed, tried
from test_debugger_script import until_it_waits
from test_extend import own  # noqa: F401 (a fixture)

SLOTTED = "Slotted of 3 weights"
WORDS = "in the lock of the trainer"
COMMANDS = (
    ("command",), "probing slow-ones x --seconds 2.5 --names", ("help",), "help probing slow-ones",
    ("wrong",), lambda start: tried(start, "probing slow-ones"),
    ("table",), "probing query -f json SELECT * FROM depths ORDER BY thread",
    ("empty",), "probing query -f json SELECT count(*) AS n FROM empty",
    ("several",), "probing query -f json SELECT 1 AS one; SELECT count(*) AS n FROM depths",
    ("print",), "probing print self.model", ("locals",), "probing locals",
    ("threads",), "probing threads", ("stacks",), "probing backtrace --all",
    ("json",), "probing query -f json SELECT waits_for AS w FROM python.threads WHERE name = 'wanter'",
    ("end",))


def session_of(start, env, arguments):
    commands = [each(start) if callable(each) else each for each in COMMANDS]
    session = start("thread 1" if start is gdb else "thread select 1", *commands,
                    arguments=arguments, env=env)
    assert session.code == 0 and "Traceback" not in session.out + session.err, session
    return session


def check(session):
    assert printed(session, "command").splitlines()[-2:] == ["x MainThread 2.5", "x wanter 2.5"]
    assert "Threads that wait." in session.part("help") and "--seconds" in session.part("help")
    assert "first" in session.part("wrong"), session
    assert [row["thread"] for row in session.rows("table")] == ["MainThread", "wanter"]
    assert session.rows("table")[0] == {"thread": "MainThread", "half": 0.5, "quoted": "it's",
                                        "cell": None}
    assert session.rows("empty") == [{"n": 0}] and '[{"n":2}]' in session.part("several"), session
    assert printed(session, "print").endswith(SLOTTED), session
    assert "model=%s " % SLOTTED in session.part("locals"), session
    assert WORDS in session.part("threads") and WORDS in session.part("stacks"), session
    assert session.rows("json") == [{"w": WORDS[len("in "):]}]


@both
def test_in_a_process(start, target, newest, own):  # noqa: F811
    env, _ = own
    process = target("walked.py")
    until_it_waits(process)
    check(session_of(start, env, ["-p", process.pid]))
    assert process.alive()


@needs_gdb
def test_in_a_core(target, newest, own, tmp_path):  # noqa: F811
    env, _ = own
    process = target("walked.py")
    until_it_waits(process)
    core = tables.core_of(process.pid, tmp_path)
    check(session_of(gdb, env, [newest.exe, core]))


@both
def test_one_that_is_made_in_the_session(start, target, newest):
    """Made by a script, after the process was read: the next command uses it."""
    process = target("walked.py")
    until_it_waits(process)
    python = "python " if start is gdb else "script "
    code = "import probing; _ = probing.printer('__main__.Slotted')(lambda v: 'made of %d' % len(v.weights))"
    again = "import probing; _ = probing.command(lambda p: print('said', len(p.threads())), name='say')"
    session = start("thread 1" if start is gdb else "thread select 1", ("before",),
                    "probing print self.model", python + code, python + again, ("after",),
                    "probing print self.model", ("say",), "probing say", arguments=["-p", process.pid])
    assert "<__main__.Slotted" in session.part("before"), session
    assert printed(session, "after").endswith("made of 3"), session
    assert printed(session, "say").endswith("said 2"), session


@both
def test_a_function_that_fails(start, target, newest, own):  # noqa: F811
    env, file = own
    file.write_text("import probing\n\n@probing.printer('__main__.Slotted')\ndef f(v):\n"
                    "    return v.nothing\n\n@probing.table('broken')\ndef h(p):\n    return 1 // 0\n"
                    "\n@probing.command\ndef fails(p):\n    p.thread('nobody')\n")
    process = target("walked.py")
    until_it_waits(process)
    session = start("thread 1" if start is gdb else "thread select 1", ("print",),
                    "probing print self.model", ("table",), tried(start, "probing query SELECT * FROM broken"),
                    ("command",), tried(start, "probing fails"), ("end",),
                    arguments=["-p", process.pid], env=env)
    assert "<__main__.Slotted" in session.part("print"), session
    assert "the printer of Slotted failed" in session.out + session.err, session
    assert "ZeroDivisionError" in session.part("table") and "mine.py:9" in session.part("table")
    assert "there is no thread 'nobody'" in session.part("command"), session


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@both
def test_files_of_another_user(start, own):  # noqa: F811
    env, file = own
    file.write_text("print('EXTENSION RAN')\n")
    assert "EXTENSION RAN" in start(("begin",), env=env).out
    os.chown(file, 65534, 65534)
    session = start(("begin",), env=env)
    assert "EXTENSION RAN" not in session.out, session
    assert "belongs to the user 65534" in session.out + session.err, session

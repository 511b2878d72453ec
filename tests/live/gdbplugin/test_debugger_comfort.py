# SPDX-License-Identifier: GPL-3.0-or-later
"""Aids for typing in a debugger: Tab, short names and options as in the shell, files of code."""

import re

import debuggers
import pytest
from debuggers import both, gdb, known, sleeper  # noqa: F401 (fixtures)
from debuggers import attached


@pytest.fixture
def code(tmp_path):
    file = tmp_path / "lines.py"
    file.write_text("total = 0\nfor each in range(4):\n    total += each\ntotal\n")
    return file


def offered(session, name):
    """The completions, each as a whole line without "probing "."""
    lines = debuggers.printed(session, name).splitlines()
    return [line[len("probing "):] for line in lines if line.startswith("probing ")]


@debuggers.needs_gdb
def test_tab(sleeper, tmp_path):  # noqa: F811
    (tmp_path / "hang.snapshot").write_text("")
    session = attached(
        gdb, sleeper,
        ("options",), "complete probing bt --l", ("tables",), "complete probing tables python.th",
        ("sql",), "complete probing q SELECT tid FROM python.thr",
        ("column",), "complete probing q SELECT waits_f", ("format",), "complete probing q -f nd",
        ("file",), "complete probing snapshot %s/ha" % tmp_path,
        ("thread",), "complete probing bt --tid %d" % (sleeper.pid // 10),
        ("name",), "complete probing p nu", ("attribute",), "complete probing p sys.argv[0].isal",
        ("inner",), "complete probing e len(sys.byteo", ("hidden",), "complete probing p sys.__std",
        ("place",), "complete probing break-py sleepe", ("function",), "complete probing break-py out",
        ("nothing",), "complete probing p nosuch.", ("end",))
    assert offered(session, "options") == ["bt --locals"]
    assert offered(session, "tables") == ["tables python.threads"]
    assert offered(session, "sql") == ["q SELECT tid FROM python.threads"]
    assert offered(session, "column") == ["q SELECT waits_for"]
    assert offered(session, "format") == ["q -f ndjson"]
    assert offered(session, "file") == ["snapshot %s/hang.snapshot" % tmp_path]
    assert "bt --tid %d" % sleeper.pid in offered(session, "thread")
    assert offered(session, "name") == ["p number"]
    assert offered(session, "attribute") == ["p sys.argv[0].isal" + end
                                             for end in ("num", "pha")]
    assert offered(session, "inner") == ["e len(sys.byteorder"]
    assert offered(session, "hidden") == ["p sys.__std%s__" % name
                                          for name in ("err", "in", "out")]
    assert offered(session, "place") == ["break-py sleeper.py:"]
    assert "break-py outer" in offered(session, "function")
    assert offered(session, "nothing") == [] and not session.code, session


@debuggers.needs_gdb
def test_tab_without_a_process():
    session = gdb(("tables",), "complete probing tables python.th", ("name",),
                  "complete probing p se", ("end",))
    assert offered(session, "tables") == ["tables python.threads"]
    assert offered(session, "name") == [] and not session.code, session


@both
def test_short_names_and_options(start, sleeper):  # noqa: F811
    session = attached(
        start, sleeper, ("bt",), "probing bt -s -l", ("b",), "probing b -l --all-names",
        ("native",), "probing bt -n --source", ("q",), "probing q -w -f csv SELECT 6 * 7 AS n",
        ("p",), "probing p sys.argv[0]", ("ls",), "probing ls", ("end",))
    assert not session.code, session
    short = session.part("bt")
    assert re.search(r"#1   outer .*\n +return sleep\(\)\n", short), session
    assert "modules, functions and classes (--all-names)" in short
    assert "<module 'sys'" not in short and "<module 'sys'" in session.part("b")
    assert "return sleep()" in session.part("native")
    assert session.part("q").split() == ["n", "42"]
    assert session.part("p").strip().endswith("sleeper.py'")
    assert re.search(r"^> +\d+  ", session.part("ls"), re.M)


@both
def test_calls_that_start_a_thread_are_one_line(start, target, known):  # noqa: F811
    """With the numbers of all frames, so that each can be selected."""
    session = attached(start, target("threads.py", interpreter=known), ("folded",),
                       "probing backtrace --all", ("all",), "probing backtrace --all --no-fold",
                       ("end",))
    folded, whole = session.part("folded"), session.part("all")
    lines = re.findall(r"^ +#(\d+) +Thread\.run .*threading\.py:\d+   \(and 2 calls that start the "
                       r"thread\)$", folded, re.M)
    assert lines.count("1") == 3 and "_bootstrap" not in folded, session
    assert len(re.findall(r"^ +#3 +Thread\._bootstrap ", whole, re.M)) == 3, session
    assert "calls that start" not in whole and "calls deep" in folded


@both
def test_several_lines_from_a_file(start, sleeper, code, tmp_path):  # noqa: F811
    (tmp_path / "q.sql").write_text("SELECT 1 AS one;\nSELECT 2\n  AS two;\n")
    session = attached(
        start, sleeper, ("eval",), "probing e -f %s" % code,
        ("query",), "probing q -f csv -i %s" % (tmp_path / "q.sql"),
        ("missing",), debuggers.tried(start, "probing eval -f %s/none.py" % tmp_path), ("end",))
    assert debuggers.answers(session, "eval") == "6", session
    assert session.part("query").split() == ["one", "1", "two", "2"]
    assert "none.py cannot be read: No such file" in session.part("missing")


@both
def test_eval_sees_the_selected_frame(start, sleeper):  # noqa: F811
    session = attached(
        start, sleeper, ("inner",), "probing eval number + 1, shared",
        ("nested",), "probing eval [number + each for each in range(2)]",
        ("outer",), "probing eval --frame 1 argument", "probing up", ("up",), "probing eval shared * 2",
        "probing eval added = 7", ("added",), "probing eval --frame 2 added", ("none",),
        debuggers.tried(start, "probing eval --frame 9 1"), ("end",))
    assert debuggers.answers(session, "inner") == "(43, 'cell')", session
    assert debuggers.answers(session, "nested") == "[42, 43]"
    assert "it's" in session.part("outer")
    assert "'cellcell'" in session.part("up")
    assert debuggers.answers(session, "added") == "7"
    assert "there is no frame 9: they go from 0 to 2" in session.part("none")
    assert sleeper.alive()


@both
def test_other_source(start, target, known):  # noqa: F811
    """Lines from one to another, and a function by the name that the frame has for it."""
    path = debuggers.PROGRAMS / "sleeper.py"
    lines = path.read_text().splitlines()
    outer = next(number for number, line in enumerate(lines, 1) if line.startswith("def outer("))
    process = target("sleeper.py", interpreter=known)
    session = attached(
        start, process, ("span",), "probing list 2,4", ("function",), "probing ls outer",
        ("far",), debuggers.tried(start, "probing list 2,4711"),
        ("none",), debuggers.tried(start, "probing list nosuch"),
        ("wrong",), debuggers.tried(start, "probing list 4,2"), ("end",))
    assert re.findall(r"^[ >] +(\d+)(?:  |$)", session.part("span"), re.M) == ["2", "3", "4"], session
    assert re.search(r"^ +%d  def outer\(" % outer, session.part("function"), re.M), session
    assert debuggers.printed(session, "far").splitlines()[-1].endswith(lines[-1].strip())
    assert "'nosuch' is neither a line nor a function that this frame sees: " in session.part("none")
    assert "'4,2' are no lines" in session.part("wrong")

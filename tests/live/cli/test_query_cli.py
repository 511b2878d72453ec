# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing query` and `probing tables`: formats as other programs read them, options, scripts,
several targets, terminals, Ctrl-C, the prompt."""
import csv
import io
import json
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import time

import pytest

import support
import tables
from sql_prompt import ENDLESS, enter, interrupt_at_any_time, prompt, until_it_computes
from terminal import Terminal, environment
from test_cli import FAILED, NO_PROCESS, OK, TIMEOUT, USAGE, fails, free_pid

COUNT = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < %d) "


def feed(*words, stdin=b"", **options):
    """Runs the command with bytes on stdin; its exit code and its output, as bytes."""
    done = subprocess.run([support.BINARY, *map(str, words)], input=stdin, env=environment(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False,
                          **options)
    return done.returncode, done.stdout, done.stderr.decode()


def ask(probing, *words, form="json"):
    result = probing("query", "-f", form, *words)
    assert result.code == OK and not result.err, result
    return result.out


def rows_of_csv(text):
    return list(csv.reader(io.StringIO(text, newline="")))


# Formats

CELLS = ("SELECT 1 a, -9223372036854775808 least, 9223372036854775807 most, 0.1 + 0.2 r, 1e22 big, "
         "9e999 inf, NULL n, '' e, x'00ff7f' b, char(10, 13, 9, 92, 34, 44) odd, "
         "'é漢🐍' u, cast(x'ff41c3' AS text) bad, cast(x'610062' AS text) nul")


def test_json(probing):
    text = ask(probing, CELLS)
    assert text.isascii() and text.count("\n") == 1
    assert json.loads(text) == [{
        "a": 1, "least": -2 ** 63, "most": 2 ** 63 - 1, "r": 0.1 + 0.2, "big": 1e22, "inf": None,
        "n": None, "e": "", "b": "00ff7f", "odd": '\n\r\t\\",', "u": "é漢🐍",
        "bad": "\\udcffA\\udcc3", "nul": "a\0b"}]
    assert json.loads(ask(probing, CELLS, form="ndjson")) == json.loads(text)[0]
    assert ask(probing, "SELECT 1 WHERE 0") == "[]\n"
    assert ask(probing, "SELECT 1 WHERE 0", form="ndjson") == ""


def test_json_for_jq(probing):
    if not shutil.which("jq"):
        pytest.skip("jq is not installed")
    text = ask(probing, CELLS)
    again = subprocess.run(["jq", "-c", ".[0] | [.a, .e, .odd, .u, .n, .nul]"], input=text,
                           stdout=subprocess.PIPE, check=True, text=True).stdout
    assert json.loads(again) == [1, "", '\n\r\t\\",', "é漢🐍", None, "a\0b"]


def test_names_of_columns(probing):
    assert json.loads(ask(probing, "SELECT 1 x, 2 x, 3 AS \"q\"\"\\\", 4 x")) == \
        [{"x": 1, "x_2": 2, 'q"\\': 3, "x_3": 4}]
    assert rows_of_csv(ask(probing, 'SELECT 1 x, 2 x, 3 AS "a,b"', form="csv"))[0] == \
        ["x", "x", "a,b"]


def test_csv(probing):
    text = ask(probing, CELLS, form="csv")
    header, row = rows_of_csv(text.replace("a\0b", "ab"))
    assert header[:3] == ["a", "least", "most"]
    assert row == ["1", str(-2 ** 63), str(2 ** 63 - 1), repr(0.1 + 0.2), "1e+22", "inf", "", "",
                   "00ff7f", '\n\r\t\\",', "é漢🐍", "\\udcffA\\udcc3", "ab"]
    assert math.isinf(float(row[5]))
    assert "a\0b" in text
    # NULL and the empty text look different; a single NULL is a row too.
    assert ask(probing, "SELECT NULL a, '' b, 1 c", form="csv") == 'a,b,c\n,"",1\n'
    assert rows_of_csv(ask(probing, "SELECT NULL UNION ALL SELECT NULL", form="csv"))[1:] == \
        [[""], [""]]


def test_tsv(probing):
    header, row, end = ask(probing, CELLS, form="tsv").split("\n")
    cells = dict(zip(header.split("\t"), row.split("\t")))
    assert not end and len(cells) == 13
    assert (cells["n"], cells["e"], cells["odd"], cells["nul"]) == \
        ("\\N", "", '\\n\\r\\t\\\\",', "a\\0b")


def test_table(probing):
    result = probing("query", "SELECT 7 n, 'x' t, 1.5 r UNION ALL SELECT 1234, NULL, 1e-9")
    assert result.code == OK and not result.err
    assert result.out == ("   n  t         r\n"
                          "────  ────  ─────\n"
                          "   7  x       1.5\n"
                          "1234  NULL  1e-09\n")


def test_nothing_is_cut_in_files(probing):
    result = probing("query", "SELECT '%s' a, 'b' b" % ("x" * 3000), env={"COLUMNS": "20"})
    assert "x" * 3000 in result.out and "…" not in result.out


@pytest.mark.parametrize("form", ["json", "ndjson", "csv", "tsv", "table"])
def test_odd_names_of_a_target(probing, target, newest, form):
    if newest.version < (3, 8):
        pytest.skip("code objects cannot be replaced")
    process = target("odd_names.py")
    known = json.loads(ask(probing, "-p", process.pid,
                           "SELECT name, value FROM python.locals WHERE name LIKE 'name %'"))
    assert len(known) == 7 and any("x" * 1000 in row["name"] for row in known)
    for sql in ("SELECT func, qualname, file, 1 AS last FROM python.stacks",
                "SELECT name, value, 1 AS last FROM python.locals"):
        expected = json.loads(ask(probing, "-p", process.pid, sql))
        text = ask(probing, "-p", process.pid, sql, form=form)
        if form == "json":
            assert json.loads(text) == expected
        elif form == "ndjson":
            assert [json.loads(line) for line in text.splitlines()] == expected
        elif form == "csv":
            assert rows_of_csv(text)[1:] == [
                ["" if value is None else str(value) for value in row.values()] for row in expected]
        else:
            assert text.count("\n") == len(expected) + (2 if form == "table" else 1)
            assert all(line.endswith("1") for line in text.splitlines()[2:])
        if form == "table":
            assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e]", text)
    frames = json.loads(ask(probing, "-p", process.pid, "SELECT func FROM python.stacks"))
    names = {frame["func"] for frame in frames}
    assert {"🐍漢", 'a,"b"\r\n\tc\\d', "", r"nul\x00nul"} <= names and max(map(len, names)) > 1000
    assert any(row["name"].endswith(r"nul\x00nul") for row in known)


def test_unknown_format(probing):
    fails(probing("query", "-f", "xml", "SELECT 1"), USAGE, "'xml'",
          "table, json, ndjson, csv, tsv")


# Where SQL comes from

def test_scripts(probing, tmp_path):
    script = b"-- three\nSELECT 1 a;\nSELECT 2 b WHERE 0; /* ; */ SELECT 'x;y' c\n"
    file = tmp_path / "script.sql"
    file.write_bytes(script)
    expected = {
        "json": '[{"a":1}]\n[]\n[{"c":"x;y"}]\n',
        "ndjson": '{"a":1}\n{"c":"x;y"}\n',
        "csv": "a\n1\n\nb\n\nc\nx;y\n",
        "tsv": "a\n1\n\nb\n\nc\nx;y\n",
        "table": "a\n─\n1\n\nb\n─\n\nc\n───\nx;y\n",
    }
    for form, text in expected.items():
        for words, stdin in ((["-i", file], b""), (["-"], script), ([], script),
                             (["--", script.decode()], b"")):
            code, out, err = feed("q", "-f", form, *words, stdin=stdin)
            assert (code, out.decode(), err) == (OK, text, ""), (form, words)


def test_errors_name_the_statement(probing, tmp_path):
    code, out, err = feed("query", "-f", "csv", stdin=b"SELECT 1 a;\n\n-- wrong:\nSELECT nope;\n")
    assert code == USAGE and out == b"a\n1\n" and "line 4" in err and "nope" in err
    result = probing("query", "-f", "csv", "SELECT 1 a; SELECT nope")
    assert result.code == USAGE and "SELECT 1 a; SELECT nope\n                       ^" in result.err
    fails(probing("query", "SELECT nope"), USAGE, "probing: no such column: nope")


@pytest.mark.parametrize("words, stdin, code, says", [
    ([], b"", USAGE, "no query"),
    (["-"], b" -- nothing\n ; ", USAGE, "no query"),
    ([""], b"", USAGE, "no query"),
    (["-"], b"SELECT 1\0;", USAGE, "NUL"),
    (["-i", "/nonexistent.sql"], b"", FAILED, "/nonexistent.sql"),
    (["-i", "/dev/null", "SELECT 1"], b"", USAGE, "exclude each other"),
    (["--freeze", "--nonblocking", "SELECT 1"], b"", USAGE, "exclude each other"),
    (["--timeout", "0", "SELECT 1"], b"", USAGE, "duration"),
    (["--timeout", "5 minutes", "SELECT 1"], b"", USAGE, "duration"),
    (["--timeout", "0x5", "SELECT 1"], b"", USAGE, "duration"),
    (["--watch", "nan", "SELECT 1"], b"", USAGE, "duration"),
    (["--limit", "0", "SELECT 1"], b"", USAGE, "number"),
    (["SELECT * FROM python.threads"], b"", USAGE, "needs a target"),
    (["SELECT 1", "SELECT 2"], b"", USAGE, "unexpected word"),
])
def test_usage(words, stdin, code, says):
    found, out, err = feed("query", *words, stdin=stdin)
    assert (found, out) == (code, b"") and says in err, err


# Limits

def test_limit(probing):
    result = probing("query", "-f", "csv", "--limit", 3, COUNT % 10 + "SELECT i FROM c")
    assert result.code == OK and result.out == "i\n1\n2\n3\n"
    assert result.err == "only the first 3 rows; there are more (--limit)\n"
    enough = probing("query", "-f", "csv", "--limit", 10, COUNT % 10 + "SELECT i FROM c")
    assert enough.out.endswith("\n10\n") and not enough.err


@pytest.mark.parametrize("time_limit", ["0.2", ".2s", "200ms"])
def test_timeout(probing, time_limit):
    start = time.monotonic()
    fails(probing("query", "--timeout", time_limit, ENDLESS), TIMEOUT, "--timeout")
    assert time.monotonic() - start < 10
    assert probing("query", "--timeout", "1h", "SELECT 1").code == OK


def test_rows_before_an_error_are_well_formed(probing):
    endless = ENDLESS.replace("count(*)", "i")
    code, out, _ = feed("query", "-f", "json", "--timeout", "1s", endless)
    assert code == TIMEOUT
    rows = json.loads(out)
    assert [row["i"] for row in rows] == list(range(1, len(rows) + 1)) and len(rows) > 100


# Targets

def test_one_target(probing, target):
    process = target("sleeper.py")
    support.wait_for_sleep(process.pid, "pipe_read")
    rows = json.loads(ask(probing, "-p", process.pid, "SELECT tid, state FROM python.threads"))
    assert rows == [{"tid": process.pid, "state": "idle"}]
    assert list(json.loads(ask(probing, "-p", process.pid, "SELECT * FROM python.threads"))[0])[0] \
        == "tid"
    again = probing(process.pid, "q", "-f", "json", "SELECT tid, state FROM python.threads")
    assert json.loads(again.out) == rows
    for mode in ("--nonblocking", "--freeze"):
        assert json.loads(ask(probing, "-p", process.pid, mode,
                              "SELECT tid, state FROM python.threads")) == rows


def test_several_targets(probing, target):
    pids = sorted(target("sleeper.py").pid for _ in range(2))
    words = [word for pid in pids for word in ("-t", pid)]
    rows = json.loads(ask(probing, *words, "SELECT * FROM python.threads ORDER BY _pid"))
    assert [row["_pid"] for row in rows] == pids
    assert [row["_target"] for row in rows] == [str(pid) for pid in pids]


def test_more_targets_than_the_soft_limit_of_files(target):
    """Some files of each target stay open; the soft limit of shells is raised to the hard one."""
    pids = sorted(target("sleeper.py").pid for _ in range(8))
    done = subprocess.run(["sh", "-c", "ulimit -Sn 20; exec \"$@\"", "sh", support.BINARY, "query", "-f", "json",
                           *("--target=%d" % pid for pid in pids), "SELECT DISTINCT _pid FROM python.threads ORDER BY 1"],
                          env=environment(), capture_output=True, universal_newlines=True, timeout=60, check=False)
    assert done.returncode == OK and json.loads(done.stdout) == [{"_pid": pid} for pid in pids], done


def test_one_of_several_targets_is_lost(probing, target):
    process, gone = target("sleeper.py"), free_pid()
    result = probing("query", "-t", process.pid, "-t", gone, "-f", "json",
                     "SELECT tid FROM python.threads")
    assert result.code == NO_PROCESS, result
    assert json.loads(result.out) == [{"tid": process.pid}]
    assert "warning: cannot open process %d" % gone in result.err
    assert "not all targets could be read" in result.err
    fails(probing("query", "-t", gone, "SELECT 1"), NO_PROCESS, "No such process")
    both = probing("query", "-t", gone, "-t", free_pid(), "SELECT 1")
    assert both.code == NO_PROCESS and not both.out and "no target can be read" in both.err


def test_all_that_match(probing, target):
    mark = "all-%d" % os.getpid()
    pids = sorted(target("sleeper.py", mark).pid for _ in range(3))
    sql = "SELECT _pid FROM python.threads ORDER BY _pid"
    for form in (mark, "/al{2}-%d$/" % os.getpid()):
        rows = json.loads(ask(probing, "--all", "-t", form, sql))
        assert [row["_pid"] for row in rows] == pids
    twice = json.loads(ask(probing, "--all", "-t", mark, "-t", "/%s/" % mark, sql))
    assert [row["_pid"] for row in twice] == pids
    everything = probing("query", "--all", "-f", "json", sql)
    assert set(pids) <= {row["_pid"] for row in json.loads(everything.out)}
    fails(probing("query", "--all", "-t", "no such process here", sql), NO_PROCESS)
    fails(probing("query", "--all", "-t", pids[0], sql), USAGE, "--all")


# Output that goes nowhere

def test_full_disk(probing):
    with open("/dev/full", "w", encoding="ascii") as full:
        for form in ("json", "csv", "table"):
            result = probing("query", "-f", form, "SELECT 1", stdout=full)
            assert result.code == FAILED and "No space left on device" in result.err, result
            result = probing("query", "-f", form, ENDLESS.replace("count(*)", "i"), stdout=full)
            assert result.code == FAILED and "No space left on device" in result.err, result


def test_reader_that_ends():
    command = "%s query -f csv '%s' | head -n 2; echo ${PIPESTATUS[0]}" % (
        shlex.quote(support.BINARY), ENDLESS.replace("count(*)", "i"))
    done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60, check=True)
    assert done.stdout == b"i\n1\n141\n" and not done.stderr


# Terminals

def shown(*words, size=(24, 80), **variables):
    with Terminal("query", *words, size=size, **variables) as terminal:
        text, code = terminal.end()
    assert code == OK, text
    return text


@pytest.mark.parametrize("width", [40, 80, 200])
def test_width(width):
    sql = "SELECT 123456 n, '%s' a, 'short' b, '%s' c" % ("é" * 100, "y" * 90)
    text = shown(sql, size=(24, width))
    head, rule, row, rest = text.split("\n", 3)
    assert len(head) <= width and len(rule) <= width and len(row) == width
    assert "123456" in row and row.count("…") in (1, 2) and "short" in row
    assert rest == "1 row; values that end in … are cut (--wide shows all)\n"
    wide = shown("--wide", sql, size=(24, width))
    assert "é" * 100 in wide and "y" * 90 in wide and wide.endswith("\n1 row\n")


def test_width_of_wide_characters():
    row = shown("SELECT '%s', 1" % ("漢" * 50), size=(24, 41)).split("\n")[2]
    assert row == "漢" * 18 + "…   1"


def test_columns_that_do_not_fit():
    text = shown("SELECT " + ", ".join("123456789 AS c%d" % i for i in range(12)), size=(24, 60))
    lines = text.split("\n")
    assert all(len(line) <= 60 for line in lines[:3])
    assert lines[2].split() == ["123456789"] * 5 + ["…"]
    assert lines[3].startswith("1 row; 7 columns do not fit: c5, c6, ") and "--wide" in lines[3]


def test_columns_variable():
    sql = "SELECT '%s' a" % ("x" * 100)
    assert len(shown(sql, size=(0, 0), COLUMNS="50").split("\n")[2]) == 50
    assert len(shown(sql, size=(0, 0)).split("\n")[2]) == 80


def test_colour():
    assert "\x1b[2mNULL\x1b[0m" in shown("SELECT NULL")
    assert "\x1b" not in shown("SELECT NULL", NO_COLOR="1")
    assert "\x1b" not in shown("SELECT NULL", TERM="dumb")
    assert "\x1b" not in shown("-f", "csv", "SELECT NULL")


@pytest.mark.parametrize("form", ["table", "json", "ndjson", "csv", "tsv"])
def test_terminal_is_not_moved(form):
    text = shown("-f", form, "SELECT char(27) || '[2J' || char(7, 8230, 8238, 155) AS a")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)


def test_count_of_rows_only_on_terminals(probing):
    assert shown("SELECT 1 UNION SELECT 2").endswith("\n2 rows\n")
    assert not probing("query", "SELECT 1").err
    assert "row" not in shown("-f", "json", "SELECT 1")


# Ctrl-C

def test_interrupt():
    with Terminal("query", ENDLESS) as terminal:
        until_it_computes(terminal.process.pid)
        terminal.send("\x03")
        assert terminal.process.wait(20) == -signal.SIGINT


def test_interrupted_rows_are_shown():
    process = subprocess.Popen(
        [support.BINARY, "query", "-f", "json", COUNT % 3 + "SELECT i FROM c; " + ENDLESS],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    until_it_computes(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT
    assert out == b'[{"i":1},{"i":2},{"i":3}]\n' and not err


# --watch

def test_watch_on_a_terminal(target):
    process = target("sleeper.py")
    with Terminal("-p", process.pid, "query", "--watch", "50ms",
                  "SELECT tid, idle_seconds FROM python.threads", size=(24, 60)) as terminal:
        terminal.until("\x1b[H\x1b[2J\x1b[H")
        seen = set()
        while len(seen) < 3:  # it may be on its way to sleep at first, with no idle time
            header, _, _, _, row = terminal.until("\x1b[J\x1b[H").split("\n")[:5]
            assert re.fullmatch(r"\d\d:\d\d:\d\d  %d  SELECT tid, idle_seconds FROM .*\x1b\[K"
                                % process.pid, header), header
            seen.add(re.match(r" *%d +(\S+?)\x1b" % process.pid, row)[1])
        terminal.send("\x03")
        text, code = terminal.end()
        assert code == OK and "probing:" not in text


def test_watch_keeps_to_the_screen():
    with Terminal("query", "--watch", "50ms", COUNT % 100 + "SELECT i FROM c",
                  size=(10, 60)) as terminal:
        terminal.until("\x1b[H\x1b[2J\x1b[H")
        lines = terminal.until("\x1b[J").split("\n")
        assert len(lines) == 10 and "more lines" in lines[-2]


def test_watch_in_a_pipe_until_the_target_ends(target):
    process = target("sleeper.py")
    with subprocess.Popen(
            [support.BINARY, "-p", str(process.pid), "query", "-f", "csv", "--watch", "20ms",
             "SELECT tid FROM python.threads"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment()) as watch:
        printed = b""
        while printed.count(b"tid\n") < 3:
            printed += watch.stdout.read1()
        process.__exit__()
        out, err = watch.communicate(timeout=20)
    assert watch.returncode == NO_PROCESS and b"No such process" in err, err
    assert (printed + out).startswith(b"tid\n%d\n\ntid\n%d\n\n" % (process.pid, process.pid))


def test_watch_in_a_pipe_ends_by_interrupt():
    with subprocess.Popen([support.BINARY, "query", "-f", "json", "--watch", "20ms", "SELECT 1 a"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=environment()) as watch:
        assert watch.stdout.readline() == watch.stdout.readline() == b'[{"a":1}]\n'
        watch.send_signal(signal.SIGINT)
        _, err = watch.communicate(timeout=20)
    assert watch.returncode == OK and not err


# The prompt

@pytest.mark.parametrize("locale", ["", "C.UTF-8"])
def test_prompt(tmp_path, locale):
    with prompt(tmp_path, LC_ALL=locale) as terminal:
        assert "\né漢\n" in enter(terminal, "SELECT 'é漢' AS x;")
        terminal.send("SELECT 'a;\r")
        terminal.until("...> ")
        terminal.send("b' AS y -- ;\r")
        terminal.until("...> ")
        assert "\na;\\nb\n" in enter(terminal, ";")
        assert "there is no '.nope'" in enter(terminal, ".nope")
        assert "no such column: nope" in enter(terminal, "SELECT nope;")
        enter(terminal, ".format json")
        assert "there is no format 'nope'" in enter(terminal, ".format nope")
        assert '[{"n":5}]' in enter(terminal, "SELECT 5 n;")
        assert "idle_seconds" in enter(terminal, ".schema python.threads")
        assert "python.stacks" in enter(terminal, ".tables")
        assert ".quit" in enter(terminal, "help")
        terminal.send("\x04")
        assert terminal.end()[1] == OK


def test_prompt_of_a_target(tmp_path, target):
    process = target("sleeper.py")
    with prompt(tmp_path, "-p", process.pid) as terminal:
        for _ in range(2):
            assert "\n%d\n" % process.pid in enter(terminal, "SELECT tid FROM python.threads;")
        terminal.send(".quit\r")
        assert terminal.end()[1] == OK


@pytest.mark.parametrize("typed, completed", [
    ("sel\t", "select "), ("SEL\t", "SELECT "), ("SELECT * FROM python.stac\t", "python.stacks "),
    ("SELECT idle_se\t", "idle_seconds "), ("SELECT t.idle_se\t", "t.idle_seconds "),
    (".sch\t", ".schema "), (".schema python.thr\t", "python.threads "),
    (".format cs\t", "csv "),
])
def test_prompt_completes(tmp_path, typed, completed):
    with prompt(tmp_path, TERM="dumb") as terminal:
        terminal.send(typed)
        terminal.until(completed)
        terminal.send("\x15\x04")
        assert terminal.end()[1] == OK


def test_prompt_interrupts(tmp_path):
    with prompt(tmp_path) as terminal:
        terminal.send("SELECT 1,\r")
        terminal.until("...> ")
        terminal.send("garbage\x03")
        terminal.until("probing> ")
        terminal.send(ENDLESS + ";\r")
        until_it_computes(terminal.process.pid)
        terminal.send("\x03")
        assert "the query was cancelled" in terminal.until("probing> ")
        # The cancellation is over.
        assert "no such column" in enter(terminal, "SELECT nope;")
        assert "\n78\n" in enter(terminal, "SELECT 78;")
        terminal.send("\x04")
        assert terminal.end()[1] == OK


def test_prompt_interrupts_at_any_time(tmp_path):
    with prompt(tmp_path) as terminal:
        interrupt_at_any_time(terminal)


def test_prompt_remembers(tmp_path):
    with prompt(tmp_path) as terminal:
        terminal.send("SELECT 41\r")
        terminal.until("...> ")
        enter(terminal, "+ 1;")
        enter(terminal, ".tables")
        terminal.send("\x04")
        terminal.end()
    file = tmp_path / ".local" / "state" / "probing" / "history"
    assert file.read_text() == "SELECT 41 + 1;\n.tables\n"
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700
    with prompt(tmp_path) as terminal:
        terminal.send("\x1b[A\x1b[A\r")
        terminal.until("SELECT 41 + 1;")
        assert " 42\n" in terminal.until("probing> ")
        terminal.send("exit\r")
        assert terminal.end()[1] == OK


def test_prompt_forgets_the_oldest(tmp_path):
    file = tmp_path / ".local" / "state" / "probing" / "history"
    file.parent.mkdir(parents=True, mode=0o700)
    file.write_text("".join("SELECT %d;\n" % n for n in range(3000)))
    with prompt(tmp_path) as terminal:
        enter(terminal, "SELECT 'last';")
        terminal.send("\x04")
        terminal.end()
    lines = file.read_text().splitlines()
    assert lines == ["SELECT %d;" % n for n in range(1000, 3000)] + ["SELECT 'last';"]
    assert os.listdir(file.parent) == ["history"] and file.stat().st_mode & 0o777 == 0o600


def test_no_prompt_without_a_terminal(probing):
    fails(probing("query"), USAGE, "there is no query")


# Dialects of other databases

@pytest.mark.parametrize("sql, hint", [
    ("SELECT approx_percentile(tid, 0.5) FROM python.threads", "write approx_quantile(column, 0.9)"),
    ("SELECT QUANTILE(tid, 0.5) FROM python.threads", "write percentile_cont(column, 0.9)"),
    ("SELECT count(*) FROM python.threads GROUP BY ROLLUP(name)", "a second SELECT"),
    ("SELECT DISTINCT ON (name) name FROM python.threads", "write GROUP BY the column"),
    ("SELECT TOP 5 * FROM python.threads", "write LIMIT 5 at the end"),
    ("SELECT * FROM global.python.stacks", "write it after 'probing cluster query'"),
    ("\\d", "write SHOW TABLES"),
    ("\\d python.threads", "DESCRIBE TABLE"),
])
def test_words_of_other_databases_have_a_hint(probing, target, sql, hint):
    result = probing("-t", target("sleeper.py").pid, "query", sql)
    assert result.code == USAGE and hint in result.err.splitlines()[-1], result


def test_string_agg_works_or_has_a_hint(probing, target):
    """SQLite has it from 3.44 on."""
    pid = target("sleeper.py").pid
    version = probing("query", "-f", "csv", "SELECT sqlite_version()").out.split()[-1]
    result = probing("-t", pid, "query", "-f", "csv",
                     "SELECT string_agg(tid, ',') AS tids FROM python.threads")
    if [int(part) for part in version.split(".")] >= [3, 44]:
        assert (result.code, result.out.split(), result.err) == (OK, ["tids", str(pid)], ""), result
    else:
        assert result.code == USAGE, result
        assert "write group_concat(column, ', ')" in result.err.splitlines()[-1], result


def test_tables_of_json(probing):
    for table in "json_each", "json_tree":
        result = probing("query", "-f", "csv", "SELECT max(value) AS v FROM %s('[1, 2]') WHERE atom" % table)
        assert (result.code, result.out.split(), result.err) == (OK, ["v", "2"], ""), result


def test_hints_are_not_for_other_errors(probing, target):
    pid = target("sleeper.py").pid
    for sql in ("SELECT percentile_of(1)", "SELECT stop FROM FROM generate_series(1, 2)"):
        result = probing("-t", pid, "query", sql)
        assert result.code == USAGE and "write" not in result.err, result


def test_a_table_in_quotes(probing, target):
    pid = target("sleeper.py").pid
    result = probing("-t", pid, "query", "-f", "csv", 'SELECT "python.threads".tid FROM "python.threads"')
    assert (result.code, result.out.split(), result.err) == (OK, ["tid", str(pid)], ""), result
    result = probing("-t", pid, "query", 'SELECT * FROM "python.thread"')
    assert result.code == USAGE and "did you mean python.threads" in result.err, result


@pytest.mark.parametrize("sql", ["PRAGMA table_info('python.threads')",
                                 "SELECT count(*) FROM sqlite_master",
                                 "SELECT count(*) FROM python.threads, sqlite_schema"])
def test_the_catalog_of_sqlite_says_that_it_is_not_all(probing, target, sql):
    result = probing("-t", target("sleeper.py").pid, "query", sql)
    assert result.code == OK and "DESCRIBE TABLE and information_schema have all" in result.err, result


@pytest.mark.parametrize("table", ["python.backtrace", "python.stacks", "native.backtrace"])
def test_a_thread_that_is_not_there(probing, target, table):
    """As an argument it is an error, as with backtrace --tid; a condition finds no row."""
    pid = target("sleeper.py").pid
    asked = probing("-t", pid, "query", "SELECT func FROM %s(123456789)" % table)
    told = probing("-t", pid, "backtrace", "--tid", "123456789")
    assert asked.code == told.code != OK and told.err in asked.err, (asked, told)
    for sql in ("SELECT func FROM %s WHERE tid = 123456789",
                "SELECT s.func FROM generate_series(123456789, 123456790) g JOIN %s(g.value) s"):
        result = probing("-t", pid, "query", "-f", "csv", sql % table)
        assert (result.code, result.out.split(), result.err) == (OK, ["func"], ""), result
    there = probing("-t", pid, "query", "-f", "csv", "SELECT depth FROM %s(%d) LIMIT 1" % (table, pid))
    assert there.code == OK and there.out.split() == ["depth", "0"], there


def test_snapshots_say_that_they_lack_objects(probing, target, tmp_path):
    file = tmp_path / "file"
    assert probing("-t", target("sleeper.py").pid, "snapshot", "-o", file).code == OK
    for sql in ("SELECT type, objects FROM python.types", "SELECT sum(objects) FROM python.gc"):
        result = probing("-t", file, "query", sql)
        assert result.code == OK and "the snapshot does not contain all objects" in result.err, result
    result = probing("-t", file, "query", "SELECT threshold FROM python.gc")
    assert result.code == OK and result.err == "", result


def test_data_files_of_a_core_have_no_symbols(probing, target, tmp_path):
    process = target("mapped_data.py", tmp_path / "data")
    core = tables.core_of(process.pid, tmp_path)
    result = probing("-t", core, "query", "SELECT count(*) > 1000 AS many FROM native.symbols")
    assert result.code == OK and result.out.split()[-1] == "1" and result.err == "", result


# tables

def test_tables(probing):
    result = probing("tables")
    assert result.code == OK and not result.err
    names = [line.split()[0] for line in result.out.splitlines()]
    assert {"python.stacks", "python.threads"} <= set(names)
    listed = json.loads(probing("tables", "--json").out)
    assert [table["name"] if table["schema"] == "main" else
            "%s.%s" % (table["schema"], table["name"]) for table in listed] == names
    for table in listed:
        assert table["doc"] and all(column["doc"] for column in table["columns"])


def test_columns_of_tables(probing):
    one = probing("tables", "python.threads")
    assert one.code == OK
    assert re.search(r"^    idle_seconds +real +s +\w", one.out, re.M), one
    assert one.out in probing("tbl", "THREADS").out
    python = probing("tables", "python").out
    assert one.out in python and "\npython.stacks  " in python
    assert one.out in probing("tables", "*thr*").out
    assert [(table["schema"], table["name"])
            for table in json.loads(probing("tables", "stacks", "--json").out)] == \
        [("python", "stacks"), ("profile", "stacks")]


def test_unknown_table(probing):
    fails(probing("tables", "python.stack"), USAGE, "did you mean python.stacks or profile.stacks?")
    fails(probing("tables", "nonsense_name"), USAGE, "'probing tables' lists them")


def test_ctrl_c_at_a_question_of_the_prompt(tmp_path):
    """Whether all possibilities are to be shown: it ends the question, and the line."""
    with prompt(tmp_path) as terminal:
        for _ in range(2):
            terminal.send("SELECT \t\t")
            terminal.until("possibilities? (y or n)")
            terminal.send("\x03")
            asked = terminal.until("probing> ", 60)
            assert asked.count("\a") < 5, asked
        assert "42" in enter(terminal, "SELECT 6 * 7 AS answer;")

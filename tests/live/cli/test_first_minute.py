# SPDX-License-Identifier: GPL-3.0-or-later
"""The first minute on a terminal: `probing` alone, and what it says to type next; all within the terminal's width."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import unicodedata

import pytest
import support
from deadlock import deadlocked  # noqa: F401
from environment import OK, USAGE
from terminal import Terminal


def on_terminal(*words, columns, stderr=None):
    with Terminal(*words, size=(24, columns), stderr=stderr) as terminal:
        text, status = terminal.end()
    assert status == OK, text
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def cells(line):
    """Columns of the terminal."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


@pytest.mark.parametrize("columns", (60, 100))
def test_alone(deadlocked, probing, columns):
    """The three commands are about the process that is shown first, which need not be ours."""
    lines = on_terminal(columns=columns).splitlines()
    assert all(len(line) <= columns for line in lines), lines
    at, = [at for at, line in enumerate(lines) if re.match(r" *%d +- " % deadlocked.pid, line)]
    assert lines[at].endswith("…") and lines[at + 1].split() == "! deadlock of 2 threads".split(), lines
    first = lines[lines.index(next(line for line in lines if line.startswith("    PID "))) + 1].split()[0]
    assert [line.split("  ")[0].rstrip() for line in lines[-3:]] == [
        "probing %s dump" % first, "probing %s why" % first, "probing help"], lines


FIRST = "/a-folder-with-a-long-name/another-folder/versions/3.12.1/bin"


@pytest.mark.parametrize("columns", (60, 80))
def test_programs_are_told_apart(newest, tmp_path, probing, columns):
    """Not the interpreter's folders, nor the script's, but its name."""
    python = pathlib.Path(str(tmp_path) + FIRST) / "python3"
    python.parent.mkdir(parents=True)
    python.symlink_to(newest.exe)
    deep = python.parent / "a-module-of-it.py"
    for script in (tmp_path / "job.py", deep):
        script.write_text("import time\nprint('ready', flush=True)\ntime.sleep(1000)\n")
    with support.Program([str(python), "job.py", "--lr=1"], cwd=str(tmp_path)) as one, \
            support.Program([str(python), "-u", str(deep)]) as two, \
            support.Program([str(python), "-X", "dev", str(deep)]) as three:
        assert one.line() == two.line() == three.line() == "ready"
        for words in (("list",), ("overview", one.pid, two.pid, three.pid)):
            text = on_terminal(*words, columns=columns)
            assert all(cells(line) <= columns for line in text.splitlines()), text
            for pid, says in ((one.pid, "python3 job[.]py"), (two.pid, r"python3 -u …\S*/a-"), (three.pid, r"python3 -X dev …\S*/?" + "a-" * (columns > 60))):
                assert re.search(r"(?m)^ *%d .*(\r*\n +)?%s" % (pid, says), text), text
            whole = probing(*words)
            assert "%s job.py --lr=1\n" % python in whole.out and "%s -u %s\n" % (python, deep) in whole.out, whole


ALONE = ("unshare", "--pid", "--fork", "--mount-proc", "sh", "-c")


@pytest.mark.skipif(bool(os.geteuid()), reason="needs root")
def test_without_any_process():
    with Terminal(*ALONE[1:], "%s; exit 0" % shlex.quote(support.BINARY), program=ALONE[0]) as terminal:
        text, _ = terminal.end()
    assert "there are no Python processes here" in text and "probing run -- python3" in text, text
    done = subprocess.run([*ALONE, "%s overview; exit 0" % shlex.quote(support.BINARY)], stderr=subprocess.PIPE, check=True, text=True)
    assert done.stderr == "probing: there are no Python processes here\n", done


@pytest.mark.skipif(bool(os.geteuid()), reason="needs root")
def test_what_is_not_judged(tmp_path):
    """Not for want of a permission."""
    shutil.copy(shutil.which("sleep"), str(tmp_path / "python2.7"))
    done = subprocess.run([*ALONE, "%s 1000 & until grep -q python2 /proc/2/comm; do :; done; %s why; %s overview; exit 0" % (
        tmp_path / "python2.7", *[shlex.quote(support.BINARY)] * 2)], stdout=subprocess.PIPE, check=True, text=True)
    assert re.match(r"not judged: 1 process that cannot be read: 2\n  2: this is Python 2 \(python2[.]7\)\n", done.stdout), done
    assert done.stdout.count("not judged: 1 process that cannot be read") == 2 and "may not" not in done.stdout, done


def test_overview_of_one(deadlocked, probing):
    """What it says to type works."""
    text = on_terminal("overview", deadlocked.pid, columns=70)
    *lines, dump, why, all_help = text.splitlines()
    assert all(len(line) <= 70 for line in lines), text
    found = " ".join(" ".join(lines).split())
    assert re.match(r"%d deadlock: threads \d+ and \d+ wait for each other: .* \(high\) " % deadlocked.pid, found), text
    for line, says in ((dump, "take"), (why, "deadlock"), (all_help, "Usage:")):
        words = line.partition("  ")[0].split()
        done = probing(*words[1:])
        assert words[0] == "probing" and says in done.out, (line, done)


def test_nothing_is_cut_in_a_pipe(deadlocked, probing):
    done = probing("overview", deadlocked.pid)
    assert done.code == OK and "…" not in done.out.replace("…+", "") and "probing " not in done.out, done


# Commands that print tables and reports for people.
REPORTS = (
    "list", "list --tree", "list --job", "list --dead", "overview", "overview {pid}", "tables",
    "tables python.threads", "{pid} query", "{pid} config", "config --limits", "{pid} memory",
    "{pid} memory --growth 0.1", "{pid} why", "why --rules", "doctor", "doctor {pid}", "crashes", "skill list",
    "{pid} skill run hang", "{pid} check", "{pid} agent", "{pid} perf --duration 0.3",
    "{pid} perf --duration 0.3 --lines", "cluster nodes", "cluster hang {pid}",
    "help", "help query", "memory --help",
)
# Those that say the same each time.
FIXED = {"tables", "tables python.threads", "{pid} config", "config --limits", "why --rules", "skill list", "help",
         "help query", "memory --help"}
# These may find nothing, and say that on stderr.
MAY_BE_EMPTY = {"list --job", "list --dead", "crashes", "cluster nodes"}
SQL = "SELECT * FROM python.threads"


@pytest.fixture(scope="module")
def reported(deadlocked, probing):
    assert probing(deadlocked.pid, "inject").code == OK
    return deadlocked.pid


@pytest.mark.parametrize("columns", (30, 40, 80, 100))
@pytest.mark.parametrize("report", REPORTS)
def test_reports_keep_to_the_width(reported, probing, report, columns):
    words = [word.format(pid=reported) for word in report.split()]
    words += [SQL] if words[-1] == "query" and words[0] != "help" else []
    with Terminal(*words, size=(24, columns), stderr=subprocess.DEVNULL) as terminal:
        text, status = terminal.end()
    assert status != USAGE and (text or report in MAY_BE_EMPTY), (status, text)
    lines = re.sub(r"\x1b\[[0-9;]*[a-zA-Z]", "", text).splitlines()
    assert all(cells(line) <= columns for line in lines), lines
    # Nothing is left out of what is wrapped.
    if report in FIXED:
        assert "".join("".join(lines).split()) == "".join(probing(*words).out.split()), text

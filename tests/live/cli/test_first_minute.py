# SPDX-License-Identifier: GPL-3.0-or-later
"""The first minute on a terminal: `probing` alone, and what it says to type next; all within the terminal's width."""
import re
import subprocess
import unicodedata

import pytest
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

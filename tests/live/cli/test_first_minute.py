# SPDX-License-Identifier: GPL-3.0-or-later
"""The first minute on a terminal: `probing` alone, and what it says to type next; all within the terminal's width."""
import re
import subprocess

import pytest
from deadlock import deadlocked  # noqa: F401
from environment import OK
from terminal import Terminal


def on_terminal(*words, columns, stderr=None):
    with Terminal(*words, size=(24, columns), stderr=stderr) as terminal:
        text, status = terminal.end()
    assert status == OK, text
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


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


@pytest.mark.parametrize("words", (["tables"], ["tables", "python.threads"], ["tables", "python"],
                                   ["{pid}", "query", "SELECT * FROM python.threads"]))
def test_tables_keep_to_the_width(deadlocked, probing, words):
    words = [word.format(pid=deadlocked.pid) for word in words]
    text = on_terminal(*words, columns=72, stderr=subprocess.DEVNULL)
    assert max(map(len, text.splitlines())) <= 72, text
    # Nothing of a description is left out.
    if words[0] == "tables":
        assert text.split() == probing(*words).out.split()

# SPDX-License-Identifier: GPL-3.0-or-later
"""The prompt of SQL, on a terminal of its own."""
import os

from agent import wait_until
from support import count
from terminal import Terminal

ENDLESS = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c) SELECT count(*) FROM c"


def prompt(tmp_path, *words, **variables):
    terminal = Terminal("query", *words, HOME=str(tmp_path), XDG_STATE_HOME="",
                        INPUTRC="/dev/null", **variables)
    terminal.until("probing> ")
    return terminal


def enter(terminal, line):
    """The output of a line."""
    terminal.send(line + "\r")
    terminal.until(line[-10:])
    return terminal.until("probing> ")


def interrupt_at_any_time(terminal):
    """However a Ctrl-C coincides with the beginning or the end of a query, the next one is not cancelled."""
    for number in range(count(30, 1000)):
        terminal.send(ENDLESS + ";\r" if number % 2 else "SELECT 1;\r")
        terminal.send("\x03")
        terminal.until("probing> ")
        terminal.send("\r")  # a Ctrl-C that came after the end gives another prompt
        terminal.send("SELECT 'next' || %d;\r" % number)
        terminal.until("next%d\r\n" % number)
        terminal.until("probing> ")


def until_it_computes(pid):
    """Waits until the process used 0.1 s more of processor time."""
    used = seconds_used(pid) + 0.1
    wait_until(lambda: seconds_used(pid) >= used, 30)


def seconds_used(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        return int(file.read().rpartition(")")[2].split()[11]) / os.sysconf("SC_CLK_TCK")

# SPDX-License-Identifier: GPL-3.0-or-later
"""The prompt of SQL for a process that is served: lines, history and completion are here, the session is
there, and Ctrl-C ends a query there."""
import json
import os
import signal
import subprocess

import pytest

import remote
import sql_prompt
import support
from agent import wait_until
from environment import FAILED, NO_PROCESS, OK, PERMISSION, USAGE
from remote import process, service  # noqa: F401 (fixtures)
from remote import Service, run
from sql_prompt import ENDLESS, enter, interrupt_at_any_time, until_it_computes
from terminal import Terminal

LOOK = "SELECT tid, name, main FROM python.threads;"


@pytest.fixture
def prompt(service, tmp_path):
    with sql_prompt.prompt(tmp_path, "-t", service.address, TERM="dumb",
                           PROBING_AUTH_TOKEN=remote.TOKEN) as terminal:
        yield terminal


def relay_of(service):
    """The process at the other end that runs the typed lines."""
    child, = support.children(service.server)
    return child


def test_as_here(process, prompt, tmp_path):
    """Results, errors, commands and settings are as at a prompt here, in the same order."""
    with sql_prompt.prompt(tmp_path, "-p", process.pid, TERM="dumb") as here:
        for line in [LOOK, "SELECT nope;", "SELECT 'a' AS x; SELECT nope; SELECT 2;", ".nope",
                     "SET probing.query.timeout = 5;", "SHOW probing.query.timeout;",
                     "SET probing.query.timeout = x;", ".format", ".format json", ".format nope", LOOK,
                     ".format", "SELECT 7 AS seven;", ".tables", ".schema python.threads", ".help",
                     "help", ";", "SELECT 'é漢' AS x;", "SELECT char(0) || 'b' AS c;"]:
            there = enter(prompt, line)
            assert there == enter(here, line), line
            if line == LOOK:
                assert "%d" % process.pid in there, there
        assert '"value":"5"' in enter(prompt, "SHOW probing.query.timeout;")


def test_lines(prompt):
    prompt.send("SELECT 'a;\r")
    prompt.until("...> ")
    prompt.send("b' AS y -- ;\r")
    prompt.until("...> ")
    assert "\na;\\nb\n" in enter(prompt, ";")
    prompt.send("SELECT 1,\r")
    prompt.until("...> ")
    prompt.send("garbage\x03")
    prompt.until("probing> ")
    assert "\n78\n" in enter(prompt, "SELECT 78;")
    prompt.send("SELECT idle_se\t")
    prompt.until("idle_seconds ")
    prompt.send("\x15\x04")
    assert prompt.end()[1] == OK


@pytest.mark.parametrize("leave", ["\x04", ".quit\r", "exit;\r"])
def test_leaving_ends_the_session(service, prompt, leave):
    relay_of(service)
    prompt.send(leave)
    assert prompt.end()[1] == OK
    wait_until(lambda: not support.children(service.server))
    assert service.run("eval", "numbers").stdout == b"[1, 2, 3]\n"


def test_history_is_here(service, prompt, tmp_path):
    enter(prompt, "SELECT 41 + 1;")
    prompt.send("\x04")
    prompt.end()
    file = tmp_path / ".local" / "state" / "probing" / "history"
    assert file.read_text() == "SELECT 41 + 1;\n"
    with sql_prompt.prompt(tmp_path, "-t", service.address,
                           PROBING_AUTH_TOKEN=remote.TOKEN) as again:
        again.send("\x1b[A\r")
        again.until("SELECT 41 + 1;")
        assert " 42\n" in again.until("probing> ")


def test_interrupts(service, prompt):
    """Each Ctrl-C ends the query that it is typed in, and no other."""
    relay = relay_of(service)
    for number in range(5):
        prompt.send(ENDLESS + ";\r")
        until_it_computes(relay)
        prompt.send("\x03")
        assert "the query was cancelled" in prompt.until("probing> ")
        assert "\n%d\n" % number in enter(prompt, "SELECT %d;" % number)
    assert relay_of(service) == relay


def test_interrupts_at_any_time(prompt):
    interrupt_at_any_time(prompt)


def test_long_statements_and_results(prompt):
    """More than the queues hold, in one statement of many lines."""
    enter(prompt, ".format csv")
    line = "SELECT 'y' AS y " + "/*" + "x" * 3900 + "*/"
    for number in range(100):
        prompt.send((" UNION ALL " if number else "") + line + "\r")
        prompt.until("...> ")
    assert prompt_lines(enter(prompt, ";")).count("y") == 101
    lines = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c LIMIT 99999)"
    prompt.send(lines + "\r")
    prompt.until("...> ")
    assert prompt_lines(enter(prompt, "SELECT i, 'abcdefghij' FROM c;"))[-2:] == \
        ["99999,abcdefghij", "99999 rows"]


def prompt_lines(text):
    return [line.strip("\r") for line in text.split("\n") if line.strip()]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_server_ends(service, prompt, how):
    service.kill(how)
    said, code = prompt.end()
    assert code == FAILED and "the server at %s is gone" % service.address in said, (said, code)


def test_server_ends_in_a_query(service, prompt):
    relay = relay_of(service)
    prompt.send(ENDLESS + ";\r")
    until_it_computes(relay)
    service.kill()
    said, code = prompt.end()
    assert code == FAILED and "is gone" in said, (said, code)
    wait_until(lambda: not os.path.exists("/proc/%d" % relay))


def test_process_ends(process, service, prompt):
    os.kill(process.pid, signal.SIGKILL)
    said, code = prompt.end()
    assert code == FAILED and "is gone" in said, (said, code)


def test_session_ends(service, prompt):
    """Somebody there ends it: that is said, and is no success."""
    os.kill(relay_of(service), signal.SIGKILL)
    said, code = prompt.end()
    assert code == FAILED and "ended at the other end by signal 9" in said, (said, code)


def test_once_lasts_as_long_as_the_prompt(process, tmp_path):
    with Service(process.pid, "--once") as service:
        with sql_prompt.prompt(tmp_path, "-t", service.address,
                               PROBING_AUTH_TOKEN=remote.TOKEN) as terminal:
            for number in range(3):
                assert "\n%d\n" % number in enter(terminal, "SELECT %d;" % number)
            terminal.send("\x04")
            assert terminal.end()[1] == OK
        wait_until(lambda: not remote.servers(process.pid))


@pytest.mark.parametrize("words, token, code, says", [
    ((), "a-wrong-token-of-mine", PERMISSION, "the token is wrong"),
    (("--watch", "1s"), remote.TOKEN, USAGE, "--watch needs a query"),
    (("-f", "nope"), remote.TOKEN, USAGE, "there is no format 'nope'"),
])
def test_no_prompt_comes(service, tmp_path, words, token, code, says):
    """The error is reported once, and nothing is asked."""
    with Terminal("-t", service.address, "query", *words, PROBING_AUTH_TOKEN=token,
                  HOME=str(tmp_path)) as terminal:
        said, status = terminal.end()
        assert status == code and said.count("probing:") == 1 and says in said, (said, status)


def test_nobody_listens(tmp_path):
    with Terminal("-t", "127.0.0.1:1", "query", PROBING_AUTH_TOKEN=remote.TOKEN,
                  HOME=str(tmp_path)) as terminal:
        said, code = terminal.end()
        assert code == NO_PROCESS and "nobody listens at 127.0.0.1:1" in said, (said, code)


def test_relay(process):
    """The peer of a remote prompt: a mark on both streams after each answer."""
    done = run(process.pid, "query", "-f", "json", "--relay", "MARK",
               stdin=b"SELECT 1 AS x\0\0.format csv\0SELECT nope\0SELECT 2 AS y; SELECT 3 AS z\0"
                     b"SELECT 'not run, for want of its end'")
    assert done.returncode == OK, done
    answers = done.stdout.split(b"MARK")
    assert json.loads(answers[0]) == [{"x": 1}]
    assert answers[1:] == [b"", b"", b"", b"y\n2\n\nz\n3\n", b""], answers
    told = done.stderr.split(b"MARK")
    assert [bool(text) for text in told] == [False, False, False, True, False, False], told
    assert b"no such column: nope" in told[3]
    assert run(process.pid, "query", "--relay", "M", "SELECT 1").returncode == USAGE


def test_counts_of_rows(service, process):
    """A count follows a result if both streams are terminals, there as here."""
    words = ("query", "SELECT 1 AS one UNION SELECT 2")
    for spec in (process.pid, service.address):
        with Terminal("-t", spec, *words, PROBING_AUTH_TOKEN=remote.TOKEN) as terminal:
            assert terminal.end() == ("one\n───\n  1\n  2\n2 rows\n", OK)
        with Terminal("-t", spec, *words, PROBING_AUTH_TOKEN=remote.TOKEN,
                      stderr=subprocess.DEVNULL) as terminal:
            assert terminal.end() == ("one\n───\n  1\n  2\n", OK)

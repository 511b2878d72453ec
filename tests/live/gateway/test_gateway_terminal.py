# SPDX-License-Identifier: GPL-3.0-or-later
"""A prompt of `probing serve` in a terminal: one request for the output, others for the input."""
import fcntl
import http.client
import json
import os
import struct
import termios

import pytest

import support
from gateway_client import Gateway, wait_until

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]


@pytest.fixture(scope="module")
def program():
    with support.Program([NEWEST.exe, support.HERE / "programs" / "web_debugged.py"]) as running:
        assert running.line() == "ready"
        yield running


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """A folder for the history: not the user's own."""
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def gateway(program, state):
    with Gateway(program.pid, "--allow-write", XDG_STATE_HOME=str(state)) as running:
        yield running


class Terminal:
    def __init__(self, gateway, pid, **options):
        self._gateway = gateway
        self._connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        self._connection.request("POST", "/v1/targets/%d/repl" % pid, json.dumps(options), {
            "Authorization": "Bearer " + gateway.token, "Content-Type": "application/json"})
        self._response = self._connection.getresponse()
        self.status, self.name = self._response.status, self._response.getheader("Probing-Terminal")
        self._shown = b""

    def until(self, text):
        """The output up to this text."""
        while text.encode() not in self._shown:
            try:
                part = self._response.read1(65536)
            except TimeoutError:
                part = b""
            assert part, "no %r in %r" % (text, self._shown[-2000:])
            self._shown += part
        before, _, self._shown = self._shown.partition(text.encode())
        return before.decode()

    def rest(self):
        return (self._shown + self._response.read()).decode()

    def type(self, text, **more):
        return self._gateway.ask("/v1/terminals/" + self.name, {"input": text, **more})

    def leave(self):
        self._response.close()
        self._connection.close()

    def __enter__(self):
        assert self.status == 200
        self.until(">>> ")
        return self

    def __exit__(self, *_):
        self.leave()


def test_code_is_typed(gateway, program):
    with Terminal(gateway, program.pid) as terminal:
        assert terminal.type("40 + ").json == {}
        assert terminal.type("2\r").status == 200
        terminal.until("\r42\r\n")
        # Blocks, completion, Ctrl-C, and history.
        terminal.type("for n in (1, 2):\r    n * 'ab'\r\r")
        terminal.until("'abab'")
        terminal.type("print('run' + 'ning'); [time.sle\t(0.01) for _ in iter(int, 1)]\r")
        terminal.until("time.sleep(0.01)")
        terminal.until("running")
        terminal.type("\x03")
        terminal.until("KeyboardInterrupt")
        terminal.until(">>> ")
        terminal.type("\x1b[A\x1b[A\r")
        terminal.until(">>> ")
        # Its keys stop nothing: it answers on.
        terminal.type("\x1a\x1c'still ' + 'here'\r")
        terminal.until("'still here'")
        # Before it reads again, that would be the end of another line.
        terminal.until(">>> ")
        terminal.type("\x04")
        terminal.rest()
    wait_until(lambda: not gateway.children(), "the command is left")
    assert terminal.type("1").status == 404


def test_more_than_a_terminal_takes_at_once(gateway, program):
    with Terminal(gateway, program.pid) as terminal:
        assert terminal.type("len('%s')\r" % ("x" * 20000)).status == 200
        terminal.until("\r20000\r\n")


def size(gateway):
    """Rows and columns of the terminal of its only command."""
    [command] = gateway.children()
    terminal = os.open("/proc/%d/fd/0" % command, os.O_RDONLY | os.O_NOCTTY)
    try:
        return struct.unpack("HHHH", fcntl.ioctl(terminal, termios.TIOCGWINSZ, bytes(8)))[:2]
    finally:
        os.close(terminal)


def test_its_size(program, state):
    with Gateway(program.pid, "--allow-write", XDG_STATE_HOME=str(state)) as gateway:
        with Terminal(gateway, program.pid):
            assert size(gateway) == (24, 80)
        wait_until(lambda: not gateway.children(), "the command is left")
        with Terminal(gateway, program.pid, rows=50, columns=30) as terminal:
            assert size(gateway) == (50, 30)
            assert terminal.type("", columns=200).status == 200
            assert size(gateway) == (50, 200)
            assert terminal.type("'a' + 'b'\r", rows=10, columns=40).status == 200
            assert size(gateway) == (10, 40)
            terminal.until("'ab'")


def test_two_of_them(gateway, program):
    with Terminal(gateway, program.pid) as one, Terminal(gateway, program.pid, thread="main") as other:
        assert one.name != other.name
        one.type("'o' + 'ne'\r")
        other.type("'ot' + 'her'; __import__('threading').current_thread().name\r")
        one.until("'one'")
        assert "'one'" not in other.until("'MainThread'")


def test_it_ends_with_its_client(gateway, program):
    with Terminal(gateway, program.pid) as terminal:
        assert gateway.children()
        files = gateway.files()
    wait_until(lambda: not gateway.children(), "the command is left")
    wait_until(lambda: gateway.files() < files, "the terminal is left")
    assert terminal.type("1").status == 404
    assert gateway.query(program.pid, "SELECT 1 AS x") == [{"x": 1}]


def test_it_ends_with_the_gateway(program, state):
    with Gateway(program.pid, "--allow-write", XDG_STATE_HOME=str(state)) as other:
        with Terminal(other, program.pid) as terminal:
            [command] = other.children()
            assert other.stop()[0] == 0
            wait_until(lambda: not support.Path("/proc/%d" % command).exists(), "the command goes on")
            del terminal


def test_it_ends_with_its_process(state):
    with support.Program([NEWEST.exe, support.HERE / "programs" / "web_debugged.py"]) as program:
        assert program.line() == "ready"
        with Gateway(program.pid, "--allow-write", XDG_STATE_HOME=str(state)) as gateway:
            with Terminal(gateway, program.pid) as terminal:
                program.kill()
                assert "ended" in terminal.rest()
            assert Terminal(gateway, program.pid).status == 404


def test_what_cannot_be_loaded_is_said_there(state):
    with support.Program(["sleep", "600"]) as program, \
            Gateway(program.pid, "--allow-write", XDG_STATE_HOME=str(state)) as gateway:
        terminal = Terminal(gateway, program.pid)
        assert terminal.status == 200
        assert "not a Python process" in terminal.rest()
        terminal.leave()


@pytest.mark.parametrize("body", [{"rows": 0}, {"rows": 1001}, {"columns": 100000}, {"rows": -1}, {"thread": "--help"}, {"input": "1"}])
def test_terminals_that_make_no_sense(gateway, program, body):
    answer = gateway.ask("/v1/targets/%d/repl" % program.pid, body)
    assert (answer.status, answer.error["code"]) == (400, "usage"), answer


def test_typing_has_bounds(gateway, program):
    assert gateway.ask("/v1/terminals/t9999", {"input": "1"}).status == 404
    assert gateway.ask("/v1/terminals/nothing", {"input": "1"}).status == 404
    with Terminal(gateway, program.pid) as terminal:
        assert terminal.type("", rows=0).status == 400
        assert terminal.type("x" * 70000).error["code"] == "usage"
        # The running code reads none of the input: it is buffered, up to a bound.
        terminal.type("print('run' + 'ning'); [time.sleep(0.01) for _ in iter(int, 1)]\r")
        terminal.until("running")
        answers = [terminal.type(300 * (99 * "y" + "\r")).status for _ in range(5)]
        assert answers[0] == 200 and answers[-1] == 400, answers
        terminal.type("\x03")
    wait_until(lambda: not gateway.children(), "the command is left")
    assert gateway.resident() < 100 << 20


def test_terminals_take_no_places_of_others(program, state):
    with Gateway(program.pid, "--allow-write", XDG_STATE_HOME=str(state)) as gateway:
        terminals = [Terminal(gateway, program.pid) for _ in range(10)]
        assert [terminal.status for terminal in terminals] == 8 * [200] + 2 * [503]
        assert gateway.ask("/v1/targets/%d/stacks" % program.pid).status == 200
        for terminal in terminals:
            terminal.leave()
        wait_until(lambda: not gateway.children(), "commands are left")


def test_a_terminal_is_told_once(program, state):
    with Gateway(program.pid, "--allow-write", XDG_STATE_HOME=str(state)) as gateway:
        with Terminal(gateway, program.pid) as terminal:
            terminal.type("'not in a log'\r")
            terminal.until("'not in a log'")
        told = gateway.stop()[1]
    assert told == "probing: serve: POST /v1/targets/%d/repl {}\n" % program.pid

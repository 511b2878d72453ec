# SPDX-License-Identifier: GPL-3.0-or-later
"""`debug --dap`: an editor's side of the Debug Adapter Protocol, with a debugpy in a program that
was started without it."""
import json
import os
import socket

import pytest

import support
from conftest import PROGRAMS
from environment import FAILED, OK, UNSUPPORTED, USAGE, wait_until

SYSTEM = "/usr/bin/python3"  # apt's debugpy is for it alone
PACKAGES = "/usr/lib/python3/dist-packages"
ANY_PORT = "--dap=127.0.0.1:0"
LINE = 1 + (PROGRAMS / "debugged.py").read_text().split("\n").index("    total = number + 1")

pytestmark = pytest.mark.skipif(not os.path.isdir(PACKAGES + "/debugpy"),
                                reason="python3-debugpy is not installed")


class Editor:
    """A client of the Debug Adapter Protocol."""

    def __init__(self, launch):
        place = launch["configurations"][0]["connect"]
        self._socket = socket.create_connection((place["host"], place["port"]), 60)
        self._file = self._socket.makefile("rb")
        self._sequence = 0
        self._events = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._file.close()
        self._socket.close()

    def _receive(self):
        length = 0
        while line := self._file.readline().strip():
            name, _, value = line.partition(b":")
            if name == b"Content-Length":
                length = int(value)
        assert length, "the connection ended"
        return json.loads(self._file.read(length))

    def send(self, command, **arguments):
        """Sends a request; its number."""
        self._sequence += 1
        body = json.dumps({"seq": self._sequence, "type": "request", "command": command,
                           "arguments": arguments}).encode()
        self._socket.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        return self._sequence

    def answer(self, number):
        while True:
            message = self._receive()
            if message["type"] == "event":
                self._events.append(message)
            elif message["request_seq"] == number:
                assert message["success"], message
                return message.get("body")

    def ask(self, command, **arguments):
        return self.answer(self.send(command, **arguments))

    def event(self, name):
        while True:
            for event in self._events:
                if event["event"] == name:
                    self._events.remove(event)
                    return event.get("body")
            message = self._receive()
            if message["type"] == "event":
                self._events.append(message)

    def attach(self):
        self.ask("initialize", adapterID="debugpy", linesStartAt1=True, columnsStartAt1=True,
                 pathFormat="path")
        number = self.send("attach", justMyCode=False)
        self.event("initialized")
        self.set_breakpoints(LINE)
        self.ask("configurationDone")
        self.answer(number)

    def set_breakpoints(self, *lines):
        return self.ask("setBreakpoints", source={"path": str(PROGRAMS / "debugged.py")},
                        breakpoints=[{"line": line} for line in lines])["breakpoints"]


@pytest.fixture
def program():
    with support.Program([SYSTEM, PROGRAMS / "debugged.py"]) as process:
        assert process.line() == "ready"
        yield process


def start(probing, pid, *options):
    done = probing("-t", pid, "debug", ANY_PORT, *options)
    assert done.code == OK, done
    return done, json.loads(done.out)


def rounds(probing, pid):
    return int(probing("-t", pid, "eval", "rounds").out)


def debug(probing, pid, launch, names=frozenset(("MainThread", "worker"))):
    """Stops at a line, inspects it, and continues."""
    with Editor(launch) as editor:
        editor.attach()
        threads = {each["name"]: each["id"] for each in editor.ask("threads")["threads"]}
        assert set(threads) == names
        stopped = editor.event("stopped")
        assert stopped["reason"] == "breakpoint" and stopped["threadId"] in threads.values()
        frames = editor.ask("stackTrace", threadId=stopped["threadId"])["stackFrames"]
        assert [(frame["name"], frame["line"]) for frame in frames[:1]] == [("inner", LINE)]
        assert frames[1]["name"] == "work"
        assert frames[0]["source"]["path"] == str(PROGRAMS / "debugged.py")
        number = int(editor.ask("evaluate", expression="number", frameId=frames[0]["id"],
                                context="watch")["result"])
        assert number >= 0
        editor.set_breakpoints()
        editor.ask("continue", threadId=stopped["threadId"])
        editor.ask("disconnect", terminateDebuggee=False)
    before = rounds(probing, pid)
    wait_until(lambda: rounds(probing, pid) > before + 10)


def test_breakpoint_and_stack(probing, program):
    done, launch = start(probing, program.pid)
    assert "listens on 127.0.0.1" in done.err and "can run code" in done.err
    configuration = launch["configurations"][0]
    assert configuration["request"] == "attach" and configuration["type"] == "debugpy"
    debug(probing, program.pid, launch)
    # It is called again, and another editor connects.
    done, again = start(probing, program.pid)
    assert again == launch and "already" in done.err
    assert "is ignored" not in done.err
    done = probing(program.pid, "debug", "--dap=127.0.0.1:1")
    assert done.code == OK and "the one that was asked for is ignored" in done.err, done
    debug(probing, program.pid, again)
    assert probing("-t", program.pid, "eject").code == OK
    assert "python" in probing("-t", program.pid, "backtrace").out.lower()


@pytest.mark.parametrize("interpreter", [
    each for each in support.INTERPRETERS
    if (3, 8) <= each.version <= (3, 11) and not each.name.startswith("debian")], ids=repr)
def test_a_program_without_threads(probing, interpreter):
    """The main thread stays known to debugpy, which ends without one."""
    with support.Program([interpreter.exe, "-S", PROGRAMS / "debugged.py", "alone"],
                         env=interpreter.env) as program:
        assert program.line() == "ready"
        _, launch = start(probing, program.pid, "--debugpy", PACKAGES + "/debugpy")
        debug(probing, program.pid, launch, {"MainThread"})
        done, again = start(probing, program.pid)
        assert again == launch and "already" in done.err
        debug(probing, program.pid, again, {"MainThread"})


def test_debugpy_of_elsewhere(probing):
    """A Python of the same version, without a debugpy of its own."""
    found = [each for each in support.INTERPRETERS if repr(each).startswith("pyenv-3.11")]
    if not found:
        pytest.skip("no other Python 3.11 here")
    with support.Program([found[0].exe, PROGRAMS / "debugged.py"], env=found[0].env) as program:
        program.line()
        done = probing("-t", program.pid, "debug", ANY_PORT)
        assert done.code == UNSUPPORTED and "has no debugpy" in done.err
        assert "--debugpy PATH" in done.err and not done.out
        path = probing("-t", program.pid, "eval", "import sys; sys.path").out
        _, launch = start(probing, program.pid, "--debugpy", PACKAGES + "/debugpy")
        assert probing("-t", program.pid, "eval", "import sys; sys.path").out == path
        debug(probing, program.pid, launch)


def test_refusals(probing, program, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = probing("-t", program.pid, "debug", "--dap", "127.0.0.1:%d" % taken.getsockname()[1])
        assert done.code == FAILED and "in use" in done.err and "any port" in done.err, done
    for options, words in [(["--dap=localhost"], "is not an address"),
                           (["--dap=localhost:99999"], "is not an address"),
                           (["--dap=::1:5678"], "is not an address"),
                           (["--dap", "--dump"], "exclude each other")]:
        done = probing("-t", program.pid, "debug", *options)
        assert done.code == USAGE and words in done.err and not done.out, done


def test_unfit_packages(probing, program, tmp_path):
    done = probing("-t", program.pid, "debug", ANY_PORT, "--debugpy", tmp_path / "none")
    assert done.code == FAILED and "No such file" in done.err
    (tmp_path / "debugpy").mkdir()
    (tmp_path / "debugpy" / "__init__.py").write_text("import nowhere\n")
    done = probing("-t", program.pid, "debug", ANY_PORT, "--debugpy", tmp_path)
    assert done.code == UNSUPPORTED and "nowhere" in done.err, done
    # A matching one is still found.
    start(probing, program.pid)


def test_nobody_listens(probing, program, tmp_path):
    """As when debugpy sees no thread that it could debug: it gives up after it has said where it listens."""
    (tmp_path / "debugpy").mkdir()
    (tmp_path / "debugpy/__init__.py").write_text(
        "import socket\n__version__ = '1'\ndef listen(address):\n    with socket.socket() as one:\n"
        "        one.bind(('127.0.0.1', 0))\n        return one.getsockname()\n")
    for _ in range(2):
        done = probing(program.pid, "debug", "--dap=127.0.0.1:0", "--debugpy", tmp_path)
        assert done.code == FAILED and not done.out, done
        assert "debugpy does not listen in process %d: it stopped to listen at once" % program.pid in done.err, done


def test_adapter_ends_with_the_target(probing):
    with support.Program([SYSTEM, PROGRAMS / "debugged.py"]) as program:
        program.line()
        _, launch = start(probing, program.pid)
        place = launch["configurations"][0]["connect"]
    wait_until(lambda: not is_listening(place))


def is_listening(place):
    with socket.socket() as client:
        return client.connect_ex((place["host"], place["port"])) == 0

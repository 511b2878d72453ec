# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing dap`: what an editor asks for by the Debug Adapter Protocol, of processes, core files and snapshots."""
import json
import os
import re
import signal
import socket
import subprocess
import threading

import pytest

import agent
import pauses
import support
from environment import OK
from remote import Service
from tables import core_of
from test_debug_prompt import ADD, FIRST, GIL, LINES, LOOP, NEW, PROGRAM, clean, driven  # noqa: F401 (fixtures)

PATH = str(PROGRAM)
SECONDS = 120


class Editor:
    """A client: over the pipes of the command, or a socket."""

    def __init__(self, *words, address=None, env=None):
        self.process, self.events, self.seq = None, [], 0
        if address:
            self.socket = socket.create_connection(address, SECONDS)
            self.reads = self.writes = self.socket.makefile("rwb")
        else:
            self.process = subprocess.Popen([support.BINARY, *map(str, words)], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                            env=dict(os.environ, **(env or {})))
            self.reads, self.writes = self.process.stdout, self.process.stdin

    def read(self):
        """The next message; what hangs is killed."""
        killer = threading.Timer(SECONDS, self.process.kill if self.process else self.socket.close)
        killer.start()
        try:
            length = 0
            while True:
                line = self.reads.readline()
                assert line, self.process and self.process.communicate()
                if line == b"\r\n":
                    break
                name, _, value = line.partition(b":")
                assert name == b"Content-Length", line
                length = int(value)
            return json.loads(self.reads.read(length).decode("ascii"))
        finally:
            killer.cancel()

    def packet(self, command, **arguments):
        self.seq += 1
        body = json.dumps({"seq": self.seq, "type": "request", "command": command, "arguments": arguments}).encode()
        return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)

    def send(self, command, **arguments):
        self.writes.write(self.packet(command, **arguments))
        self.writes.flush()

    def fails(self, command, **arguments):
        """Why a request is refused."""
        return self.answer(command, arguments, False)["message"]

    def ask(self, command, **arguments):
        return self.answer(command, arguments, True).get("body")

    def answer(self, command, arguments, success):
        self.send(command, **arguments)
        while True:
            message = self.read()
            if message["type"] == "event":
                self.events.append(message)
                continue
            assert message["request_seq"] == self.seq and message["command"] == command, message
            assert message["success"] is success, message
            return message

    def event(self, name):
        while True:
            for at, event in enumerate(self.events):
                if event["event"] == name:
                    return self.events.pop(at).get("body")
            message = self.read()
            assert message["type"] == "event", message
            self.events.append(message)

    def begin(self, lines=(), filters=(), **arguments):
        """As editors do."""
        capabilities = self.ask("initialize", adapterID="probing")
        assert capabilities["supportsConfigurationDoneRequest"] is True
        self.ask("attach", **arguments)
        self.event("initialized")
        told = self.lines(*lines)
        self.ask("setExceptionBreakpoints", filters=list(filters))
        self.ask("configurationDone")
        return told

    def lines(self, *lines):
        told = self.ask("setBreakpoints", source={"path": PATH},
                        breakpoints=[each if isinstance(each, dict) else {"line": each} for each in lines])
        return told["breakpoints"]

    def stopped(self, reason):
        """(thread, function, line) of a stop."""
        event = self.event("stopped")
        assert event["reason"] == reason, event
        assert event["allThreadsStopped"] is True
        top = self.ask("stackTrace", threadId=event["threadId"], levels=1)["stackFrames"][0]
        return event["threadId"], top["name"], top["line"]

    def variables(self, reference):
        return {each["name"]: each for each in self.ask("variables", variablesReference=reference)["variables"]}

    def leave(self):
        self.ask("disconnect")
        if self.process:
            out, err = self.process.communicate(timeout=SECONDS)
            assert (self.process.returncode, out) == (OK, b""), (out, err)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait(SECONDS)
            for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
                stream.close()


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_a_session(interpreter, driven, shared, clean):
    process = driven(interpreter)
    with Editor("-t", process.pid, "dap", "--within", "30s") as editor:
        told = editor.begin([{"line": FIRST, "condition": "self.calls % 2 == 0"}, {"line": 11}])
        assert [each["verified"] for each in told] == [True, True], told
        # It is blank, and what follows it outside of functions has run.
        assert told[1]["line"] == LINES["self.calls = 0"] and "line 11 has no code" in told[1]["message"], told
        tid, *place = editor.stopped("breakpoint")
        assert place == ["Net.forward", FIRST] or place == ["forward", FIRST]
        assert [each["name"] for each in editor.ask("threads")["threads"]] == ["MainThread", "beside"]
        frames = editor.ask("stackTrace", threadId=tid)["stackFrames"]
        assert [each["name"].rpartition(".")[2] for each in frames] == ["forward", "turn", "main", "<module>"]
        assert {each["source"]["path"] for each in frames} == {PATH}
        scopes = editor.ask("scopes", frameId=frames[0]["id"])["scopes"]
        local, module = (editor.variables(each["variablesReference"]) for each in scopes)
        assert set(local) == {"self", "batch"} and {"Net", "shared", "__name__"} <= set(module)
        assert set(editor.variables(local["self"]["variablesReference"])) == {"calls"}
        items = editor.variables(local["batch"]["variablesReference"])
        assert [items[each]["type"] for each in ("0", "1")] == ["int", "int"], items
        frame = frames[0]["id"]
        assert editor.ask("evaluate", expression="self.calls % 2", frameId=frame)["result"] == "0"
        assert "NameError" in editor.fails("evaluate", expression="print('before') or nope", frameId=frame, context="repl")
        assert editor.event("output")["output"] == "before\n"  # what was printed is shown, though it failed
        assert "no such frame at this stop" in editor.fails("evaluate", expression="self", frameId=987654)
        assert editor.ask("evaluate", expression="__name__")["result"] == "'__main__'"  # the global scope
        assert editor.fails("evaluate", expression="self")
        assert editor.fails("evaluate", expression="print(1)", frameId=frame, context="hover")
        assert "self.calls" in [each["label"] for each in editor.ask(
            "completions", text="self.", column=6, frameId=frame)["targets"]]
        for way, line in (("next", LOOP), ("next", LOOP + 1), ("stepIn", LOOP)):
            editor.ask(way, threadId=tid)
            assert editor.stopped("step")[2] == line
        editor.ask("stepOut", threadId=tid)
        assert editor.stopped("step")[1:] == ("turn", LINES["both = double(loss)"])
        editor.lines({"line": FIRST, "hitCondition": "% 3"})
        editor.ask("continue", threadId=tid)
        editor.stopped("breakpoint")
        editor.lines()
        editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "one_line"}])
        editor.ask("continue", threadId=tid)
        assert editor.stopped("function breakpoint")[1] == "one_line"
        editor.ask("setFunctionBreakpoints", breakpoints=[])
        editor.ask("continue", threadId=tid)
        pauses.wait_until_runs(shared)
        assert len(editor.ask("threads")["threads"]) == 2
        editor.ask("pause", threadId=tid)
        assert editor.event("stopped")["reason"] == "pause"
        editor.leave()
    clean(interpreter, process.pid, shared)


LATE = """\
def late(value):

    # no code
    return value * 2
class Late:
    def method(self):
        return 3
"""


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_what_is_loaded_later(interpreter, driven, shared, clean, tmp_path):
    """A line without code moves then, a function is waited for; the client is told of both."""
    process, file = driven(interpreter), tmp_path / "late.py"
    file.write_text(LATE)
    with Editor("-t", process.pid, "dap", "--within", "30s") as editor:
        editor.begin([FIRST])
        editor.stopped("breakpoint")
        told = editor.ask("setBreakpoints", source={"path": str(file)}, breakpoints=[{"line": 3}])["breakpoints"]
        told += editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "Late.method"}])["breakpoints"]
        assert [each["verified"] for each in told] == [False, False], told
        assert all("no code was found so far" in each["message"] for each in told), told
        event = {"threadId": editor.ask("threads")["threads"][0]["id"]}
        frame = editor.ask("stackTrace", **event)["stackFrames"][0]["id"]
        editor.ask("evaluate", frameId=frame, context="repl", expression="import sys; sys.path.insert(0, %r); import "
                   "late; sys.modules['__main__'].double = lambda x: late.late(late.Late().method())" % str(tmp_path))
        editor.lines()
        editor.ask("continue", **event)
        assert editor.stopped("function breakpoint")[1].rpartition(".")[2] == "method"
        changed = [editor.event("breakpoint") for _ in range(2)]
        assert [(each["breakpoint"]["id"], each["breakpoint"]["verified"], each["breakpoint"]["line"])
                for each in changed] == [(told[0]["id"], True, 4), (told[1]["id"], True, 7)], changed
        editor.ask("continue", **event)
        assert editor.stopped("breakpoint")[1:] == ("late", 4)
        editor.leave()
    clean(interpreter, process.pid, shared)


def said(editor):
    return editor.event("output")["output"]


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_logpoints(interpreter, driven, shared, clean):
    """They say something, and stop nothing, steps neither; one that fails says why."""
    process = driven(interpreter)
    with Editor("-t", process.pid, "dap", "--within", "30s") as editor:
        editor.begin([{"line": ADD, "logMessage": 'x is {x}, "{ {1: x}[1] + 0 }", {}', "condition": "x % 2 == 0"}])
        for _ in range(5):
            found = re.fullmatch(r'x is (\d+), "(\d+)", \{\}\n', said(editor))
            assert found and found.group(1) == found.group(2) and int(found.group(1)) % 2 == 0, found
        editor.lines({"line": LINES["loss = net.forward(list(items(k)))"]},
                     {"line": LOOP, "logMessage": "loop"}, {"line": FIRST, "logMessage": "{nobody}"})
        tid, *place = editor.stopped("breakpoint")
        assert place[0] == "turn", place
        editor.events.clear()
        editor.ask("next", threadId=tid)
        assert "NameError" in said(editor) and said(editor) == "loop\n"
        assert editor.stopped("step")[1:] == ("turn", LINES["both = double(loss)"])
        editor.ask("continue", threadId=tid)
        editor.stopped("breakpoint")
        editor.ask("stepIn", threadId=tid)
        for _ in range(8):
            name = editor.stopped("step")[1].rpartition(".")[2]
            if name == "forward":
                break
            editor.ask("stepIn", threadId=tid)
        assert name == "forward"
        editor.ask("stepOut", threadId=tid)
        assert editor.stopped("step")[1] == "turn"
        editor.leave()
    clean(interpreter, process.pid, shared)


NAMED = """
import os
class Node:
    def __init__(self, **values):
        self.__dict__.update(values)
def show(node, table, both, empty):
    print("ready", flush=True)
    os.read(0, 1)
show(Node(items=[1, (2, [3])], inner=Node(**{"deep": {"x": [4]}, "class": 5})), {"a b": [5], 7: (6,), None: 1, "it's": [8], "x" * 99: [9]},
     {frozenset([1])}, [])
"""


def test_names_of_variables(newest, tmp_path):
    """What is shown may be asked for again by its name; a frame stays the same during a stop."""
    program = tmp_path / "named.py"
    program.write_text(NAMED)
    with support.Program([newest.exe, program], env=newest.env) as process, Editor("-t", process.pid, "dap", "--within", "30s") as editor:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "pipe_read")
        editor.begin(stopOnEntry=True)
        tid = editor.event("stopped")["threadId"]
        frames = editor.ask("stackTrace", threadId=tid)["stackFrames"]
        again = [editor.ask("stackTrace", threadId=tid, startFrame=each, levels=1)["stackFrames"][0]
                 for each in reversed(range(len(frames)))]
        assert frames == again[::-1], (frames, again)
        frame, named, left = frames[0]["id"], {}, [editor.ask("scopes", frameId=frames[0]["id"])["scopes"][0]]
        while left:
            for each in editor.variables(left.pop()["variablesReference"]).values():
                name = each.get("evaluateName")
                if name:
                    named[name] = each["value"]
                    assert editor.ask("evaluate", expression=name, frameId=frame)["result"] == each["value"], each
                if each["variablesReference"] and len(named) < 100:
                    left.append(each)
        assert {"node.items[1][1][0]", "node.inner.deep['x'][0]", "table['a b'][0]", "table[7][0]", 'table["it\'s"][0]',
                "both", "empty"} <= set(named), named
        assert not [name for name in named if name.startswith(("both[", "table[None", "table['xx", "node.inner.class"))], named
        editor.leave()


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_exceptions(interpreter, driven, shared, clean):
    process = driven(interpreter)
    with Editor("-t", process.pid, "dap", "--within", "30s") as editor:
        editor.begin(filters=["raised"])
        event = editor.event("stopped")
        assert event["reason"] == "exception" and "Error: " in event["text"], event
        told = editor.ask("exceptionInfo", threadId=event["threadId"])
        assert event["text"] == "%s: %s" % (told["exceptionId"], told["description"]), told
        assert told["details"] == {"typeName": told["exceptionId"], "message": told["description"]}, told
        assert told["breakMode"] == "always", told
        assert editor.fails("exceptionInfo", threadId=event["threadId"] + 1) == "no exception has stopped it"
        editor.ask("setExceptionBreakpoints", filters=[])
        editor.ask("next", threadId=event["threadId"])
        editor.stopped("step")
        assert editor.fails("exceptionInfo", threadId=event["threadId"]) == "no exception has stopped it"
        editor.leave()
    clean(interpreter, process.pid, shared)


UNHANDLED = r"""
import os, sys, threading, time
sys.stderr = open(os.devnull, "w")
def fail():
    raise ValueError(": two")
for turn in range(10 ** 9):
    try:
        fail()
    except ValueError:
        thread = threading.Thread(target=fail, name="fails")
        thread.start()
        thread.join()
    if not turn:  # what reports an exception is imported
        print("ready", flush=True)
    time.sleep(0.001)
"""


def test_unhandled_exceptions(newest, tmp_path):
    """By what the code says: a `with` that ends one is not known before, as the client is told."""
    program = tmp_path / "unhandled.py"
    program.write_text(UNHANDLED)
    with support.Program([newest.exe, program], env=newest.env) as process, Editor("-t", process.pid, "dap", "--within", "30s") as editor:
        assert process.line() == "ready"
        told = editor.ask("initialize", adapterID="probing")["exceptionBreakpointFilters"]
        assert "a 'with' may still end it" in told[1]["description"], told
        editor.begin(filters=["uncaught"])
        tid = editor.event("stopped")["threadId"]
        assert {each["id"]: each["name"] for each in editor.ask("threads")["threads"]}[tid] == "fails"
        told = editor.ask("exceptionInfo", threadId=tid)
        assert (told["exceptionId"], told["description"], told["breakMode"]) == ("ValueError", ": two", "userUnhandled"), told
        editor.leave()


def test_breakpoints_while_it_runs(driven, newest, shared, clean):
    """The process is paused for a moment, and goes on."""
    process = driven()
    with Editor("-t", process.pid, "dap", "--within", "30s") as editor:
        editor.begin()
        for _ in range(5):
            pauses.wait_until_runs(shared)
            assert editor.lines({"line": FIRST, "condition": "False"})[0]["verified"] is True
        editor.lines(FIRST)
        assert editor.stopped("breakpoint")[2] == FIRST
        editor.leave()
    clean(newest, process.pid, shared)


@pytest.mark.parametrize("kind", ["core", "snapshot"])
def test_post_mortem(kind, driven, tmp_path, probing):
    process = driven()
    file = tmp_path / "it.snapshot"
    if kind == "core":
        file = core_of(process.pid, tmp_path)
    else:
        assert probing(process.pid, "snapshot", "-o", file).code == OK
    with Editor("-t", file, "dap") as editor:
        told = editor.begin([FIRST])
        assert [each["verified"] for each in told] == [False], told
        event = editor.event("stopped")
        if event["reason"] == "exception":
            told = editor.ask("exceptionInfo", threadId=event["threadId"])
            assert kind == "core" and re.fullmatch(r"SIG[A-Z]+", told["exceptionId"]), told
            assert told["breakMode"] == "unhandled" and event["text"] == told["exceptionId"], told
        else:
            assert event["reason"] == "pause", event
            assert editor.fails("exceptionInfo", threadId=event["threadId"]) == "no exception has stopped it"
        frames = editor.ask("stackTrace", threadId=event["threadId"])["stackFrames"]
        assert frames[-1]["name"] == "<module>"
        main = next(each for each in frames if each["name"] == "main")
        local = editor.variables(editor.ask("scopes", frameId=main["id"])["scopes"][0]["variablesReference"])
        assert set(local) == {"net", "k"}
        if kind == "core":
            assert set(editor.variables(local["net"]["variablesReference"])) == {"calls"}
        else:
            # A snapshot has what its own dump read of an object, which need not be all.
            editor.send("variables", variablesReference=local["net"]["variablesReference"])
            told = editor.read()
            assert told.get("message") or told["body"]["variables"], told
        assert editor.ask("evaluate", expression="net.calls", frameId=main["id"])["type"] == "int"
        assert "nothing runs in a" in editor.fails("continue", threadId=event["threadId"])
        editor.leave()


@pytest.mark.parametrize("how", ["killed", "closed"])
def test_the_editor_ends(how, driven, shared, newest, clean):
    """The process runs on, and removes the breakpoints itself."""
    process = driven()
    with Editor("-t", process.pid, "dap", "--within", "30s") as editor:
        editor.begin([FIRST])
        editor.stopped("breakpoint")
        if how == "killed":
            editor.process.send_signal(signal.SIGKILL)
        else:
            editor.process.stdin.close()
        editor.process.wait(60)
    clean(newest, process.pid, shared)


def test_the_process_ends(driven):
    process = driven()
    with Editor("-t", process.pid, "dap", "--within", "30s") as editor:
        editor.begin()
        os.kill(process.pid, signal.SIGKILL)
        editor.event("terminated")
        editor.leave()


def listening(*words, env=None):
    """(the command, its launch.json): it waits for editors."""
    command = subprocess.Popen([support.BINARY, "dap", *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=dict(os.environ, **(env or {})))
    text = b"".join(iter(command.stdout.readline, b"}\n")) + b"}"
    return command, json.loads(text.decode())["configurations"][0]


def test_listens(driven, newest, shared, clean):
    """One editor after the other; the first one names the process."""
    process = driven()
    command, launch = listening("--listen=127.0.0.1:0")
    assert launch["type"] == "debugpy" and "token" not in launch, launch
    for _ in range(2):
        with Editor(address=("127.0.0.1", launch["debugServer"])) as editor:
            editor.begin([FIRST], processId=process.pid)
            editor.stopped("breakpoint")
            editor.leave()
        clean(newest, process.pid, shared)
    command.kill()
    command.communicate()


def test_launch_json_as_vs_code_sends_it(driven, newest, shared, clean):
    """The printed configuration, with what the editor's Python extension adds to it."""
    process = driven()
    command, launch = listening(str(process.pid), "--listen=127.0.0.1:0")
    folder = os.path.dirname(PROGRAM)
    added = {"host": "localhost", "workspaceFolder": folder, "justMyCode": True, "showReturnValue": True, "clientOS": "unix",
             "debugOptions": ["RedirectOutput", "ShowReturnValue"], "__sessionId": "1", "__configurationTarget": 6,
             "pathMappings": [{"localRoot": folder, "remoteRoot": folder}]}
    with Editor(address=("127.0.0.1", launch["debugServer"])) as editor:
        editor.begin([FIRST], **launch, **added)
        editor.stopped("breakpoint")
        editor.leave()
    clean(newest, process.pid, shared)
    command.kill()
    command.communicate()


def test_files_of_the_editor_are_elsewhere(driven, newest, shared, clean):
    process = driven()
    with Editor(str(process.pid), "dap") as editor:
        editor.ask("initialize", adapterID="probing")
        editor.ask("attach", pathMappings=[{"localRoot": "/nowhere", "remoteRoot": "."},
                                           {"localRoot": "/home/me/project/", "remoteRoot": os.path.dirname(PATH)}])
        editor.event("initialized")
        file = "/home/me/project/" + os.path.basename(PATH)
        told = editor.ask("setBreakpoints", source={"path": file}, breakpoints=[{"line": FIRST}])["breakpoints"]
        assert told[0]["verified"], told
        editor.ask("configurationDone")
        tid = editor.event("stopped")["threadId"]
        for frame in editor.ask("stackTrace", threadId=tid)["stackFrames"]:
            assert frame["source"] == {"name": os.path.basename(PATH), "path": file}, frame
        assert "class Net" in editor.ask("source", source={"path": file})["content"]
        assert not editor.ask("setBreakpoints", source={"path": file}, breakpoints=[])["breakpoints"]
        editor.leave()
    clean(newest, process.pid, shared)


def test_a_token_where_others_can_connect(driven):
    process = driven()
    command, launch = listening("--listen=0.0.0.0:0")
    with Editor(address=("127.0.0.1", launch["debugServer"])) as editor:
        editor.ask("initialize", adapterID="probing")
        for given in ({}, {"token": ""}, {"token": launch["token"] + "x"}, {"token": launch["token"][:-1] + "!"}):
            assert "token is missing or wrong" in editor.fails("attach", processId=process.pid, **given)
        assert "before the client has attached" in editor.fails("threads")
        editor.ask("attach", processId=process.pid, token=launch["token"])
        editor.leave()
    command.kill()
    command.communicate()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_another_user_cannot_connect(driven):
    """Everybody can connect to the loopback interface."""
    process = driven()
    command, launch = listening("--listen=127.0.0.1:0")
    code = ("import os, socket; os.setuid(65534); "
            "s = socket.create_connection(('127.0.0.1', %d)); print(s.recv(1))" % launch["debugServer"])
    done = subprocess.run(["/usr/bin/python3", "-c", code],
                          stdout=subprocess.PIPE, timeout=60, check=True)
    assert done.stdout == b"b''\n"
    with Editor(address=("127.0.0.1", launch["debugServer"])) as editor:
        editor.ask("initialize", adapterID="probing")
        editor.ask("attach", processId=process.pid)
        editor.leave()
    command.kill()
    assert b"a client of another user was refused" in command.communicate()[1]


def test_served(driven, newest, shared, clean):
    process = driven()
    with Service(process.pid) as service:
        with Editor("-t", service.address, "dap", env={"PROBING_AUTH_TOKEN": service.token}) as editor:
            editor.begin([FIRST])
            assert editor.stopped("breakpoint")[2] == FIRST
            editor.leave()
        clean(newest, process.pid, shared)


@pytest.mark.parametrize("data", [
    b"GET / HTTP/1.1\r\n\r\n", b"Content-Length: 99999999\r\n\r\n", b"x" * 5000, b"Content-Length: 2\r\n\r\n[]",
    b"Content-Length: 3\r\n\r\n{{{", b"Content-Length: -1\r\n\r\n", b"Content-Length: 60000\r\n\r\n" + b"[" * 60000,
    b"Content-Length: 17\r\n\r\n{\"a\":1,\"a\":\"\\ud8\"}",
])
def test_what_is_no_message(data, driven, shared):
    process = driven()
    done = subprocess.run([support.BINARY, "-t", str(process.pid), "dap"], input=data, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 1 and b"the client" in done.stderr and not done.stdout, done
    pauses.wait_until_runs(shared)


def test_strange_requests(driven, newest, shared, clean):
    """Wrong types, numbers out of range, requests that are not known."""
    process = driven()
    with Editor("-t", process.pid, "dap", "--within", "30s") as editor:
        assert "before the client has attached" in editor.fails("scopes", frameId=1)
        editor.begin([FIRST])
        editor.stopped("breakpoint")
        for command, arguments in (
                ("scopes", {"frameId": 99}), ("scopes", {"frameId": "x"}), ("variables", {"variablesReference": -1}),
                ("variables", {"variablesReference": 2 ** 62}), ("source", {"sourceReference": 7}), ("evaluate", {}),
                ("evaluate", {"expression": 5}), ("attach", {}), ("frobnicate", {}), ("restart", {})):
            assert editor.fails(command, **arguments)
        assert editor.ask("stackTrace", threadId=-5)["stackFrames"] == []
        assert editor.ask("setBreakpoints", source=7, breakpoints={"a": 1})["breakpoints"] == []
        told = editor.ask("setBreakpoints", source={"path": PATH}, breakpoints=[
            {"line": -1}, {"line": 2 ** 40}, {"line": FIRST, "condition": "a\nb"}, {"line": FIRST, "condition": "1 +"}, 5])
        assert [each["verified"] for each in told["breakpoints"]] == [False] * 5, told
        told = editor.ask("setBreakpoints", source={"path": PATH}, breakpoints=[{"line": 9999}])["breakpoints"]
        assert told[0]["verified"] is False and "no code" in told[0]["message"], told
        editor.leave()
    agent.wait_until(lambda: pauses.nobody_traced(process.pid))
    clean(newest, process.pid, shared)


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_what_the_prompt_binds(interpreter, driven, shared, clean):
    """It is shown from then on, in that function, where the module has the name as well; hovering runs no code."""
    process = driven(interpreter)
    with Editor("-t", process.pid, "dap", "--within", "30s") as editor:
        editor.begin([FIRST])
        tid = editor.stopped("breakpoint")[0]
        inner, outer = [each["id"] for each in editor.ask("stackTrace", threadId=tid)["stackFrames"]][:2]
        before = editor.ask("evaluate", expression="double", frameId=outer)["result"]
        assert "lambda" in before, before
        editor.ask("evaluate", expression="double = [1, 'ours']", frameId=inner, context="repl")
        for context in ("watch", "repl"):
            assert editor.ask("evaluate", expression="double", frameId=inner, context=context)["result"] == "[1, 'ours']"
        assert "bound at the prompt" in editor.fails("evaluate", expression="double[1]", frameId=inner, context="hover")
        assert editor.ask("evaluate", expression="batch", frameId=inner)["variablesReference"]  # read from outside
        assert editor.ask("evaluate", expression="double", frameId=outer)["result"] == before
        assert editor.ask("evaluate", expression="double")["result"] == before
        editor.leave()
    clean(interpreter, process.pid, shared)


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_variables_are_set(interpreter, driven, shared, clean):
    """Those of a function from 3.13 on; what cannot be set says so, and stays."""
    process = driven(interpreter)
    with Editor("-t", process.pid, "dap", "--within", "30s") as editor:
        editor.begin([FIRST])
        tid = editor.stopped("breakpoint")[0]
        frames = editor.ask("stackTrace", threadId=tid)["stackFrames"]
        local, module = editor.ask("scopes", frameId=frames[0]["id"])["scopes"]

        def put(scope, name, value):
            return editor.ask("setVariable", variablesReference=scope, name=name, value=value)

        def shown(scope, name):
            return editor.variables(scope)[name]["value"]

        local, module = local["variablesReference"], module["variablesReference"]
        batch = editor.variables(local)["batch"]
        if interpreter.version >= (3, 13):
            told = put(local, "batch", "[1, [2]] # two")
            assert told["value"] == "[1, [2]]" == shown(local, "batch"), told
            assert set(editor.variables(told["variablesReference"])) >= {"0", "1"}
        else:
            refused = editor.fails("setVariable", variablesReference=local, name="batch", value="[1]")
            assert "before Python 3.13" in refused and shown(local, "batch") == batch["value"], refused
        items = editor.variables(local)["batch"]["variablesReference"]
        assert put(items, "0", "7")["value"] == "7" == shown(items, "0")
        assert put(module, "fresh_one", "{'a': 1}")["value"] == "{'a': 1}" == shown(module, "fresh_one")
        frame = {"frameId": frames[0]["id"]}
        assert editor.ask("setExpression", expression="batch[0]", value="None", **frame)["value"] == "None"
        assert editor.ask("evaluate", expression="batch[0]", **frame)["result"] == "None"
        editor.ask("setExpression", expression="batch[:]", value="[1, 2]", **frame)  # what the program can add
        for scope, name, value, why in ((items, "0", "1 +", "SyntaxError"), (items, "nope nope", "1", "no expression"),
                                        (local, "batch", "nobody", "NameError"), (9999, "batch", "1", "has ended")):
            assert why in editor.fails("setVariable", variablesReference=scope, name=name, value=value)
        editor.leave()
    clean(interpreter, process.pid, shared)


@pytest.mark.parametrize("arguments", [{}, {"terminateDebuggee": True}, {"restart": True}], ids=repr)
def test_no_button_ends_the_process(arguments, driven, newest, shared, clean):
    process = driven()
    with Editor("-t", process.pid, "dap", "--within", "30s") as editor:
        told = editor.ask("initialize", adapterID="probing")
        assert told["supportsTerminateRequest"] is told["supportTerminateDebuggee"] is False, told
        editor.begin([FIRST])
        editor.stopped("breakpoint")
        assert editor.fails("terminate") and process.alive()
        editor.ask("disconnect", **arguments)
        assert editor.process.wait(SECONDS) == OK
    clean(newest, process.pid, shared)

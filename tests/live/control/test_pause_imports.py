# SPDX-License-Identifier: GPL-3.0-or-later
"""A pause while a thread imports: the agent needs no lock that the paused thread may hold, or says that it does."""
import pytest

import agent
import pauses
import support
from environment import OK, TIMEOUT
from test_debug_adapter import Editor
from test_debug_prompt import GIL, clean, typed  # noqa: F401 (fixtures)

PROGRAM = support.HERE / "programs" / "importing.py"
BESIDE = PROGRAM.read_text().splitlines().index("        shared[1] += 1") + 1
REFUSED = " s to import a module, while another thread of the process imports"


def wait_until_counts(shared):
    seen = shared[1]
    agent.wait_until(lambda: shared[1] > seen)


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_another_module(interpreter, target, shared):
    """All of a session works."""
    process = target(PROGRAM, shared.path, "not_to_be_found", "top", interpreter=interpreter)
    with Editor("-t", process.pid, "dap", "--within", "30s") as editor:
        editor.ask("initialize", adapterID="probing")
        editor.ask("attach")
        told = editor.ask("setBreakpoints", source={"path": str(PROGRAM)}, breakpoints=[{"line": BESIDE}])
        assert told["breakpoints"][0]["verified"], told
        editor.ask("setExceptionBreakpoints", filters=["uncaught"])
        editor.ask("configurationDone")
        tid, function, line = editor.stopped("breakpoint")
        assert (function, line) == ("beside", BESIDE)
        frame = editor.ask("stackTrace", threadId=tid)["stackFrames"][0]["id"]
        assert editor.ask("evaluate", expression="shared[0] + 7", frameId=frame, context="repl")["result"] == "7"
        assert "ZeroDivisionError" in editor.fails("evaluate", expression="1 / shared[0]", frameId=frame, context="repl")
        for wrong in ("nowhere + 1", "shared.nowhere", "1 +"):
            assert "Error" in editor.fails("evaluate", expression=wrong, frameId=frame, context="repl")
        editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "wait"}])
        editor.ask("setBreakpoints", source={"path": str(PROGRAM)}, breakpoints=[])
        editor.ask("next", threadId=tid)
        assert editor.stopped("step")[1:] == ("beside", BESIDE + 1)
        editor.leave()
    wait_until_counts(shared)


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_no_module_can_be_imported(interpreter, target, shared):
    """A finder waits, for which the import system holds the lock of all modules: breakpoints and exceptions need none."""
    process = target(PROGRAM, shared.path, "not_to_be_found", "later", interpreter=interpreter)
    with Editor("-t", process.pid, "dap", "--within", "30s") as editor:
        editor.ask("initialize", adapterID="probing")
        editor.ask("attach")
        editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "wait"}])
        editor.ask("configurationDone")
        shared[2] = 1
        tid, function, _ = editor.stopped("function breakpoint")
        assert function == "wait"
        frame = editor.ask("stackTrace", threadId=tid)["stackFrames"][0]["id"]
        for wrong in ("nowhere + 1", "shared.nowhere", "1 / shared[0]", "1 +"):
            assert "Error" in editor.fails("evaluate", expression=wrong, frameId=frame, context="repl")
        told = editor.ask("setBreakpoints", source={"path": str(PROGRAM)}, breakpoints=[{"line": BESIDE}])
        assert told["breakpoints"][0]["verified"], told
        editor.ask("setExceptionBreakpoints", filters=["raised"])
        editor.ask("continue", threadId=tid)
        assert editor.stopped("breakpoint")[1:] == ("beside", BESIDE)
        editor.leave()
    wait_until_counts(shared)


@pytest.mark.parametrize("interpreter", [GIL[0], GIL[-1]], ids=repr)
def test_code_that_waits_for_the_import(interpreter, target, shared):
    """What was typed is left when the client disconnects, what was not is by itself: the process runs on."""
    process = target(PROGRAM, shared.path, "not_to_be_found", "top", interpreter=interpreter)
    with Editor("-t", process.pid, "dap", "--within", "30s") as editor:
        editor.begin(stopOnEntry=True)
        tid = editor.event("stopped")["threadId"]
        frame = editor.ask("stackTrace", threadId=tid)["stackFrames"][0]["id"]
        editor.send("evaluate", expression="import not_to_be_found", frameId=frame, context="repl")
        while True:
            said = editor.event("output")
            if said["category"] == "important":
                break
        assert "still running" in said["output"] and shared[1] == pauses.total(shared), said
        editor.send("disconnect")
        editor.process.stdin.close()
        assert editor.process.wait(60) == OK
    wait_until_counts(shared)
    shared[0] = 1


def test_a_disconnect_beside_code_that_does_not_end(target, shared):
    """Both arrive at once, so nothing more comes while the code runs."""
    process = target(PROGRAM, shared.path, "not_to_be_found", "top", interpreter=GIL[-1])
    with Editor("-t", process.pid, "dap", "--within", "30s") as editor:
        editor.begin(stopOnEntry=True)
        tid = editor.event("stopped")["threadId"]
        frame = editor.ask("stackTrace", threadId=tid)["stackFrames"][0]["id"]
        code = editor.packet("evaluate", expression="import not_to_be_found", frameId=frame, context="repl")
        editor.writes.write(code + editor.packet("disconnect"))
        editor.writes.flush()
        assert editor.process.wait(60) == OK
    wait_until_counts(shared)
    shared[0] = 1


@pytest.mark.parametrize("module, where", [("dis", "top"), ("traceback", "top"), ("opcode", "finder"), ("ast", "top"),
                                           ("tokenize", "top"), ("codeop", "top"), ("not_to_be_found", "finder")])
@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_a_module_that_the_agent_needs(module, where, interpreter, target, shared, probing, clean):
    process = target(PROGRAM, shared.path, module, where, interpreter=interpreter)
    refused = probing(process.pid, "break", "importing.py:%d" % BESIDE, "--within", "5s")
    assert refused.code == TIMEOUT and REFUSED in refused.err, refused
    assert "(MainThread)" in refused.err and "importing.py" in refused.err, refused
    wait_until_counts(shared)
    shared[0] = 1
    text = typed(process.pid, "b importing.py:%d" % BESIDE, "c", "p shared[0] + 6", "q")
    assert "in beside at importing.py:%d" % BESIDE in text and "\n7\n" in text, text
    wait_until_counts(shared)

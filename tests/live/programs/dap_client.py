# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of the Debug Adapter Protocol by the package dap-python, which checks each answer and event by the schema
of the protocol: PORT PID FILE, and as JSON the lines of driven.py."""
import json
import socket
import sys

from dap import Client
from dap.base import ErrorResponse
from dap.events import BreakpointEvent, InitializedEvent, OutputEvent, StoppedEvent
from dap.types import FunctionBreakpoint, Source, SourceBreakpoint

port, pid, path, lines = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])
wire = socket.create_connection(("127.0.0.1", port), 120)
client = Client("probing")
seen = []
# Answers that need no body, which the library reads as whole messages.
ACKNOWLEDGED = ("attach", "configurationDone", "disconnect", "next", "pause", "setExceptionBreakpoints", "stepIn", "stepOut")


def answered(response, read=client.handler.handle_response):
    if response.success and response.command in ACKNOWLEDGED:
        del client._pending_requests[response.request_seq]
        return response
    return read(response)


def happened(message, read=client.handler.handle_event):
    if message.event == "stopped":  # numbers, by the protocol
        message.body["hitBreakpointIds"] = [str(each) for each in message.body.get("hitBreakpointIds", ())]
    return read(message)


client.handler.handle_response, client.handler.handle_event = answered, happened


def ask(number):
    """The answer, of which the library has made what its request has."""
    wire.sendall(client.send())
    while number in client._pending_requests:
        for message in client.receive(wire.recv(65536)):
            seen.append(message)
    answer = next(each for each in reversed(seen) if not is_event(each))
    seen.remove(answer)
    return answer


def is_event(message):
    return isinstance(message, (BreakpointEvent, InitializedEvent, OutputEvent, StoppedEvent)) or \
        type(message).__name__.endswith("Event")


def event(kind):
    while True:
        for message in seen:
            if isinstance(message, kind):
                seen.remove(message)
                return message
        wire.sendall(client.send())
        seen.extend(client.receive(wire.recv(65536)))


def fails(number):
    answer = ask(number)
    assert isinstance(answer, ErrorResponse), answer
    return answer.message


def top(stop):
    return ask(client.stack_trace(stop.threadId)).stackFrames[0]


def stopped(reason, function, line=None):
    stop = event(StoppedEvent)
    frame = top(stop)
    assert (stop.reason, frame.name.rpartition(".")[2]) == (reason, function), (stop, frame)
    assert line in (None, frame.line), frame
    assert stop.allThreadsStopped
    return stop, frame


def plain(made):
    return made.model_dump(exclude_none=True)


def breaks(*wanted):
    told = ask(client.set_breakpoints(
        plain(Source(path=path)), [plain(SourceBreakpoint(**each)) for each in wanted])).breakpoints
    assert all(each.verified for each in told), told
    return told


capabilities = ask(1)
assert capabilities.supportsConditionalBreakpoints and capabilities.supportsHitConditionalBreakpoints
assert capabilities.supportsLogPoints and capabilities.exceptionBreakpointFilters
ask(client.send_request("attach", {"processId": pid}))
event(InitializedEvent)
told = breaks({"line": lines["total = 0"], "condition": "self.calls % 2 == 1"})
assert told[0].line == lines["total = 0"] and told[0].id, told
ask(client.set_exception_breakpoints([], None, None))
ask(client.configuration_done())

# A condition; variables, by pages too; expressions; what must not be changed.
stop, frame = stopped("breakpoint", "forward", lines["total = 0"])
assert stop.hitBreakpointIds == [str(told[0].id)], stop
names = {each.name for each in ask(client.threads()).threads}
assert names == {"MainThread", "beside"}, names
scopes = ask(client.scopes(frame.id)).scopes
local = {each.name: each for each in ask(client.variables(scopes[0].variablesReference)).variables}
assert set(local) == {"self", "batch"} and local["batch"].type == "list", local
assert ask(client.evaluate("self.calls % 2", frame.id)).result == "1"
assert ask(client.evaluate("list(range(1000))", frame.id, context="repl")).result.startswith("[0, 1, 2")
globals_ = scopes[1].variablesReference
whole = [each.name for each in ask(client.variables(globals_)).variables]
paged = [each.name for start in range(0, len(whole), 5)
         for each in ask(client.variables(globals_, start=start, count=5)).variables]
assert paged == whole and len(whole) > 10, (paged, whole)
assert ask(client.set_variable(scopes[1].variablesReference, "set_by_client", "[1]")).value == "[1]"
assert "SyntaxError" in fails(client.set_variable(scopes[1].variablesReference, "set_by_client", "1 +"))
assert "NameError" in fails(client.evaluate("nothing_there", frame.id, context="repl"))
assert "self" in [each.label for each in ask(client.completions("sel", 4, frame.id)).targets]

# Steps: over, in, out.
ask(client.next(stop.threadId))
stopped("step", "forward", lines["for x in batch:"])
ask(client.step_in(stop.threadId))
stopped("step", "forward", lines["total += x"])
ask(client.step_out(stop.threadId))
stopped("step", "turn", lines["both = double(loss)"])
breaks()
ask(client.step_in(stop.threadId))
stopped("step", "<lambda>")

# A hit count, a logpoint, a function.
breaks({"line": lines["self.calls += 1"], "hitCondition": "3"},
       {"line": lines["total += x"], "logMessage": "x={x} calls={self.calls}"})
ask(client.continue_(stop.threadId))
stop, frame = stopped("breakpoint", "forward", lines["self.calls += 1"])
said = [event(OutputEvent).output for _ in range(6)]
assert all(each.startswith("x=") and " calls=" in each for each in said), said
breaks()
told = ask(client.set_function_breakpoints([plain(FunctionBreakpoint(name="one_line"))])).breakpoints
assert len(told) == 1, told
ask(client.continue_(stop.threadId))
stop, _ = stopped("function breakpoint", "one_line")
ask(client.set_function_breakpoints([]))

# Exceptions, where the interpreter tells of them.
if sys.argv[5] == "exceptions":
    ask(client.set_exception_breakpoints(["raised"], None, None))
    ask(client.continue_(stop.threadId))
    raised = event(StoppedEvent)
    assert raised.reason == "exception" and "Error: " in raised.text, raised
    ask(client.set_exception_breakpoints([], None, None))

# It runs, is paused, and runs on without us.
ask(client.continue_(stop.threadId))
ask(client.pause(stop.threadId))
assert event(StoppedEvent).reason == "pause"
ask(client.disconnect())
print("done")

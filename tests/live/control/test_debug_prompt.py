# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing debug`: a prompt like pdb's, on a live process, a core file and a snapshot; `probing break`."""
import json
import re
import signal
import subprocess

import pytest

import agent
import pauses
import support
from environment import NO_PROCESS, OK, UNSUPPORTED, USAGE
from remote import Service
from tables import core_of
from terminal import Terminal
from test_step import ALL, MONITORED, ONES
from test_break_py import TRACED

PROGRAM = support.HERE / "programs" / "driven.py"
AWAITS = PROGRAM.with_name("awaits.py")
LINES = {line.strip(): number for number, line in enumerate(PROGRAM.read_text().splitlines(), 1)}
FIRST, LOOP, ADD = LINES["total = 0"], LINES["for x in batch:"], LINES["total += x"]
GIL = [each for each in ONES if not each.free_threaded]
NEW = [each for each in GIL if each.version >= (3, 12)]


@pytest.fixture
def driven(target, shared):
    return lambda interpreter=None: target("driven.py", shared.path, **(
        {"interpreter": interpreter} if interpreter else {}))


def typed(pid, *lines, code=OK, options=()):
    """What the prompt prints for lines on its stdin."""
    done = subprocess.run([support.BINARY, "-t", str(pid), "debug", "--within", "30s", *options],
                          input="\n".join(lines) + "\n", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", timeout=300, check=False)
    assert done.returncode == code, done
    return done.stdout


def places(text):
    """[(function, line)] of the stops."""
    return [(function, int(line)) for function, line in
            re.findall(r"^(?:breakpoint \d+: )?(?:#\d+  )?\S+ \(\d+\) in (\S+) at driven\.py:(\d+)$", text, re.M)]


@pytest.fixture
def clean(probing):
    """The program runs, and nothing of ours is left in the interpreter."""
    def clean(interpreter, pid, shared):
        pauses.wait_until_runs(shared)
        code = TRACED if interpreter.version < (3, 12) else MONITORED
        done = probing(pid, "eval", code)
        assert (done.code, done.out) == (OK, "[]\n"), done
        agent.wait_until(lambda: pauses.nobody_traced(pid))

    return clean


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_breaks_and_steps(interpreter, driven, shared, clean):
    process = driven(interpreter)
    text = typed(process.pid, "b Net.forward", "c", "n", "n", "s", "b %d" % ADD, "c", "r", "c", "until", "q")
    assert [place for place in places(text)][1:] == [
        ("Net.forward", FIRST), ("Net.forward", LOOP), ("Net.forward", ADD), ("Net.forward", LOOP),
        ("Net.forward", ADD), ("turn", LINES["both = double(loss)"]), ("Net.forward", FIRST),
        ("Net.forward", LOOP)], text
    clean(interpreter, process.pid, shared)


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_step_into_what_breakpoints_have_seen(interpreter, driven, shared, clean):
    """The breakpoints were asked of functions that the step, which is alone by then, has to stop in."""
    process = driven(interpreter)
    text = typed(process.pid, "b %d" % LINES["both = double(loss)"], "c", "c", "cl", "s", "q")
    assert places(text)[-1] == ("<lambda>", LINES["double = lambda value: value * 2  # noqa: E731"]), text
    clean(interpreter, process.pid, shared)


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_functions_of_one_name(interpreter, driven, shared, clean):
    """A breakpoint at a bare name is in every function of that name; a qualified name is that of one function."""
    process = driven(interpreter)
    own = LINES["return number + 1"]
    other = 'import sys; exec("class Other:\\n    def turn(self): pass", vars(sys))'
    text = typed(process.pid, other, "tbreak turn", "c", "b forward", *["c", "n"] * 8, "b", "q")
    assert re.search(r"^breakpoint 1 at .*driven\.py:%d, once in turn$" % LINES["loss = net.forward(list(items(k)))"],
                     text, re.M), text
    said = r"breakpoint 2 at 2 places: .*driven\.py:%d, .*driven\.py:%d" % (FIRST, own)
    assert len(re.findall(said + r".* in Net\.forward, Ticks\.forward", text)) == 2 or interpreter.version < (3, 11), text
    assert len(re.findall(said, text)) == 2, text
    assert {("Net.forward", FIRST), ("Ticks.forward", own)} <= set(places(text)), text
    clean(interpreter, process.pid, shared)


def line_of(text, program=PROGRAM.with_name("contexts.py")):
    return next(number for number, line in enumerate(program.read_text().splitlines(), 1) if text in line)


@pytest.mark.parametrize("interpreter", [each for each in GIL if each.version >= (3, 7)], ids=repr)
def test_context_variables(interpreter, target):
    """Python runs with those of the selected thread, as the proxies of web frameworks need it."""
    process = target("contexts.py", interpreter=interpreter)
    beside = next(tid for tid in support.thread_ids(process.pid) if tid != process.pid)
    text = typed(process.pid, "b contexts.py:%d" % line_of("beside = request"), "c", "p 'thread ' + request.get()",
                 "cl", "b contexts.py:%d, number == 2" % line_of("task = number"), "c", "request.set('ours')",
                 "p 'task ' + request.get()", "p asyncio.current_task().get_coro().cr_frame.f_locals['number']",
                 "p asyncio.get_running_loop() is asyncio.current_task().get_loop()", "thread %d" % beside, "p asyncio.get_running_loop()", "q")
    assert "\n2\n" in text and "\nTrue\n" in text and text.count("no running event loop") == 1, text
    assert "\n'thread of the thread'\n" in text and "\n'task of task 2'\n" in text, text
    assert "setting the context variable request has no effect in its thread" in text, text
    assert process.alive() and not process.errors()


@pytest.mark.parametrize("interpreter", [each for each in GIL if each.version >= (3, 6)], ids=repr)
def test_steps_over_an_await(interpreter, target):
    """`next`, `return` and `until` stay with their task, however often others run while it waits."""
    whole, loop, total = (line_of(text, AWAITS) for text in ("await part", "async for each", "whole +="))
    part, each = (line_of(text, AWAITS) for text in ("return number", "yield number"))
    process = target("awaits.py", interpreter=interpreter)
    text = typed(process.pid, "tbreak awaits.py:%d, number == 2" % whole, "c", "n", "n", "n", "until", "n", "p number, each, whole",
                 "tbreak awaits.py:%d, number == 3" % (part - 1), "c", "n", "r", "p number",
                 "tbreak awaits.py:%d, number == 1" % (each - 1), "c", "n", "n", "p number", "q")
    assert [int(line) for line in re.findall(r" at awaits\.py:(\d+)$", text, re.M)] == [
        whole, loop, total, loop, total, loop, part - 1, part, loop, each - 1, each, total], text
    assert "\n(2, 3, 25)\n" in text and "\n3\n" in text and "\n1\n" in text, text
    assert process.alive() and not process.errors()


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_names_that_the_prompt_binds(interpreter, driven, shared, clean, probing):
    """Like pdb's: they are not the module's, and later code in that function sees them; `global` sets the
    module's."""
    process = driven(interpreter)
    text = typed(process.pid, "b Net.forward", "c", "!double = [double, 'ours']", "!double[1] += '!'", "p double[1]",
                 "!for items in range(3): pass", "p items", "!import json as one_line", "p one_line.__name__",
                 "!def fails(k): return double[1], items, k", "p fails('k')", "!from os.path import *",
                 "p basename('a/base')", "!fresh = 7; del double", "c", "p fresh, items, [items for _ in 'a']", "up",
                 "p double(4)", "p fresh", "!global told; told = 5", "p told", "q")
    for said in ("'ours!'", "2", "'json'", "('ours!', 2, 'k')", "'base'", "(7, 2, [2])", "8", "5"):
        assert "\n%s\n" % said in text, (said, text)
    assert text.count("double is now a variable of this prompt") == 1, text
    assert text.count("Error") == text.count("*** NameError: name 'fresh' is not defined") == 1, text
    done = probing(process.pid, "eval", "double(4), items, one_line(0), fails, told, 'fresh' in globals(), "
                                        "'basename' in globals()")
    assert re.match(r"\(8, <function items at \w+>, 1, <function fails at \w+>, 5, False, False\)$", done.out), done
    clean(interpreter, process.pid, shared)


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_looks(interpreter, driven, shared, clean):
    process = driven(interpreter)
    text = typed(process.pid, "b Net.forward", "c", "w", "args", "p batch[0] + 1 - batch[0]", "p self.missing",
                 "pp vars(self).keys()", "up", "p k", "down", "l", "threads", "!import os; print(os.getpid())")
    stack = re.findall(r"^[> ] #\d +(\S+) ", text, re.M)
    assert stack == ["Net.forward", "turn", "main", "<module>"], text
    assert re.search(r"^self = <__main__\.Net calls=\d+>\nbatch = \[\d+, \d+\]$", text, re.M), text
    assert "\n1\n*** AttributeError: 'Net' object has no attribute 'missing'\ndict_keys(['calls'])\n" in text
    assert "\n->%5d          total = 0\n" % FIRST in text and " beside  beside" in text
    assert "\n%d\n" % process.pid in text
    clean(interpreter, process.pid, shared)


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_kinds_of_breakpoints(interpreter, driven, shared, clean):
    """One-shot, conditions, ignored times, disabled ones, a generator, a lambda by its line."""
    process = driven(interpreter)
    first, second = LINES["yield k"], LINES["double = lambda value: value * 2  # noqa: E731"]
    text = typed(process.pid, "tbreak %s:%d" % (PROGRAM, first), "c", "b driven.py:%d" % second, "c", "p value * 0",
                 "clear", "b Net.forward, self.calls % 10 == 3", "c", "p self.calls % 10", "ignore 3 4", "c",
                 "p self.calls % 10", "b", "b fails if k.nope", "disable 3", "c", "clear 4", "condition 3",
                 "enable 3", "c", "b")
    found = places(text)[1:]
    assert found == [("items", first), ("<lambda>", second), ("Net.forward", FIRST), ("Net.forward", FIRST),
                     ("fails", LINES["raise KeyError(k)"]), ("Net.forward", FIRST)] or found == [
        ("items", first), ("<lambda>", second), ("Net.forward", FIRST), ("Net.forward", FIRST),
        ("fails", LINES["raise KeyError(k)"] - 1), ("Net.forward", FIRST)], text
    assert text.count("\n3\n") == 2 and "'int' object has no attribute 'nope'" in text, text
    assert "self.calls % 10 == 3 in Net.forward; reached 2 times" in text or \
        "self.calls % 10 == 3 in forward; reached 2 times" in text, text
    clean(interpreter, process.pid, shared)


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_an_exception_on_request(interpreter, driven, shared, clean):
    """It is handled as any other, at a breakpoint and where a step has ended."""
    process, handler = driven(interpreter), LINES["except ValueError:"]
    text = typed(process.pid, "raise ValueError", "b fails", "c", "raise k", "raise ValueError(k)", "clear", "r",
                 "b driven.py:%d" % LINES["both = double(loss)"], "c", "clear", "until %d" % LINES["fails(both)"],
                 "raise ValueError", "n", "return 5", "q")
    assert "the thread is not stopped at a line" in text and "int is no exception" in text, text
    assert "no way to make a running function return another value" in text, text
    assert places(text)[2] == places(text)[-1] == ("turn", handler), text
    clean(interpreter, process.pid, shared)


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_exceptions(interpreter, driven, shared, clean):
    process = driven(interpreter)
    text = typed(process.pid, "catch ValueErorr", "clear", "catch ValueError", "c", "clear", "catch uncaught",
                 "catch LookupError", "c", "clear", "b one_line", "c")
    assert text.count("of which no class was found so far") == text.count("ValueErorr, of which no class") == 1, text
    raised = LINES["raise ValueError(k)"]
    assert places(text)[1:3] == [("fails", raised), ("fails", LINES["raise KeyError(k)"])], text
    assert re.search(r"^breakpoint 2: ValueError: \d+$", text, re.M), text
    clean(interpreter, process.pid, shared)


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_what_is_not_handled(interpreter, target):
    """The process stops at each exception that ends a thread, and at no other."""
    program = PROGRAM.with_name("raises.py").read_text()
    process = target("raises.py", interpreter=interpreter)
    unhandled = re.findall(r"^%sdef (u_\w+)" % (" *" if interpreter.version >= (3, 11) else ""), program, re.M)
    text = typed(process.pid, "catch uncaught", *["c"] * len(unhandled), "q")
    found = re.findall(r"^(?!MainThread)(\w+) \(\d+\) in \S+ at raises\.py:\d+$", text, re.M)
    assert sorted(found) == sorted(unhandled), text
    assert process.alive()


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_loop_on_one_line(interpreter, driven, shared):
    """Each turn of it is a step, as sys.settrace() has it."""
    line = LINES["for i in range(2): k += i  # noqa: E701"]
    text = typed(driven(interpreter).pid, "b one_line", "c", "n", "p i", "n", "p i", "n")
    assert places(text)[1:] == [("one_line", line)] * 3 + [("one_line", line + 1)], text
    assert "\n0\n" in text and "\n1\n" in text, text


def test_commands_and_python(driven, newest, shared, clean):
    process = driven()
    text = typed(process.pid, "b Net.forward", "commands", "p 'reached'", "w", "end", "c", "interact",
                 "for each in range(2):", "    print('turn', each, len(batch))", "", "exit", "p 1 +", "nope()", "jump 3",
                 "p (_ for _ in ()).throw(ValueError('one\\n\\n two'))",
                 "c = 5", "frame 99", "thread 1", "b nowhere.py:x", "b driven.py:11")
    assert "\n'reached'\n> #0 " in text and "turn 0 2\nturn 1 2\n" in text, text
    assert "\n*** ValueError: one\n two\n" in text, text
    assert "*** SyntaxError: " in text and "NameError: name 'nope' is not defined" in text, text
    for error in ("the outermost frame is #3", "there is no thread 1", "no function x of nowhere.py was found",
                  "line 11 of"):
        assert error in text.replace("no function x was found", "no function x of nowhere.py was found"), (error, text)
    clean(newest, process.pid, shared)


def test_continue_is_interrupted(driven, newest, shared, tmp_path, clean):
    process = driven()
    with Terminal("-t", process.pid, "debug", HOME=str(tmp_path), XDG_STATE_HOME="", TERM="dumb",
                  INPUTRC="/dev/null") as terminal:
        terminal.until("(probing) ")
        terminal.send("c\r")
        terminal.until("c\r\n")
        pauses.wait_until_runs(shared)
        terminal.send("\x03")
        assert "driven.py" in terminal.until("(probing) ")
        terminal.send("b Net.for\t")
        terminal.until("b Net.forward")
        terminal.send("\r")
        assert "breakpoint 1 at" in terminal.until("(probing) ")
        terminal.send("c\r")
        assert "in Net.forward at driven.py:%d" % FIRST in terminal.until("(probing) ")
        terminal.send("p sel\t")
        terminal.until("p self")
        terminal.send(".calls * 0\r")
        assert "\n0\n" in terminal.until("(probing) ")
        terminal.send("\r")  # the last line again
        assert "0\n" in terminal.until("(probing) ")
        terminal.send("\x04")
        assert terminal.end()[1] == OK
    clean(newest, process.pid, shared)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_killed(how, driven, shared, tmp_path, newest, clean):
    """The program runs on, and removes the breakpoints itself."""
    process = driven()
    with Terminal("-t", process.pid, "debug", HOME=str(tmp_path), XDG_STATE_HOME="", TERM="dumb",
                  INPUTRC="/dev/null") as terminal:
        terminal.until("(probing) ")
        for line in ("b Net.forward", "c"):
            terminal.send(line + "\r")
            terminal.until("(probing) ")
        terminal.process.send_signal(how)
        terminal.process.wait(60)
    clean(newest, process.pid, shared)


def test_another_client(driven, shared, probing):
    """Code and steps of other shells work while the prompt waits; 'resume' ends it."""
    process = driven()
    prompt = subprocess.Popen([support.BINARY, "-t", str(process.pid), "debug"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    prompt.stdout.readline()
    done = probing(process.pid, "eval", "6 * 7")
    assert (done.code, done.out) == (OK, "42\n"), done
    assert probing(process.pid, "step").code == OK
    assert probing(process.pid, "resume").code == OK
    prompt.wait(60)  # before its input ends
    out, err = prompt.communicate()
    assert b"its pause was ended" in err and prompt.returncode == OK, (out, err)
    pauses.wait_until_runs(shared)


def test_the_process_ends(driven):
    process = driven()
    text = typed(process.pid, "b fails", "c", "!import os; os.kill(os.getpid(), 9)", "n", "w", code=NO_PROCESS)
    assert re.search("process %d (has ended|closed the connection)" % process.pid, text), text


def test_limit(driven, shared):
    process = driven()
    prompt = subprocess.Popen([support.BINARY, "-t", str(process.pid), "debug", "--max", "1s"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    prompt.wait(60)
    assert b"--max" in prompt.communicate()[1]
    pauses.wait_until_runs(shared)


@pytest.mark.parametrize("kind", ["core", "snapshot"])
def test_post_mortem(kind, driven, tmp_path, probing, newest):
    process = driven()
    if kind == "core":
        file = core_of(process.pid, tmp_path)
    else:
        file = tmp_path / "it.snapshot"
        assert probing(process.pid, "snapshot", "-o", file).code == OK
    text = typed(file, "w", "frame 0", "threads", "p 1", "up", "p nope", "l", "b main", "c", "interact", "q")
    assert "beside" in text and "#0" in text, text
    assert ("other lines of the source cannot be read" in text) == (kind == "snapshot"), text
    for word in ("break", "continue", "interact"):
        assert "'%s' needs a process, and this is a %s: it can only be read" % (word, {
            "core": "core file"}.get(kind, kind)) in text, text


def test_served(driven, newest, shared, tmp_path, clean):
    process = driven()
    with Service(process.pid) as service:
        with Terminal("-t", service.address, "debug", HOME=str(tmp_path), XDG_STATE_HOME="", TERM="dumb",
                      INPUTRC="/dev/null", PROBING_AUTH_TOKEN=service.token) as terminal:
            terminal.until("(probing) ")
            for line, answer in (("b Net.forward", "breakpoint 1 at"), ("c", "Net.forward at driven.py:%d" % FIRST),
                                 ("n", "driven.py:%d" % LOOP), ("", "driven.py:%d" % ADD), ("p x * 0", "\n0\n")):
                terminal.send(line + "\r")
                assert answer in terminal.until("(probing) "), line
            terminal.send("q\r")
            assert terminal.end()[1] == OK
        clean(newest, process.pid, shared)


@pytest.mark.parametrize("interpreter", GIL, ids=repr)
def test_break(interpreter, driven, shared, probing, clean):
    """It pauses the process at the line, says so, and others can look there."""
    process = driven(interpreter)
    command = subprocess.Popen(
        [support.BINARY, "-t", str(process.pid), "break", "driven.py:%d" % ADD, "if", "x % 2", "--json", "--within", "30s"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    told = json.loads(command.stdout.readline().decode())
    assert (told["func"], told["line"]) == ("forward", ADD), told
    done = probing(process.pid, "eval", "--frame", "0", "x % 2")
    assert (done.code, done.out) == (OK, "1\n"), done
    assert probing(process.pid, "step", "--over").code == OK
    command.send_signal(signal.SIGINT)
    out, err = command.communicate(timeout=60)
    assert command.returncode == OK and not out, (out, err)
    clean(interpreter, process.pid, shared)


@pytest.mark.parametrize("words, code, text", [
    ((), USAGE, "where is the target to stop?"),
    (("22",), USAGE, "a line needs its file"),
    (("driven.py:11",), UNSUPPORTED, "has no code that can be reached"),
    (("driven.py:22", "if", "1 +"), UNSUPPORTED, "is no expression"),
    (("driven.py:22", "if 1 +"), UNSUPPORTED, "is no expression"),
    (("driven.py:22", "if", "1", "+"), UNSUPPORTED, "is no expression"),
    (("driven.py:22", "when", "x"), USAGE, "where is the target to stop?"),
    (("no_such_function",), UNSUPPORTED, "no function no_such_function was found"),
    (("--uncaught",), USAGE, "where is the target to stop?"),
])
def test_break_refuses(words, code, text, driven, probing, shared):
    process = driven()
    done = probing(process.pid, "break", *words)
    assert done.code == code and text in done.err, done
    pauses.wait_until_runs(shared)

# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing repl` on terminals and pipes: editing, history, blocks, Tab, Ctrl-C, several at once,
leftovers, clients that die; and the same at the level of the protocol."""
import json
import os
import re
import subprocess

import pytest

import agent
import support
from agent import Client, wait_until
from environment import FAILED, NO_PROCESS, OK, TIMEOUT, USAGE
from terminal import Terminal, environment

SIX = [i for i in support.INTERPRETERS if i.name in (
    "pyenv-3.6.15", "pyenv-3.8.18", "system-3.11", "pyenv-3.12.1", "built-3.13t", "debian-3.14")]
on_six = pytest.mark.parametrize("interpreter", SIX, ids=repr)


class Prompt(Terminal):
    """A prompt in a process, past its greeting."""

    def __init__(self, process, tmp_path, *words, **variables):
        super().__init__("-p", process.pid, "repl", *words, INPUTRC="/dev/null",
                         **{"HOME": str(tmp_path), "XDG_STATE_HOME": "", "TERM": "dumb",
                            **variables})
        self.first, self.more = "%d >>> " % process.pid, "%s ... " % (" " * len(str(process.pid)))
        self.greeting = self.until(self.first)

    def enter(self, line, until=None):
        """The output of a line."""
        self.send(line + "\r")
        self.until(line[-12:])
        return self.until(until or self.first).lstrip("\n")

    def leave(self, how="\x04"):
        self.send(how)
        rest, code = self.end()
        assert code == OK, (rest, code)
        return rest


def pipe(process, text, *words, **options):
    return subprocess.run([support.BINARY, "-p", str(process.pid), "repl", *words],
                          input=text if isinstance(text, bytes) else text.encode(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=False,
                          env=environment(), **options)


# On every interpreter, by a pipe: a statement and its output

SCRIPT = """\
1 + 1
_ * 10
[_ + x for x in range(2)]
def f(x):
    return x * 2

f(4)
for i in range(3):
    i
print("after a block")
x = (1,
  2)
x
1 / 0
f(_)
None
_
"text"
if x:
    print("yes")
else:
    print("no")

(lambda: _)()
import sys
_ = 5
_ + 1
del _
_
class A:
    def m(self):
        return 7

A().m()
exit = 3
exit
del exit
sys.exit
from __future__ import barry_as_FLUFL
1 <> 2
def unfinished():
    return 9
unfinished()"""
SCRIPT_PRINTS = """\
2
20
[20, 21]
8
0
1
2
after a block
(1, 2)
(1, 2, 1, 2)
(1, 2, 1, 2)
'text'
yes
'text'
6
6
7
3
<built-in function exit>
True
9
"""


def test_statements(interpreter, target):
    process = target("evaluated.py", "idle", interpreter=interpreter)
    done = pipe(process, SCRIPT)
    assert done.returncode == OK and done.stdout.decode() == SCRIPT_PRINTS, done
    error = done.stderr.decode()
    assert re.fullmatch(r'Traceback \(most recent call last\):\n  File "<probing-\d+>", line 1, '
                        r'in <module>\n    1 / 0\n(?:    ~~\^~~\n)?'
                        r'ZeroDivisionError: division by zero\n', error), error
    # The session is over: so is its future, and its `_`.
    done = pipe(process, "1 <> 2\n_\nunfinished()\n")
    assert done.stdout == b"9\n" and b"SyntaxError" in done.stderr, done
    assert b"NameError: name '_' is not defined" in done.stderr and b"codeop" not in done.stderr


def test_nothing_is_left(interpreter, target, probing):
    """The program's names, hooks, streams and caches are unchanged."""
    process = target("evaluated.py", "idle", interpreter=interpreter)
    code = ("import sys, builtins, json; print(json.dumps([sorted(vars(sys.modules['__main__'])), "
            "sorted(vars(builtins)), [repr(getattr(sys, n)) for n in ('stdin', '__stdout__', "
            "'__stderr__', '__displayhook__', 'excepthook')], "
            "[n for n in dir(sys) if n.startswith('last_')], "
            "len(threading._active), "
            "[n for n in getattr(sys.modules.get('linecache'), 'cache', {}) if 'probing' in n]]))")
    first = probing(process.pid, "eval", "import traceback, sys, builtins, json")
    assert first.code == OK, first
    before = json.loads(probing(process.pid, "eval", code).out)
    done = pipe(process, "1\n_\n1/0\nimport threading as typed\ntyped.current_thread()\n"
                         "input()\nraise KeyboardInterrupt\nx y\nexit()\nprint('not run')\n")
    assert done.returncode == OK and b"not run" not in done.stdout, done
    wait_until(lambda: agent.ours(process.pid) == ["probing-agent"])
    after = json.loads(probing(process.pid, "eval", code).out)
    assert "typed" in after[0]
    after[0].remove("typed")
    after[5] = [name for name in after[5] if name not in before[5]][1:]  # of this evaluation
    before[5] = []
    assert after == before
    process.send(b"x")
    assert process.line() == "awake"


@on_six
def test_input_is_not_the_programs(interpreter, target):
    process = target("evaluated.py", "idle", interpreter=interpreter)
    done = pipe(process, "input('name? ')\nimport sys\nsys.stdin.readline()\n"
                         "for line in sys.stdin: pass\n\nsys.stdin.buffer.read()\nsys.stdin.close()\n"
                         "help()\nhelp(len)\nprint('alive')\nimport pdb; pdb.set_trace()\nexit()\n")
    assert done.returncode == OK, done
    errors = done.stderr.decode()
    assert errors.count("EOFError: stdin is the program's own") == 4, errors
    assert "built-in function len" in done.stdout.decode() and b"\nalive\n" in done.stdout, done
    process.send(b"x")
    assert process.line() == "awake"


# Names that __main__ does not have

def test_modules_without_an_import(interpreter, target):
    process = target("variables.py", interpreter=interpreter)
    done = pipe(process, "models = [m for m in gc.get_objects() if isinstance(m, Batch)]\nlen(models)\n"
                         "os.getpid() == sys.modules['os'].getpid()\nthreading.main_thread().name\n"
                         "asyncio.__name__\n__main__.epoch\ndel models\n'gc' in globals(), 'loss' in globals()\n"
                         "torch\ngc = 5\ngc\ndel gc\n")
    assert done.stdout.decode() == "1\nTrue\n'MainThread'\n'asyncio'\n'global'\n(False, False)\n5\n", done
    assert done.stderr.decode().endswith("NameError: name 'torch' is not defined\n"), done


def test_variables_of_running_functions(interpreter, target):
    process = target("variables.py", interpreter=interpreter)
    done = pipe(process, "loss * 2 + loss\nwithin\nepoch\n[batch is batch for i in range(2)]\n"
                         "def f():\n    return loss\n\nf()\n")
    assert done.stdout.decode() == "0.75\n'wait'\n'global'\n[True, True]\n0.25\n", done
    where = " is that of train() variables.py:21 (frame 1)\n"
    assert done.stderr.decode() == "loss%swithin is that of wait() variables.py:14 (frame 0)\nbatch%sloss%s" % (
        where, where, where)
    # Nothing of them is kept.
    process.send(b"x")
    assert process.line() == "dropped"


def test_name_errors_say_where_the_name_is(interpreter, target, probing):
    process = target("variables.py", interpreter=interpreter)
    end = "NameError: name 'loss' is not defined\nloss is a variable of train() variables.py:21 (frame 1): " \
        "'print loss@train' reads it\n"
    done = pipe(process, "loss = loss + 1\neval('loss')\n")
    assert done.stderr.decode().count(end) == 2, done
    done = probing(process.pid, "eval", "loss")
    assert done.code == FAILED and done.err.endswith(end), done
    done = probing(process.pid, "eval", "nowhere")
    assert done.err.endswith("NameError: name 'nowhere' is not defined\n"), done
    process.send(b"x")
    assert process.line() == "dropped"


# Terminals

@on_six
def test_prompt(interpreter, target, tmp_path):
    process = target("evaluated.py", "idle", interpreter=interpreter)
    with Prompt(process, tmp_path) as prompt:
        assert "Python %s in process %d" % (interpreter.full_version, process.pid) in \
            prompt.greeting
        assert prompt.enter("1 + 1") == "2\n"
        assert prompt.enter("_ + 1") == "3\n"
        assert prompt.enter("numbers") == "[1, 2, 3]\n"
        assert prompt.enter("'é漢🙂'") == "'é漢🙂'\n"
        # A block, in which Tab indents.
        prompt.enter("for i in range(2):", prompt.more)
        prompt.send("\tprint('line', i)\r")
        prompt.until(prompt.more)
        prompt.send("\r")
        assert "line 0\nline 1\n" in prompt.until(prompt.first)
        assert "ZeroDivisionError" in prompt.enter("1 / 0")
        assert "SyntaxError" in prompt.enter("x y")
        # Editing: Ctrl-A and forgotten text.
        prompt.send("2 + 3\x011000 + \r")
        assert "1005\n" in prompt.until(prompt.first)
        # Ctrl-C gives up a block.
        prompt.enter("if True:", prompt.more)
        prompt.send("garbage\x03")
        assert "KeyboardInterrupt" in prompt.until(prompt.first)
        assert prompt.enter("'fine'") == "'fine'\n"
        prompt.leave()
    process.send(b"x")
    assert process.line() == "awake"


@pytest.mark.parametrize("leaving", ["\x04", "exit\r", "quit()\r", "exit()\r",
                                     "import sys; sys.exit(3)\r", "raise SystemExit\r"])
def test_leaving(newest, target, tmp_path, leaving):
    process = target("evaluated.py", "idle")
    with Prompt(process, tmp_path) as prompt:
        prompt.leave(leaving)
    wait_until(lambda: agent.ours(process.pid) == ["probing-agent"])
    process.send(b"x")
    assert process.line() == "awake"


def test_history(newest, target, tmp_path):
    process = target("evaluated.py", "idle")
    with Prompt(process, tmp_path) as prompt:
        prompt.enter("x = 40 + 2")
        prompt.enter("if x:", prompt.more)
        prompt.enter("    x", prompt.more)
        prompt.send("\r")
        prompt.until(prompt.first)
        prompt.leave("exit\r")
    file = tmp_path / ".local" / "state" / "probing" / "repl_history"
    assert file.read_text() == "x = 40 + 2\nif x:\n    x\nexit\n"
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700
    with Prompt(process, tmp_path, TERM="xterm", NO_COLOR="1") as prompt:
        prompt.send("\x1b[A" * 4 + "; x + 1\r")
        prompt.until("x = 40 + 2; x + 1")
        assert "43" in prompt.until(prompt.first)
        prompt.send("\x12if\r")  # Ctrl-R searches
        prompt.until(prompt.more)
        prompt.send("\x03")
        prompt.until(prompt.first)
        prompt.leave()


@on_six
def test_tab(interpreter, target, tmp_path):
    process = target("evaluated.py", "idle", interpreter=interpreter)
    with Prompt(process, tmp_path) as prompt:
        prompt.enter("import json.decoder, collections")
        for typed, becomes in (("numb\t", "numbers"), ("os.path.absp\t", "os.path.abspath"),
                               ("import colle\t", "import collections"),
                               ("from collections impo\t", "import"),
                               ("from collections import Ordered\t", "OrderedDict"),
                               ("isinst\t", "isinstance"), ("contin\t", "continue"),
                               ("print(numbers.appe\t", "numbers.append"),
                               ("(3).__ad\t", "__ad")):
            prompt.send(typed)
            prompt.until(becomes)
            prompt.send("\x15")
        prompt.send("json.decod\t.py_sc\t\r")
        prompt.until("<function py_scanstring")
        prompt.until(prompt.first)
        # Several are shown at the second Tab.
        prompt.send("os.path.is\t\t")
        shown = prompt.until("os.path.isfile") + prompt.until(prompt.first)
        assert "os.path.isdir" in shown
        prompt.send("\x15")
        prompt.leave()


@on_six
def test_interrupts(interpreter, target, tmp_path):
    process = target("evaluated.py", "idle", interpreter=interpreter)
    with Prompt(process, tmp_path) as prompt:
        prompt.send("while True: print('runs')\r")
        prompt.send("\r")
        prompt.until("runs\n".replace("\n", "\r\n"))
        prompt.send("\x03")
        assert "KeyboardInterrupt" in prompt.until(prompt.first)
        assert prompt.enter("1 + 1") == "2\n"
        prompt.leave()


def test_code_that_does_not_stop_is_left(newest, target, tmp_path):
    process = target("evaluated.py", "idle")
    with Prompt(process, tmp_path) as prompt:
        prompt.enter("import os; r, w = os.pipe()")
        prompt.send("print('waits'); os.read(r, 1)\r")
        prompt.until("waits\r\n")
        while True:  # a Ctrl-C too soon after another is lost
            prompt.send("\x03")
            try:
                prompt.until("again abandons it", timeout=0.5)
                break
            except AssertionError:
                pass
        prompt.send("\x03")
        text, code = prompt.end()
        assert code == FAILED and "interrupted" in text, text
    with Prompt(process, tmp_path) as prompt:
        assert prompt.enter("os.write(w, b'x')") == "1\n"
        prompt.leave()
    wait_until(lambda: agent.ours(process.pid) == ["probing-agent"])


def test_paste(newest, target, tmp_path):
    """Pasted text comes as one text, which may be several statements."""
    process = target("evaluated.py", "idle")
    with Prompt(process, tmp_path, TERM="xterm", NO_COLOR="1") as prompt:
        prompt.send("\x1b[200~def f(x):\n\n    return x + 1\n\nf(1)\nprint('b')\nf(2)\x1b[201~\r")
        assert "2\r\nb\r\n3\r\n".replace("\r", "") in prompt.until(prompt.first)
        prompt.leave()


def test_colours(newest, target, tmp_path):
    process = target("evaluated.py", "idle")
    for variables, coloured in (({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False),
                                ({"TERM": "xterm", "NO_COLOR": "1"}, False)):
        with Terminal("-p", process.pid, "repl", HOME=str(tmp_path), INPUTRC="/dev/null",
                      **variables) as terminal:
            assert ("\x1b[2m%d" % process.pid in terminal.until(" >>> ")) == coloured
            terminal.send("\x04")
            assert terminal.end()[1] == OK


def test_on_main(newest, target, tmp_path):
    process = target("evaluated.py", "busy")
    with Prompt(process, tmp_path, "--thread", "main") as prompt:
        assert prompt.enter("threading.current_thread().name") == "'MainThread'\n"
        assert prompt.enter("_.lower()") == "'mainthread'\n"
        assert prompt.enter("count > 0") == "True\n"
        prompt.leave()
    idle = target("evaluated.py", "idle")
    with Prompt(idle, tmp_path, "--thread", "main", "--timeout", "300ms") as prompt:
        told = prompt.enter("1")
        assert "main thread executed no Python code within 0.3 s" in told, told
        prompt.leave()


def test_time_out(newest, target, tmp_path):
    process = target("evaluated.py", "idle")
    with Prompt(process, tmp_path, "--timeout", "3s") as prompt:  # enough for short statements
        prompt.send("while True: pass\r")
        prompt.until(prompt.more)
        prompt.send("\r")
        assert "ran for over 3 s" in prompt.until(prompt.first)
        assert prompt.enter("5") == "5\n"
        prompt.leave()
    done = pipe(process, "print('a')\nwhile True: pass\n\nprint('b')\n", "--timeout", "2s")
    assert done.returncode == TIMEOUT and done.stdout == b"a\n", done


def test_process_that_ends(newest, target, tmp_path):
    process = target("evaluated.py", "idle")
    with Prompt(process, tmp_path) as prompt:
        process.kill()
        text, code = prompt.end()
        assert code == NO_PROCESS and "process %d has ended" % process.pid in text, text
    process = target("evaluated.py", "idle")
    with Prompt(process, tmp_path) as prompt:
        prompt.send("import os; os._exit(3)\r")
        text, code = prompt.end()
        assert code == NO_PROCESS and "process %d has ended" % process.pid in text, text


# Several at once, and clients that die

@on_six
def test_two_at_once(interpreter, target, tmp_path):
    process = target("evaluated.py", "idle", interpreter=interpreter)
    with Prompt(process, tmp_path) as one, Prompt(process, tmp_path) as other:
        assert one.enter("'of one'") == "'of one'\n"
        assert other.enter("'of the other'") == "'of the other'\n"
        assert one.enter("_") == "'of one'\n"
        one.enter("local = threading.local(); local.x = 5")
        assert "AttributeError" in other.enter("local.x")
        assert one.enter("local.x") == "5\n"
        # One client is busy, and prints; the other gets only its own output.
        one.send("while True: print('spam')\r\r")
        one.until("spam\r\n")
        assert other.enter("6 * 7") == "42\n"
        assert other.enter("print('eggs')") == "eggs\n"
        one.send("\x03")
        one.until("KeyboardInterrupt")
        one.until(one.first)
        one.leave()
        assert other.enter("_") == "42\n"
        other.leave()
    wait_until(lambda: agent.ours(process.pid) == ["probing-agent"])


@on_six
@pytest.mark.parametrize("when", ["idle", "running", "printing", "block"])
def test_killed(interpreter, target, tmp_path, probing, when):
    process = target("evaluated.py", "idle", interpreter=interpreter)
    with Prompt(process, tmp_path) as other:
        with Prompt(process, tmp_path) as killed:
            assert killed.enter("x = 5; x") == "5\n"
            if when == "running":
                killed.send("import time\rprint('begun')\rwhile True: time.sleep(0.001)\r\r")
                killed.until("begun\r\n")
            elif when == "printing":
                killed.send("while True: print('spam' * 1000)\r\r")
                killed.until("spam\r\n")
            elif when == "block":
                killed.enter("def f():", killed.more)
            killed.process.kill()
            killed.process.wait()
        assert other.enter("x + 1") == "6\n"
        wait_until(lambda: agent.ours(process.pid) == ["probing-agent", "probing-eval"], 60)
        other.leave()
    wait_until(lambda: agent.ours(process.pid) == ["probing-agent"])
    assert probing(process.pid, "eval", "import sys; type(sys.stdout).__name__").code == OK
    process.send(b"x")
    assert process.line() == "awake"


def test_half_a_frame_and_no_reader(newest, target, tmp_path, probing):
    process = target("evaluated.py", "idle")
    path = agent.load(probing, process.pid)
    with Client(path) as half, Client(path) as deaf, Prompt(process, tmp_path) as prompt:
        half.send(agent.evaluation("1", flags=agent.INTERACTIVE)[:11])
        deaf.send(agent.evaluation("while True: print('x' * 1000)\n\n", flags=agent.INTERACTIVE))
        for i in range(20):
            assert prompt.enter("%d + 1" % i) == "%d\n" % (i + 1)
        prompt.leave()
    wait_until(lambda: agent.ours(process.pid) == ["probing-agent"], 60)


def test_kills_at_any_moment(newest, target, probing):
    """Clients killed while they connect, run and leave hurt nobody and leave nothing behind."""
    process = target("evaluated.py", "idle")
    path = agent.load(probing, process.pid)
    with Client(path) as steady:
        for i in range(support.count(60, 600)):
            with subprocess.Popen([support.BINARY, "-p", str(process.pid), "repl"],
                                  stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, env=environment()) as client:
                client.stdin.write(b"y = [1]\ny\n_\nimport time\n"
                                   b"for i in range(1000): print(i)\n\n")
                client.stdin.flush()
                try:
                    client.wait(i % 20 / 1000)
                except subprocess.TimeoutExpired:
                    pass
                client.kill()
            assert steady.evaluate("%d\n" % i, flags=agent.INTERACTIVE)[1] == {
                agent.VALUE: b"%d\n" % i}
    wait_until(lambda: agent.ours(process.pid) == ["probing-agent"])
    process.send(b"x")
    assert process.line() == "awake"


# The protocol

def test_incomplete_and_last(newest, target, probing):
    process = target("evaluated.py", "idle")
    with Client(agent.load(probing, process.pid)) as client:
        assert client.capabilities == 131071
        run = lambda code, more=0: client.evaluate(code, flags=agent.INTERACTIVE | more)
        assert run("def f():") == (agent.INCOMPLETE, {})
        assert run("def f():\n  return 1") == (agent.INCOMPLETE, {})
        assert run("def f():\n  return 1\n") == (agent.OK, {})
        assert run("f()") == (agent.OK, {agent.VALUE: b"1\n"})
        assert run("(1,") == (agent.INCOMPLETE, {})
        outcome, texts = run("(1,", agent.LAST)
        assert outcome == agent.RAISED and b"SyntaxError" in texts[agent.TRACEBACK]
        assert run("if 1:\n  f()", agent.LAST) == (agent.OK, {agent.VALUE: b"1\n"})
        assert run("") == run("# nothing") == (agent.OK, {})
        assert run("exit") == (agent.EXIT, {})
        # Code that is evaluated otherwise knows nothing of the prompt.
        outcome, texts = client.evaluate("_")
        assert outcome == agent.RAISED and b"NameError" in texts[agent.TRACEBACK]
        assert run("\0")[0] == run("\udcff".encode("utf-8", "surrogateescape")
                                   .decode("latin-1"))[0] == agent.RAISED
        outcome, texts = run("raise SystemExit('said')")
        assert (outcome, texts) == (agent.EXIT, {agent.STDERR: b"said\n"})


HOSTILE = """
class Loud:
    prop = property(lambda self: ran.append('prop'))
    __slots__ = ('slot', '__dict__')
    def __getattr__(self, name): ran.append(name); raise AttributeError(name)
    def __dir__(self): ran.append('dir'); return []
    def method(self): pass
class Meta(type):
    def __getattribute__(self, name): ran.append(name); return type.__getattribute__(self, name)
class WithMeta(metaclass=Meta):
    inside = [1]
class Wide: pass
class Net:
    def __init__(self):
        self._modules = {'layer': Wide()}
ran = []
loud = Loud(); loud.slot = [1]; loud.own = 'text'; loud._hidden = 1
loud.__dict__['not a name'] = loud.__dict__['x' * 300] = loud.__dict__['a\\nb'] = 1
wide = Wide()
for i in range(5000): setattr(wide, 'a%d' % i, i)
net = Net(); net._modules['layer'].weight = 1
ran[:] = []
"""


@on_six
def test_completion_runs_no_code(interpreter, target, probing):
    process = target("evaluated.py", "idle", interpreter=interpreter)
    with Client(agent.load(probing, process.pid)) as client:
        assert client.evaluate(HOSTILE)[0] == agent.OK
        ask = client.complete
        assert ask("loud.") == ["loud.method", "loud.own", "loud.prop", "loud.slot"]
        assert ask("x = loud._h") == ["loud._hidden"]
        assert ask("loud.prop.") == ask("loud.nothing.") == []
        assert "loud.slot.append" in ask("loud.slot.")
        assert "loud.own.upper" in ask("loud.own.")
        assert "WithMeta.inside" in ask("WithMeta.")
        assert "WithMeta.inside.append" in ask("WithMeta.inside.")
        assert ask("net.lay") == ["net.layer"] and ask("net.layer.w") == ["net.layer.weight"]
        assert len(ask("wide.a")) == 1000
        assert ask("f().x") == ask("1.") == ask("'a.") == ask("a..b") == ask(".") == []
        assert "import" in ask("imp") and ask("isinstance(len") == ["len"]
        assert client.evaluate("ran")[1] == {agent.VALUE: b"[]"}
        # While code runs there is no completion, and none is waited for.
        client.send(agent.evaluation("import time\nprint(1)\nwhile True: time.sleep(0.001)"))
        client.until(agent.STDOUT)
        client.send(agent.completion("x"))
        assert client.until(agent.ERROR)[-1][0] == agent.ERROR


def test_tab_while_the_interpreter_is_busy(newest, target, tmp_path):
    """The completion is given up after a while, and its answer is not taken for that of the next line."""
    process = target("evaluated.py", "gil", str(6 * 10 ** 8))
    with Prompt(process, tmp_path) as prompt:
        assert prompt.enter("1 + 1") == "2\n"
        process.send(b"x")
        assert process.line() == "holds"
        prompt.send("numb\t\x15")
        assert process.line(120) == "held"
        prompt.send("6 * 7\r")
        prompt.until("42\r\n")
        prompt.until(prompt.first)
        assert prompt.enter("'x' + 'y'") == "'xy'\n"
        prompt.leave()


def test_modules_are_completed(interpreter, target, probing, tmp_path):
    """From the folders of sys.path, importing nothing."""
    (tmp_path / "zzz_single.py").write_text("1/0")
    (tmp_path / "zzz_package").mkdir()
    (tmp_path / "zzz_package" / "__init__.py").write_text("1/0")
    (tmp_path / "zzz_package" / "inner.py").write_text("1/0")
    (tmp_path / "zzz_folder").mkdir()
    process = target("evaluated.py", "idle", interpreter=interpreter)
    with Client(agent.load(probing, process.pid)) as client:
        assert client.evaluate("import sys; sys.path.append(%r); sys.path.append('/nowhere')"
                               % str(tmp_path))[0] == agent.OK
        ask = client.complete
        assert ask("import zzz") == ["zzz_package", "zzz_single"]
        assert ask("import os, zzz_s") == ["zzz_single"]
        assert ask("from zzz_package import i") == ["inner"]
        assert ask("import zzz_package.") == ["zzz_package.inner"]
        assert "path" in ask("from os import pat")
        assert ask("import zzz_single as z") == []
        assert "builtins" in ask("import ")


def test_wrong_words(newest, target, probing):
    process = target("evaluated.py", "idle")
    assert probing(process.pid, "repl", "--thread", "worker").code == USAGE
    done = probing(process.pid, "repl", "--no-inject")
    assert done.code == FAILED and "has no agent" in done.err, done
    assert agent.ours(process.pid) == []
    assert probing("repl", process.pid).code == OK
    assert probing("r", "-p", process.pid).code == OK


def test_ctrl_c_at_a_question_of_the_prompt(target, newest, tmp_path):
    """Whether all possibilities are to be shown: it ends the question, and the line."""
    process = target("evaluated.py", "idle")
    with Prompt(process, tmp_path) as prompt:
        for end in ("\x03", "n", "\x03"):
            prompt.send("print(\t\t")
            prompt.until("possibilities? (y or n)")
            prompt.send(end)
            asked = prompt.until(prompt.first, 60)
            assert asked.count("\a") < 5, asked
            if end == "n":
                prompt.send("\x03")
                prompt.until(prompt.first)
        assert prompt.enter("6 * 7") == "42\n"
        prompt.leave()


def test_no_list_of_names_for_a_key(target, newest, probing):
    process = target("evaluated.py", "idle")
    with Client(agent.load(probing, process.pid)) as client:
        assert len(client.complete("print(")) > 100
        assert client.complete("os.environ[") == []
        assert "print" in client.complete("os.environ[pri")

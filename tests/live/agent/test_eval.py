# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluating code in running programs: values, output, exceptions, deadlines, on every interpreter."""
import json
import os
import re
import signal
import subprocess
import time

import pytest

import agent
import support
from environment import FAILED, OK, TIMEOUT, UNSUPPORTED, USAGE, NO_PROCESS
from agent import wait_until


def evaluate(probing, process, *words, **options):
    return probing(process.pid, "eval", *words, **options)


ROWS = [
    # code, stdout, stderr, exit code
    ("1 + 1", "2\n", "", OK),
    ("None", "", "", OK),
    ("", "", "", OK),
    ("# nothing", "", "", OK),
    ("numbers", "[1, 2, 3]\n", "", OK),
    ("x = 5; x * 2", "10\n", "", OK),
    ("x", "5\n", "", OK),  # it stayed
    ("'text'", "'text'\n", "", OK),
    ("print('a'); print('b')\n'value'", "a\nb\n'value'\n", "", OK),
    ("import sys\nsys.stdout.write('no line feed') and None", "no line feed", "", OK),
    ("print('é漢🙂')", "é漢🙂\n", "", OK),
    ("'é漢'", "'é漢'\n", "", OK),
    ("'\\ud800'", "'\\ud800'\n", "", OK),
    ("print('\\ud800')", "\\ud800\n", "", OK),
    ("sys.stdout.buffer.write(b'bytes\\xff') and None", b"bytes\xff", "", OK),
    ("sys.stderr.write('wrong\\n') and None", "", "wrong\n", OK),
    ("def f():\n    return 7\n\nf()", "7\n", "", OK),
    ("for i in range(3):\n    print(i)", "0\n1\n2\n", "", OK),
    ("__name__", "'__main__'\n", "", OK),
    ("sys.stdout.isatty(), sys.stdout.encoding.lower()", "(False, 'utf-8')\n", "", OK),
    ("'a\\0b'", "'a\\x00b'\n", "", OK),
    ("class Bad:\n    def __repr__(self):\n        raise ValueError('no repr')\nBad()", "",
     "ValueError: no repr", FAILED),
    ("1 / 0", "", "ZeroDivisionError: division by zero", FAILED),
    ("print('before')\nraise KeyError('k')", "before\n", "KeyError: 'k'", FAILED),
    ("sys.exit(3)", "", "SystemExit: 3", FAILED),
    ("raise KeyboardInterrupt", "", "KeyboardInterrupt", FAILED),
    ("def f(:", "", "SyntaxError", FAILED),
    ("await something", "", "SyntaxError", FAILED),
    ("  1", "", "IndentationError", FAILED),
    ("def deep(): deep()\ndeep()", "", "Recursion", FAILED),
    ("input('?')", "?", "EOFError: stdin is the program's own", FAILED),
    ("exit()", "", "SystemExit", FAILED),
    ("'a text'\nNone", "", "", OK),
    ("__doc__[:4]", "'What'\n", "", OK),  # still the program's
    ("from __future__ import division\n1 / 2", "0.5\n", "", OK),
    ("'x'\nfrom __future__ import annotations\ndef f(x: nope): pass\nf.__annotations__",
     "{'x': 'nope'}\n", "", OK),
    ("compile('a\\0b', 'x', 'exec')", "", "null bytes", FAILED),
    ("raise ValueError('\\ud800 \\xff')", "", "ValueError: \\ud800 \xff", FAILED),
    ("class Odd(Exception):\n    def __str__(self): return 1 / 0\nraise Odd", "", "Odd", FAILED),
    ("async def a():\n    yield 1\na().__class__.__name__", "'async_generator'\n", "", OK),
    ("async for x in y: pass", "", "SyntaxError", FAILED),
    ("'still here'", "'still here'\n", "", OK),
]


def test_rows(interpreter, target, probing):
    process = target("evaluated.py", "idle", interpreter=interpreter)
    for code, out, err, status in ROWS:
        done = subprocess.run([support.BINARY, str(process.pid), "eval", code],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                              stdin=subprocess.DEVNULL, check=False)
        if (interpreter.version < (3, 6) and code.startswith("async def")) or \
                (interpreter.version < (3, 7) and "import annotations" in code):
            continue
        if "Recursion" in err and interpreter.version < (3, 5):
            err = "RuntimeError"
        wanted = out if isinstance(out, bytes) else out.encode()
        assert (done.stdout, done.returncode) == (wanted, status), (code, done)
        assert err in done.stderr.decode() if err else not done.stderr, (code, done)
        if status == FAILED:
            assert "probing agent" not in done.stderr.decode(), done
    # The streams are the program's again, and its main thread slept all the time.
    done = evaluate(probing, process, "sys.stdout = sys.__stdout__; type(sys.stdout).__name__")
    assert done.out == "'TextIOWrapper'\n", done
    process.send(b"x")
    assert process.line() == "awake"


def test_tracebacks_show_lines(interpreter, target, probing):
    """Tracebacks show lines of the code itself, never of other code with the same name."""
    process = target("evaluated.py", "idle", interpreter=interpreter)
    done = evaluate(probing, process, "def f(x):\n    return 1 / x\n\nf(0)")
    assert re.search(r'File "<probing-\d+>", line 4, in <module>\n    f\(0\)\n', done.err), done
    assert re.search(r'", line 2, in f\n    return 1 / x\n(?: +~~\^~~\n)?ZeroDiv', done.err), done
    done = evaluate(probing, process, "'other'\n'code'\nf(0)")
    assert re.search(r'", line 2, in f\nZeroDivisionError', done.err), done
    # Lines are available for tracebacks of the code itself, and gone afterwards.
    assert "return 1 / y" in evaluate(probing, process, "import traceback\ndef g(y):\n    return 1 / y\n"
                                      "try: g(0)\nexcept Exception: traceback.print_exc()").err
    assert evaluate(probing, process, "import linecache; len([name for name in linecache.cache "
                    "if 'probing' in name])").out == "1\n"


STARTS = """
import os, signal, subprocess, sys
ways = {
    "Popen": lambda *words: subprocess.Popen(words).wait(),
    "Popen without close_fds": lambda *words: subprocess.Popen(words, close_fds=False).wait(),
    "shell": lambda *words: subprocess.call(" ".join(words), shell=True),
    "system": lambda *words: os.system(" ".join(words)),
    "spawnv": lambda *words: os.spawnvp(os.P_WAIT, words[0], words),
}
if hasattr(os, "posix_spawn"):
    ways["posix_spawn"] = lambda *words: os.waitpid(
        os.posix_spawn("/bin/" + words[0], words, os.environ), 0)
def forks(*words):
    child = os.fork()
    if not child:
        os.execvp(words[0], words)
    os.waitpid(child, 0)
ways["fork"] = forks
for way in sorted(ways):
    ways[way]("cp", "/proc/self/status", FILE)
    with open(FILE) as file:
        print(way, [line.split()[1] for line in file if line[:6] == "SigBlk"][0])
"""


@pytest.mark.parametrize("interpreter", support.one_per_version(), ids=repr)
def test_processes_of_code_can_be_signalled(interpreter, target, probing, tmp_path):
    """However they are started, processes block the main thread's signals, not those of our threads."""
    process = target("evaluated.py", "idle", interpreter=interpreter)
    code = STARTS.replace("FILE", repr(str(tmp_path / "status")))
    done = evaluate(probing, process, code)
    blocked = dict(line.rsplit(" ", 1) for line in done.out.splitlines())
    assert len(blocked) >= 6 and set(blocked.values()) == {"0" * 16}, (done, blocked)
    done = evaluate(probing, process, "import time; child = subprocess.Popen(['sleep', '600'])\n"
                    "child.terminate(); child.wait()")
    assert done.out == "-15\n", done


def test_thread_locals_last_as_long_as_the_connection(interpreter, target, probing):
    process = target("evaluated.py", "idle", interpreter=interpreter)
    with agent.Client(agent.load(probing, process.pid)) as client:
        assert client.evaluate("import threading; local = threading.local(); local.x = 7; "
                               "me = threading.current_thread()")[0] == agent.OK
        for _ in range(3):
            assert client.evaluate("local.x, me is threading.current_thread()")[1] == {
                agent.VALUE: b"(7, True)"}
    wait_until(lambda: agent.ours(process.pid) == ["probing-agent"])
    done = evaluate(probing, process, "hasattr(local, 'x'), len(threading.enumerate())")
    assert done.out == "(False, 1)\n", done


def test_code_that_ends_the_process(newest, target, probing):
    process = target("evaluated.py", "idle")
    done = evaluate(probing, process, "import os; os._exit(3)")
    assert done.code == NO_PROCESS and "process %d has ended" % process.pid in done.err, done
    process = target("evaluated.py", "idle")
    done = evaluate(probing, process, "import os; os.execvp('sleep', ['sleep', '600'])")
    assert done.code == NO_PROCESS and "runs another program now" in done.err, done


def test_memory_of_large_output(newest, target, probing):
    """100 MB that are printed and shown go through; neither side holds them."""
    process = target("evaluated.py", "idle")
    evaluate(probing, process, "print(1)")
    before = agent.memory(process.pid)
    code = "for i in range(1000):\n    print('x' * 99999)"
    highest = 0
    with subprocess.Popen([support.BINARY, str(process.pid), "eval", code],
                          stdout=subprocess.PIPE) as client:
        count = 0
        while True:
            chunk = client.stdout.read(1 << 20)
            if not chunk:
                break
            count += len(chunk)
            highest = max(highest, agent.memory(process.pid) - before, agent.memory(client.pid))
    assert client.returncode == OK and count == 10 ** 8
    assert highest < 24 << 20, highest
    support.report("eval of 100 MB of output: target and client held %.1f MB at most" % (
        highest / 1e6))


def test_on_main(interpreter, target, probing):
    process = target("evaluated.py", "busy", interpreter=interpreter)
    done = evaluate(probing, process, "--thread", "main",
                    "import threading; print(threading.current_thread().name); count > 0")
    assert (done.code, done.out) == (OK, "MainThread\nTrue\n"), done
    done = evaluate(probing, process, "--thread", "main", "1/0")
    assert done.code == FAILED and "ZeroDivisionError" in done.err, done
    done = evaluate(probing, process, "--thread", "main", "--timeout", "0.5", "while True: pass")
    assert done.code == TIMEOUT, done
    before = evaluate(probing, process, "count")
    wait_until(lambda: evaluate(probing, process, "count").out != before.out)
    assert evaluate(probing, process, "--thread", "agent",
                    "threading.current_thread().name == 'MainThread'").out == "False\n"


def test_on_main_near_the_recursion_limit(interpreter, target, probing):
    """Before 3.10 a RecursionError that the program does not see ends it when it goes deeper."""
    for code in ("1 + 1", "def f(): f()\n\nf()"):
        process = target("near_limit.py", interpreter=interpreter)
        done = evaluate(probing, process, "--thread", "main", code)
        assert interpreter.version >= (3, 10) or "RecursionError" in done.err or done.out == "2\n", done
        process.send(b"x")
        assert process.line() == "limit"


def test_main_thread_that_sleeps_is_not_reached(newest, target, probing):
    process = target("evaluated.py", "idle")
    start = time.monotonic()
    done = evaluate(probing, process, "--thread", "main", "--timeout", "0.5", "print('late')")
    assert done.code == TIMEOUT and time.monotonic() - start < 30, done
    assert "main thread executed no Python code within 0.5 s" in done.err and "asleep" in done.err
    assert str(process.pid) in done.err
    # Abandoned code does not run when the thread reaches it after all.
    process.send(b"x")
    assert process.line() == "awake"
    done = evaluate(probing, process, "--thread", "agent", "'fine'")
    assert done.out == "'fine'\n", done
    process.send(b"x")
    assert process.line() == "awake"


@pytest.mark.parametrize("interpreter", support.one_per_version(last=(3, 6)), ids=repr)
def test_program_without_a_gil(interpreter, target, probing):
    """Only the thread that would hold it can make it, and may be asleep."""
    process = target("evaluated.py", "alone", interpreter=interpreter)
    done = evaluate(probing, process, "--timeout", "1", "1")
    assert done.code == TIMEOUT and "until that thread makes it" in done.err, done
    process.send(b"x")
    assert process.line() == "awake"
    wait_until(lambda: evaluate(probing, process, "--timeout", "1", "2").out == "2\n")


def test_gil_held_by_a_call(interpreter, target, probing):
    if interpreter.free_threaded:
        pytest.skip("nothing holds back other threads")
    if not interpreter.has_ctypes:
        pytest.skip("the program needs it")
    process = target("evaluated.py", "gil", interpreter=interpreter)
    assert evaluate(probing, process, "1").out == "1\n"
    process.send(b"x")
    assert process.line() == "holds"
    support.wait_for_sleep(process.pid, "pipe_read", process.pid)
    done = evaluate(probing, process, "--timeout", "0.3", "print('late')")
    assert done.code == TIMEOUT, done
    assert "the interpreter was not free within 0.3 s" in done.err, done
    assert "the GIL is held by thread %d" % process.pid in done.err and "hold" in done.err, done
    process.send(b"x")
    assert process.line() == "held"
    done = evaluate(probing, process, "'free again'")
    assert done.out == "'free again'\n", done
    wait_until(lambda: agent.ours(process.pid) == ["probing-agent"])


def test_first_ctrl_c_says_what_the_code_waits_for(target):
    process = target("evaluated.py", "idle")
    with subprocess.Popen([support.BINARY, str(process.pid), "eval",
                           "import time\nprint('begun')\ntime.sleep(1000)"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as client:
        assert client.stdout.readline() == "begun\n"
        support.wait_for_sleep(process.pid, "nanosleep", timeout=60)
        client.send_signal(signal.SIGINT)
        said = client.stderr.readline()
        assert "was told to stop and is still running: thread " in said, said
        assert "asleep in <module> at <probing-" in said and ">:3, in clock_nanosleep: sleep" in said
        assert said.endswith("; Ctrl-C again abandons it\n"), said
        client.send_signal(signal.SIGINT)
        _, err = client.communicate(timeout=30)
    assert client.returncode == FAILED and "interrupted" in err


def test_time_out_and_interrupts(interpreter, target, probing):
    process = target("evaluated.py", "idle", interpreter=interpreter)
    start = time.monotonic()
    done = evaluate(probing, process, "--timeout", "2", "print('begun')\nwhile True: pass")
    assert (done.code, done.out) == (TIMEOUT, "begun\n") and time.monotonic() - start < 20, done
    assert "ran for over 2 s" in done.err
    # Ctrl-C raises KeyboardInterrupt in the code, which may catch it.
    with subprocess.Popen([support.BINARY, str(process.pid), "eval",
                           "import time\n"
                           "try:\n    print('begun')\n    while True: time.sleep(0.001)\n"
                           "except KeyboardInterrupt:\n    print('caught')"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as client:
        assert client.stdout.readline() == b"begun\n"
        client.send_signal(signal.SIGINT)
        out, err = client.communicate(timeout=30)
    assert (client.returncode, out, err) == (OK, b"caught\n", b"")
    with subprocess.Popen([support.BINARY, str(process.pid), "eval",
                           "print('begun')\nwhile True: pass"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as client:
        assert client.stdout.readline() == b"begun\n"
        client.send_signal(signal.SIGINT)
        out, err = client.communicate(timeout=30)
    assert client.returncode == FAILED and b"interrupted" in err
    assert evaluate(probing, process, "2").out == "2\n"
    wait_until(lambda: agent.ours(process.pid) == ["probing-agent"])


def test_output_comes_as_it_is_printed(newest, target, probing):
    process = target("evaluated.py", "idle")
    code = ("import os\nr, w = os.pipe()\nprint('first')\nsys.stderr.write('second\\n')\n"
            "os.read(r, 1)\nprint('third')")
    with subprocess.Popen([support.BINARY, str(process.pid), "eval", "import sys\n" + code],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as client:
        assert client.stdout.readline() == b"first\n"
        assert client.stdout.readline() == b"second\n"
        assert evaluate(probing, process, "os.write(w, b'x') and None").code == OK
        assert client.stdout.readline() == b"third\n"
        assert client.wait(30) == OK


@pytest.mark.parametrize("thread", ["agent", "main"])
def test_large_output(newest, target, probing, thread):
    process = target("evaluated.py", "busy")
    done = evaluate(probing, process, "--thread", "agent",
                    "import sys\nfor i in range(100000): print('%099d' % i)")
    assert done.code == OK and len(done.out) == 10 ** 7, done.code
    assert done.out.split("\n")[99999] == "%099d" % 99999
    done = evaluate(probing, process, "'x' * 10**7")
    assert len(done.out) == 10 ** 7 + 3
    done = evaluate(probing, process, "--thread", thread, "'x' * 10**5")
    assert len(done.out) == 10 ** 5 + 3


def test_other_threads_print_where_they_always_did(interpreter, target, probing):
    process = target("evaluated.py", "prints", interpreter=interpreter)
    code = "import time\nfor i in range(30):\n    print('mine %d' % i)\n    time.sleep(0.002)"
    done = evaluate(probing, process, code)
    assert done.code == OK, done
    assert done.out.split("\n") == ["mine %d" % i for i in range(30)] + [""], done
    for _ in range(50):
        assert process.line() == "other 0"
    assert set(process.errors().split()) == {"other"}


def test_json(newest, target, probing):
    process = target("evaluated.py", "idle")
    done = evaluate(probing, process, "--json",
                    "import sys; print('a'); sys.stderr.write('b'); 'c\\0'")
    assert json.loads(done.out) == {
        "pid": process.pid, "outcome": "ok", "stdout": "a\n", "stderr": "b", "value": "'c\\x00'",
        "traceback": None}
    done = evaluate(probing, process, "--json", "1/0")
    assert done.code == FAILED and not done.err, done
    told = json.loads(done.out)
    assert told["outcome"] == "exception" and told["value"] is None
    assert told["traceback"].endswith("ZeroDivisionError: division by zero\n")


def test_files_and_stdin(newest, target, probing, tmp_path):
    process = target("evaluated.py", "idle")
    script = tmp_path / "script.py"
    script.write_text("y = 6\ny * 7\n")
    assert evaluate(probing, process, "-f", script).out == "42\n"
    script.write_text("\n\n1 / 0\n")
    done = evaluate(probing, process, "-f", script)
    assert 'File "%s", line 3' % script in done.err and done.code == FAILED, done
    for words in (["-"], ["-f", "-"], []):
        done = subprocess.run([support.BINARY, str(process.pid), "eval", *words],
                              input=b"6 * 7", stdout=subprocess.PIPE, timeout=60, check=True)
        assert done.stdout == b"42\n"
    assert evaluate(probing, process, "-f", tmp_path / "missing").code == FAILED


def test_wrong_words(newest, target, probing):
    process = target("evaluated.py", "idle")
    for words in ([], ["1", "-f", "x"], ["--thread", "worker", "1"]):
        assert evaluate(probing, process, *words).code == USAGE
    assert probing("eval", "1").code == USAGE
    assert probing("-t", process.pid, "-t", "1", "eval", "1").code == USAGE
    assert probing(process.pid, "agent", "dance").code == USAGE
    assert probing(2 ** 22, "eval", "1").code == NO_PROCESS
    done = evaluate(probing, process, "--no-inject", "1")
    assert done.code == FAILED and "has no agent" in done.err, done
    assert probing(process.pid, "agent", "status").code == FAILED
    assert agent.ours(process.pid) == []


def test_no_python(probing):
    with subprocess.Popen(["sleep", "600"]) as process:
        try:
            done = probing(process.pid, "eval", "1")
            assert done.code == UNSUPPORTED and "Python" in done.err, done
            with open("/proc/%d/maps" % process.pid, encoding="utf-8") as maps:
                assert "probing-agent" not in maps.read()
        finally:
            process.kill()


def test_shut_down_is_refused(interpreter, target, probing, tmp_path):
    """In the program's atexit functions Python is not ended yet; later it is refused."""
    script = tmp_path / "ending.py"
    script.write_text(
        "import atexit, os, sys\n"
        "class Last:\n"
        "    def __del__(self, read=os.read, write=os.write):\n"
        "        write(1, b'ending\\n'); read(0, 1)\n"
        "import threading\n"
        "thread = threading.Thread(target=int); thread.start(); thread.join()\n"
        "os.write(1, b'ready\\n'); os.read(0, 1)\n"
        "sys.last = Last()\n"
        "sys.stdin = None\n")
    with support.Target(interpreter, script) as process:
        assert process.line() == "ready"
        assert evaluate(probing, process, "1").out == "1\n"
        process.send(b"x")
        assert process.line() == "ending"
        done = evaluate(probing, process, "--timeout", "2", "print('too late')")
        assert done.code in (UNSUPPORTED, TIMEOUT) and not done.out, done
        process.send(b"x")
        assert process.wait()[0] == 0


def test_before_it_begins_and_after_it_ended(probing, newest, tmp_path):
    """A program that runs Python only for as long as requested."""
    source = support.HERE / "programs" / "env_finalized.c"
    binary = tmp_path / "finalized"
    script = 'cc -o "$0" "$1" $(/usr/bin/python3-config --embed --ldflags)'
    if subprocess.run(["sh", "-c", script, binary, source], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("no libpython to link with")
    with support.Program([binary]) as process:
        assert process.line() == "ready"
        done = probing(process.pid, "eval", "1")
        assert done.code == UNSUPPORTED, done
        for _ in range(3):
            process.send(b"\n")
            assert process.line() == "ready"
            assert probing(process.pid, "eval", "6 * 7").out == "42\n"
            process.send(b"\n")
            assert process.line() == "ready"
            done = probing(process.pid, "eval", "1")
            assert done.code == UNSUPPORTED and "not initialised" in done.err, done

# SPDX-License-Identifier: GPL-3.0-or-later
"""Evaluates code in a frame of a paused program, and on the event loop of a running one."""
import json
import subprocess

import support
from environment import FAILED, NO_PROCESS, OK, TIMEOUT, UNSUPPORTED, USAGE
from pauses import Pause

PROGRAMS = support.HERE / "programs"


def worker_of(pid):
    rows = subprocess.check_output(
        [support.BINARY, "-t", str(pid), "query", "-f", "json",
         "SELECT tid FROM python.threads WHERE name = 'worker'"])
    return str(json.loads(rows.decode())[0]["tid"])


def test_code_in_a_frame(interpreter, probing):
    if interpreter.free_threaded:
        return  # it runs on in a pause, and the command says so
    with support.Target(interpreter, PROGRAMS / "framed.py") as process:
        process.line()
        worker = worker_of(process.pid)

        def run(*words, code=OK):
            done = probing(process.pid, "eval", *words)
            assert done.code == code, done
            return done.out, done.err

        with Pause(process.pid):
            assert run("--frame", "0", "here, SHARED") == ("('main', 'shared')\n", "")
            in_worker = "--tid", worker, "--frame"
            assert run(*in_worker, "0", "rows, label, [label for _ in rows]") == \
                ("([1, 2, 3], 'inner', ['inner', 'inner', 'inner'])\n", "")
            assert run(*in_worker, "0", "turn == (lambda: turn)()")[0] == "True\n"
            # New names are those of the code alone; a variable can be set from 3.13 on.
            out, err = run(*in_worker, "1", "fresh = 7\nname = 'other'\nfresh")
            assert out == "7\n" and ("before Python 3.13" in err) == (interpreter.version < (3, 13))
            assert run(*in_worker, "1", "name")[0] == "%r\n" % (
                "outer" if interpreter.version < (3, 13) else "other")
            assert "NameError" in run("fresh", code=FAILED)[1]
            assert "NameError" in run(*in_worker, "1", "nowhere", code=FAILED)[1]
            assert "no Python frame 77" in run("--frame", "77", "1", code=FAILED)[1]
            assert "has no Python thread 1" in run("--tid", "1", "--frame", "0", "1", code=NO_PROCESS)[1]


def test_the_thread_of_a_frame(interpreter, probing):
    """current_thread() is the frame's thread, and no thread is added to threading's list."""
    if interpreter.free_threaded:
        return  # as above
    with support.Target(interpreter, PROGRAMS / "framed.py") as process:
        process.line()
        in_worker = "--tid", worker_of(process.pid), "--frame", "0"
        names = "import threading; [each.name for each in threading.enumerate()]"
        before = probing(process.pid, "eval", names).out
        with Pause(process.pid):
            # The first one runs without a frame.
            assert "Dummy" in probing(process.pid, "eval", "import threading; threading.current_thread().name").out
            done = probing(process.pid, "eval", *in_worker, "import threading; threading.current_thread().name")
            assert (done.code, done.out) == (OK, "'worker'\n"), done
            done = probing(process.pid, "eval", *in_worker, names)
            assert done.out == before, done
            done = probing(process.pid, "eval", *in_worker, "import threading; threading.local().name")
            assert done.code == FAILED and "none of the values of other threads" in done.err, done
        assert probing(process.pid, "eval", names).out == before
        assert probing(process.pid, "eval", "threading._DummyThread.__module__").out == "'threading'\n"


def test_where_no_code_runs_in_a_frame(newest, probing):
    with support.Target(newest, PROGRAMS / "framed.py") as process:
        process.line()
        done = probing(process.pid, "eval", "--frame", "1", "here")
        assert done.code == UNSUPPORTED and "is not paused" in done.err
        assert "print --frame 1 EXPRESSION" in done.err
        for words, said in [(("--tid", "1", "1"), "--tid needs --frame"),
                            (("--frame", "0", "--loop", "1"), "only one of"),
                            (("--thread", "main", "--loop", "1"), "only one of"),
                            (("--frame", "x", "1"), "'x' is no frame")]:
            done = probing(process.pid, "eval", *words)
            assert (done.code, done.out) == (USAGE, "") and said in done.err, done
        with Pause(process.pid, "--hard"):
            done = probing(process.pid, "eval", "--frame", "0", "here")
            assert done.code == UNSUPPORTED and "--hard" in done.err, done


def test_code_on_the_loop(interpreter, probing):
    if interpreter.version < (3, 7):
        return  # code waits until the main thread executes Python, which sleeps in the loop
    with support.Target(interpreter, PROGRAMS / "looped.py") as process:
        process.line()

        def run(*words, code=OK):
            done = probing(process.pid, "eval", "--loop", *words)
            assert done.code == code, done
            return done.out, done.err

        if interpreter.version < (3, 8):
            assert "needs Python 3.8" in run("1", code=FAILED)[1]
            return
        assert run("await queue.put(5)") == ("", "")
        assert process.line() == "got 5"
        assert run("import asyncio\nasyncio.get_running_loop() is LOOPS[0]") == ("True\n", "")
        assert run("print('told')\nawait asyncio.sleep(0, 'value')") == ("told\n'value'\n", "")
        assert run("kept = await asyncio.sleep(0, 8)") == ("", "")
        assert run("kept") == ("8\n", "")
        err = run("await fail()", code=FAILED)[1]
        assert "KeyError: 'told'" in err and "in fail" in err and "probing agent" not in err
        assert "SyntaxError" in run("await", code=FAILED)[1]
        assert run("--timeout", "0.5", "await asyncio.sleep(1000)", code=TIMEOUT)
        # It was cancelled, and the program continues.
        assert run("while len(asyncio.all_tasks()) > 2:\n    await asyncio.sleep(0.01)") == ("", "")
        assert run("queue.put_nowait(6)") == ("", "")
        assert process.line() == "got 6"


def test_a_loop_that_is_not_there_or_stands(newest, probing):
    with support.Target(newest, PROGRAMS / "framed.py") as process:
        process.line()
        done = probing(process.pid, "eval", "--loop", "1")
        assert done.code == FAILED and "asyncio is not used" in done.err, done
    with support.Target(newest, PROGRAMS / "looped.py") as process:
        process.line()
        with Pause(process.pid):
            done = probing(process.pid, "eval", "--loop", "1")
        assert done.code == UNSUPPORTED and "its event loop with it" in done.err, done

# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing eval --interpreter N`: code in a subinterpreter, as one for each application has it."""
import pytest

import support
from environment import FAILED, OK, USAGE, wait_until

NEW = [each for each in support.one_per_version((3, 8)) if not each.free_threaded and not each.debug_build]
on_each = pytest.mark.parametrize("interpreter", NEW, ids=repr)


@on_each
def test_it_sees_that_interpreter(interpreter, target, probing):
    process = target("second_interpreter.py", interpreter=interpreter)
    for code, out in (("print(name); count + 1", "application\n42\n"), ("count += 1", ""), ("count", "42\n"),
                      ("import sys; sys.stdout.write('x' * 200000); None", "x" * 200000)):
        done = probing(process.pid, "eval", "--interpreter", "1", code)
        assert (done.code, done.out, done.err) == (OK, out, ""), done
    done = probing(process.pid, "eval", "--interpreter", "1", "nope")
    assert done.code == FAILED and "NameError: name 'nope' is not defined" in done.err, done
    assert "the code raised in interpreter 1" in done.err and "interpreter.py" not in done.err, done
    # Nothing of it is left there, nor in the main interpreter.
    done = probing(process.pid, "eval", "--interpreter", "1", "[each for each in globals() if 'probing' in each]")
    assert (done.code, done.out) == (OK, "[]\n"), done
    assert probing(process.pid, "eval", "name").code == FAILED
    assert process.alive()


LOCKS = "sum(each.locked() for each in threading._shutdown_locks), len(threading._shutdown_locks)"


@on_each
def test_it_has_threads(interpreter, target, probing):
    """As an application of a web server has that was called by several. Python does not end it meanwhile."""
    process = target("second_interpreter.py", "threads", interpreter=interpreter)
    threads = "SELECT threads FROM python.interpreters WHERE interpreter = 1"
    before = probing(process.pid, "query", "-f", "csv", threads).out
    for code, out in (("print(name); count + 1", "application\n42\n"), ("count += 1", ""), ("count", "42\n"),
                      ("import time; time.sleep(.1)", ""), ("threading.current_thread() and None", ""),
                      ("threading.active_count()", "3\n"), ("import sys; sys.stdout.write('x' * 200000); None", "x" * 200000)):
        done = probing(process.pid, "eval", "--interpreter", "1", code)
        assert (done.code, done.out, done.err) == (OK, out, ""), done
    done = probing(process.pid, "eval", "--interpreter", "1", "nope")
    assert done.code == FAILED and "NameError: name 'nope' is not defined" in done.err, done
    assert "the code raised in interpreter 1" in done.err and "interpreter.py" not in done.err, done
    if interpreter.version < (3, 12):
        for _ in range(3):  # those of its three threads, and ours
            assert probing(process.pid, "eval", "--interpreter", "1", LOCKS).out == "(4, 4)\n"
    assert probing(process.pid, "query", "-f", "csv", threads).out == before
    assert probing(process.pid, "eval", "6 * 7").out == "42\n"
    assert process.alive() and not process.errors()


@on_each
def test_what_is_refused(interpreter, target, probing):
    process = target("second_interpreter.py", "busy", interpreter=interpreter)
    for words, code, text in ((("1", "1"), FAILED, "already running"), (("9", "1"), FAILED, "there is no interpreter 9"),
                              (("x", "1"), USAGE, "'x' is no interpreter"), (("-1", "1"), USAGE, "'-1' is no interpreter"),
                              (("1", "1", "--json"), USAGE, "exclude each other")):
        done = probing(process.pid, "eval", "--interpreter=" + words[0], *words[1:])
        assert done.code == code and text in done.err, done
    assert process.alive()


@pytest.mark.parametrize("each", [each for each in support.one_per_version((3, 12)) if not each.free_threaded], ids=repr)
def test_others_run_under_their_own_gil(each, target, shared, probing):
    """Their frames are theirs: made and freed by us, they would damage their memory."""
    process = target("own_gils.py", shared.path, interpreter=each)
    for words in (("break", "job", "--max", "100ms"), ("trace", "--for", "100ms", "job"), ("step",), ("eval", "6 * 7")):
        probing(process.pid, *words)
        before = shared[0]
        wait_until(lambda: shared[0] > before + 100 or not process.alive())
        assert process.alive(), (words, process.errors())
    done = probing(process.pid, "eval", "--interpreter", "0", "job.__name__, __name__")
    assert (done.code, done.out) == (OK, "('job', '__main__')\n"), done
    done = probing(process.pid, "eval", "--interpreter", "1", "1")
    assert done.code == FAILED and "is already running code, and takes no other meanwhile" in done.err, done
    assert probing(process.pid, "eject").code == OK and process.alive()

# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing eval --interpreter N`: code in a subinterpreter, as one for each application has it."""
import pytest

import support
from environment import FAILED, OK, USAGE

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


@on_each
def test_what_is_refused(interpreter, target, probing):
    process = target("second_interpreter.py", "busy", interpreter=interpreter)
    for words, code, text in ((("1", "1"), FAILED, "already running"), (("9", "1"), FAILED, "there is no interpreter 9"),
                              (("x", "1"), USAGE, "'x' is no interpreter"), (("-1", "1"), USAGE, "'-1' is no interpreter"),
                              (("1", "1", "--json"), USAGE, "exclude each other")):
        done = probing(process.pid, "eval", "--interpreter=" + words[0], *words[1:])
        assert done.code == code and text in done.err, done
    assert process.alive()

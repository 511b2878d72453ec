# SPDX-License-Identifier: GPL-3.0-or-later
"""Code that is evaluated is the first to import threading: the program must not notice."""
import json
import os
import signal

import pytest

import agent
import support
from conftest import PROGRAMS
from environment import OK, wait_until

MODES = ["reads", "asks", "sleeps", "naps", "counts"]
CODES = {
    "users of it": "import logging, asyncio, queue, concurrent.futures, subprocess",
    "a thread": "import threading; t = threading.Thread(target=str); t.start(); t.join(); del t",
    "a look at it": """
def look():
    import os, threading
    main, current = threading.main_thread(), threading.current_thread()
    return [main is not current, main.name, main.ident != threading.get_ident(),
            current.name.startswith("Dummy"), getattr(main, "native_id", os.getpid()) == os.getpid(),
            main.is_alive(), main in threading.enumerate()]
print(look())
del look
""",
}
OUTPUT = {"a look at it": "[True, 'MainThread', True, True, True, True, True]\n"}


class Threadless(support.Target):
    def __init__(self, interpreter, mode, *options):
        # Without site: that of some installations imports threading.
        super().__init__(interpreter, PROGRAMS / "threadless.py", mode, options=("-S",) + options)
        assert self.line() == "ready"
        if mode in ("reads", "asks", "sleeps"):
            support.wait_for_rest(self.pid)

    def end(self):
        """Its findings, its later output, its exit status and stderr."""
        os.kill(self.pid, signal.SIGUSR1)
        self.send(b"\n\n")
        found = json.loads(self.line())
        out, _ = self._process.communicate(timeout=60)
        return found, (self._printed + out).decode(), self._process.returncode, self.errors()


def untouched(interpreter, mode, *options):
    with Threadless(interpreter, mode, *options) as process:
        return process.end()


def differences(found, expected):
    of_both = [(name, found[0].get(name), value) for name, value in expected[0].items()]
    return [each for each in [*of_both, *zip("output status errors".split(), found[1:], expected[1:])]
            if each[1] != each[2]]


def in_reach(interpreter, mode):
    """Before 3.7 a program with one thread has no GIL; it is made when the main thread comes to it."""
    return interpreter.version >= (3, 7) or mode in ("naps", "counts")


PLACES = [(interpreter, mode) for interpreter in support.INTERPRETERS for mode in MODES
          if in_reach(interpreter, mode)]


@pytest.mark.parametrize("interpreter, mode", PLACES, ids=lambda each: repr(each).strip("'"))
def test_the_program_does_not_notice(interpreter, mode, probing):
    expected = untouched(interpreter, mode, "-W", "error")
    assert expected[1].splitlines()[-1:] == ["at exit"] and expected[2:] == (0, ""), expected
    for name, code in CODES.items():
        with Threadless(interpreter, mode, "-W", "error") as process:
            done = probing(process.pid, "eval", code)
            wait_until(lambda: agent.ours(process.pid) == ["probing-agent"])
            assert done.code == OK and done.out == OUTPUT.get(name, ""), (name, done)
            assert differences(process.end(), expected) == [], name


@pytest.mark.parametrize("interpreter", [i for i in support.INTERPRETERS if i.version >= (3, 7)], ids=repr)
def test_a_main_thread_without_frames(interpreter, probing):
    """At its own prompt."""
    command = [interpreter.exe, "-S", "-i", "-c", "import os, sys; sys.ps1 = ''; os.write(1, b'ready\\n')"]
    with support.Program(command, env=interpreter.env) as process:
        assert process.line() == "ready"
        support.wait_for_rest(process.pid)
        done = probing(process.pid, "eval", "import logging")
        assert done.code == OK, done
        process.send(b"import threading; main = threading.main_thread()\n"
                     b"print(main is threading.current_thread(), len(threading.enumerate()), "
                     b"getattr(main, 'native_id', os.getpid()) == os.getpid())\n")
        assert process.line() == "True 1 True"
        status, errors = process.wait()
        assert status == 0 and "Error" not in errors, errors

# SPDX-License-Identifier: GPL-3.0-or-later
"""Ctrl-C in gdb and LLDB ends the command of ours that runs, and nothing else."""

import os
import select
import signal
import subprocess
import time

import debuggers
import pytest
from debuggers import known, sleeper  # noqa: F401 (fixtures)

GDB = pytest.param("gdb", marks=debuggers.needs_gdb)
LLDB = pytest.param("lldb", marks=debuggers.needs_lldb)
START = {"gdb": debuggers.gdb_alone(), "lldb": ["lldb", "--no-use-colors", "-x"]}
LOAD = {"gdb": "source %s" % (debuggers.PLUGIN / "probing-gdb.py"),
        "lldb": debuggers.LOAD_IN_LLDB}
ENVIRONMENT = {"gdb": debuggers.environment, "lldb": debuggers.lldb_environment}
NUMBERS = "SELECT count(*) FROM generate_series(1, 1000000000) AS a"
PYTHON = {"gdb": "python ", "lldb": "script "}


class Interactive:
    """A debugger with its commands from a pipe."""

    def __init__(self, name, pid):
        self.process = subprocess.Popen(
            [*START[name], "-p", str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True, env=ENVIRONMENT[name]())
        self.printed = ""
        self.say(LOAD[name])

    def say(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def read(self, timeout):
        """Whether it prints something more until then."""
        if not select.select([self.process.stdout], [], [], timeout)[0]:
            return False
        chunk = os.read(self.process.stdout.fileno(), 65536)
        self.printed += chunk.decode(errors="replace")
        return bool(chunk)

    def expect(self, text, timeout=60):
        end = time.monotonic() + timeout
        while text not in self.printed:
            debuggers.skip_if_refused(self.printed)
            assert self.read(max(0, end - time.monotonic())), self.printed

    def computes(self, pid):
        """Waits until a process has used some time of a processor."""
        def used():
            with open("/proc/%d/stat" % pid) as file:
                return sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13]))
        before, end = used(), time.monotonic() + 60
        while used() < before + 20:  # hundredths of a second, of all threads
            self.read(0.01)
            debuggers.skip_if_refused(self.printed)
            assert self.process.poll() is None and time.monotonic() < end, self.printed

    def press(self):
        os.kill(self.process.pid, signal.SIGINT)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


@pytest.mark.parametrize("name", [GDB, LLDB])
def test_a_query(name, sleeper):
    with Interactive(name, sleeper.pid) as session:
        session.say("probing query SELECT 'beg' || 'un' AS a")
        session.expect("begun")
        session.say("probing query " + NUMBERS)
        session.computes(session.process.pid)
        session.press()
        session.expect("probing: interrupted")
        session.say("probing query SELECT 'still ' || 'here' AS a")
        session.expect("still here")
        session.say("probing backtrace")
        session.expect("sleeper.py:13")
    assert sleeper.alive()


@pytest.mark.parametrize("name", [GDB, LLDB])
def test_code_that_is_evaluated(name, sleeper):
    with Interactive(name, sleeper.pid) as session:
        session.say("probing eval -t 600 while True: pass")
        session.computes(sleeper.pid)
        session.press()
        session.expect("probing: interrupted: the code ends as soon as the process runs")
        session.say("probing backtrace")
        session.expect("sleeper.py:13")
        session.say("detach")
        session.expect("detached")
    assert sleeper.alive()


# In a statement, which is C for long, and in a loop that reads values.
@pytest.mark.parametrize("code", ["p.query('%s')" % NUMBERS,
                                  "all(repr(f.locals) for f in iter(lambda: p.threads()[0].frames[0], 0))"],
                         ids=["query", "values"])
@pytest.mark.parametrize("name", [GDB, LLDB])
def test_a_script(name, code, sleeper):
    with Interactive(name, sleeper.pid) as session:
        session.say(PYTHON[name] + "import probing; p = probing.current(); print('beg' + 'un', flush=True)")
        session.expect("begun")
        session.say(PYTHON[name] + code)
        session.computes(session.process.pid)
        session.press()
        session.say(PYTHON[name] + "print('still', 'he' + 're', len(p.threads()), flush=True)")
        session.expect("still here 1")
        session.say("probing backtrace")
        session.expect("sleeper.py:13")
    assert sleeper.alive()

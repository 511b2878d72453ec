# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of all kinds under PROBING=1 behave as without it; CPython's own tests too, in the long
form."""

import re
import subprocess

import pytest
import support
from support import LONG
from wheels import installed, wheel  # noqa: F401

AGENT = "import os, sys\n" \
    "def agent():\n" \
    "    with open('/proc/self/maps') as file:\n" \
    "        return 'libprobing-agent' in file.read()\n"
# The output of each program is the same with PROBING=1.
PROGRAMS = {
    "closes all descriptors": "import os, sys\nos.closerange(3, 1000)\n"
    "file = open(os.devnull)\nprint(file.fileno())\n",
    "replaces itself": "import os, sys\nif len(sys.argv) == 1:\n"
    "    os.execv(sys.executable, [sys.executable, sys.argv[0], 'again'])\n"
    "print('again', sorted(name for name in os.environ if name.startswith('PROB')))\n",
    "threads": "import threading, sys\n"
    "print(threading.active_count(), [t.name for t in threading.enumerate()])\n"
    "print(len(sys._current_frames()))\n",
    "signals": "import os, signal, time\ngot = []\n"
    "signal.signal(signal.SIGALRM, lambda number, frame: got.append(number))\n"
    "signal.setitimer(signal.ITIMER_REAL, 0.01)\n"
    "while not got:\n    pass\nprint(got, signal.pthread_sigmask(signal.SIG_BLOCK, []))\n",
    "ends by a signal": "import os, signal\nprint('on', flush=True)\nos.kill(os.getpid(), 15)\n",
    "ends at once": "import os\nos.write(1, b'x')\nos._exit(5)\n",
    "an exception": "print('a')\nraise KeyError('x')\n",
    "warnings": "import warnings\nwarnings.simplefilter('error')\nprint(len(warnings.filters) > 0)\n",
    "audit hooks": "import sys\nseen = []\n"
    "getattr(sys, 'addaudithook', lambda hook: 0)(lambda name, arguments: seen.append(name))\n"
    "sum([1])\nprint(seen)\n",
    "tracing": "import sys\nprint(sys.gettrace(), sys.getprofile(), sys.getswitchinterval(),"
    " sys.getrecursionlimit())\n",
    "garbage": "import gc\nprint(gc.isenabled(), gc.get_threshold(), gc.callbacks, gc.garbage)\n",
    "streams": "import sys\nprint(sys.stdin.fileno(), sys.stdout.fileno(), sys.stderr.fileno())\n",
    "working folder": "import os, sys\nprint(os.path.basename(os.getcwd()), sys.argv[0],"
    " oct(os.umask(0)))\n",
    "imports": "import ctypes, json, struct, random\nprint(ctypes.c_int(3).value)\n",
}
SUITE = ["test_gc", "test_threading", "test_signal", "test_subprocess", "test_fork1", "test_sys",
         "test_os"] if LONG else ["test_gc"]


@pytest.fixture
def script(installed):
    def write(text, name="train.py"):
        (installed.folder / name).write_text(text)
        return name
    return write


@pytest.mark.parametrize("what", sorted(PROGRAMS))
def test_a_program_is_not_changed(installed, script, what):
    name = script(PROGRAMS[what])
    plain = installed.run(name)
    for mode in ("1", "regex:train"):
        seen = installed.run(name, PROBING=mode)
        out = seen.stdout.replace(b"['PROBING']", b"[]")
        assert (seen.returncode, out, seen.stderr) == \
            (plain.returncode, plain.stdout, plain.stderr), mode


@pytest.mark.parametrize("variables", [{"PYTHONSAFEPATH": "1"}, {"PYTHONDEVMODE": "1"},
                                       {"PYTHONUTF8": "1"}, {"PYTHONMALLOC": "debug"},
                                       {"PYTHONWARNINGS": "error"}], ids=repr)
def test_variables_of_python(installed, script, variables):
    name = script(AGENT + "print(agent(), [entry for entry in sys.path if 'probing' in entry])\n")
    plain = installed.run(name, **variables)
    seen = installed.run(name, PROBING="1", **variables)
    assert plain.stdout.startswith(b"False") and seen.stdout.startswith(b"True"), seen
    assert seen.stdout.split(b" ", 1)[1] == plain.stdout.split(b" ", 1)[1]
    assert (seen.returncode, seen.stderr) == (plain.returncode, plain.stderr)


def test_the_agent_survives_closed_descriptors(installed, script):
    name = script("import os, subprocess\nos.closerange(3, 1000)\n"
                  "print(subprocess.check_output([%r, str(os.getpid()), 'eval', '6 * 7',"
                  " '--no-inject']).decode())\n" % installed.program)
    assert installed.output(name, PROBING="1").strip() == "42"


def results(text):
    """How each test ended: {"test_x (test.test_os.Y)": "ok"}."""
    return dict(re.findall(r"^(test\w+ \([\w.]+\)).*?\.\.\. (ok|FAIL|ERROR|skipped)", text, re.M))


def passes_alone(installed, name):
    """The test of that name in a report of unittest, with the agent, in one of three tries."""
    method, path = re.match(r"(\w+) \(([\w.]+)\)", name).groups()
    path += "" if path.endswith("." + method) else "." + method
    return any(installed.run("-m", "unittest", path, timeout=300, PROBING="1").returncode == 0
               for _ in range(3))


@pytest.mark.parametrize("suite", SUITE)
def test_cpythons_own_tests(installed, suite):
    """Those that pass without the agent pass with it."""
    if installed.run("-c", "import test.%s" % suite).returncode:
        pytest.skip("this Python comes without its tests")
    ended = []
    for variables in ({}, {"PROBING": "1"}):
        try:
            done = installed.run("-m", "unittest", "-v", "test.%s" % suite, timeout=900,
                                 **variables)
        except subprocess.TimeoutExpired as error:
            pytest.fail("%s takes over 15 minutes: %s" % (suite, error))
        ended.append(results(done.stderr.decode("utf-8", "replace")))
    plain, seen = ended
    assert plain
    worse = {name for name, end in plain.items() if end == "ok" and seen.get(name) != "ok"}
    # Some have deadlines of their own, which a loaded machine misses.
    worse = {name for name in worse if not passes_alone(installed, name)}
    assert not worse, sorted(worse)

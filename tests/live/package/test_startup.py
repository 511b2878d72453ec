# SPDX-License-Identifier: GPL-3.0-or-later
"""PROBING=…: the agent is loaded when the program begins, and has no other visible effect."""

import json
import os
import subprocess

import pytest
from wheels import installed, wheel  # noqa: F401

AGENT = "import os, sys\n" \
    "def agent(pid='self'):\n" \
    "    with open('/proc/%s/maps' % pid) as file:\n" \
    "        return 'libprobing-agent' in file.read()\n"
REPORT = AGENT + "print(agent())\n"
STATE = """import os, signal, sys
print([name for name in sorted(sys.modules) if not name.startswith('probing')])
print(sys.path, sys.argv, sys.flags, sys.dont_write_bytecode)
print([signal.getsignal(number) for number in range(1, 32)])
print(sorted(name for name in os.environ if name.startswith('PROB')))
import ctypes
print(ctypes.CDLL(None).getpid() == os.getpid())
"""


@pytest.fixture
def script(installed):
    def write(text, name="train.py"):
        path = installed.folder / name
        path.write_text(text)
        return name
    return write


@pytest.mark.parametrize("variables, loaded", [
    ({}, False), ({"PROBING": "0"}, False), ({"PROBING": ""}, False),
    ({"PROBING": "1"}, True), ({"PROBING": "followed"}, True), ({"PROBE": "1"}, True),
    ({"PROBING": "2"}, True), ({"PROBE": "nested"}, True),
    ({"PROBING": "train.py"}, True), ({"PROBING": "other.py"}, False),
    ({"PROBING": "regex:^tr.*py$"}, True), ({"PROBING": "regex:^rain"}, False),
    ({"PROBING": "1", "PROBING_HOOK": "0"}, False)], ids=repr)
def test_modes(installed, script, variables, loaded):
    assert installed.output(script(REPORT), **variables) == "%s\n" % loaded
    if loaded and "train" in variables.get("PROBING", ""):
        assert installed.output("-W", "ignore", "-u", script(REPORT), **variables) == "True\n"


def test_init_file_and_mode(installed, script):
    script("import sys\nsys.made_by = __name__\n", "first.py")
    name = script(AGENT + "print(agent(), sys.made_by)\n")
    assert installed.output(name, PROBING="init:first.py+1") == "True probing_init\n"
    assert installed.output(name, PROBING="init:first.py") == "False probing_init\n"
    script("1 / 0\n", "first.py")
    result = installed.run(script(REPORT), PROBING="init:first.py+1")
    assert (result.returncode, result.stdout) == (0, b"False\n")
    assert result.stderr == b"probing: first.py: ZeroDivisionError: division by zero\n"


def other_user(number):
    os.setresuid(number, 0, 0)


def other_group(number):
    os.setresgid(number, 0, 0)


@pytest.mark.parametrize("variables", [{"PROBING": "1"}, {"PROBING": "init:first.py"}, {"PROBING_CRASH": "1"},
                                       {"PROBING": "1", "PROBING_PORT": "0"}], ids=repr)
@pytest.mark.parametrize("way", ["-I", "-E", "uid", "gid"])
def test_an_environment_that_is_not_trusted(installed, script, way, variables):
    """Python ignores the environment, or runs with another user's rights."""
    if not way.startswith("-") and os.geteuid():
        pytest.skip("only root can change what it runs as")
    script("import sys\nsys.made_by = __name__\n", "first.py")
    name = script(AGENT + "print(agent(), hasattr(sys, 'made_by'), sys.modules.get('probing_startup') is not None)\n")
    result = installed.run(*([way] if way.startswith("-") else []), name, **variables, preexec_fn={
        "uid": lambda: other_user(65534), "gid": lambda: other_group(65534)}.get(way))
    assert (result.returncode, result.stderr) == (0, b"") and result.stdout == b"False False True\n", result


@pytest.mark.parametrize("mode, children", [("1", False), ("2", True)])
def test_children(installed, script, mode, children):
    script(REPORT, "child.py")
    name = script(AGENT + "import subprocess\n"
                  "print(agent(), subprocess.check_output([sys.executable, 'child.py']).decode())\n"
                  "print('PROBING' in os.environ)\n")
    assert installed.output(name, PROBING=mode) == "True %s\n\n%s\n" % (children, children)


@pytest.mark.parametrize("mode, children", [("1", "1"), ("2", "2")])
def test_forked_children(installed, script, mode, children):
    """A library stays mapped over fork(); only the answering thread counts."""
    name = script("import os, sys\npid = os.fork()\n"
                  "if not pid:\n    print(len(os.listdir('/proc/self/task')))\n"
                  "    sys.stdout.flush()\n    os._exit(7)\n"
                  "print(os.waitpid(pid, 0)[1] >> 8)\n")
    if installed.version < (3, 7):
        children = "1"
    assert installed.output("-W", "ignore", name, PROBING=mode) == children + "\n7\n"


@pytest.mark.parametrize("mode", ["1", "2"])
def test_forks_are_not_warned_of(installed, script, mode):
    """From 3.12 on Python warns of threads; ours is not there while it forks, and is back after."""
    name = script("import logging, os, subprocess\n"  # logging has functions for forks, too
                  "for number in range(5):\n"
                  "    pid = os.fork()\n"
                  "    if not pid:\n        os._exit(number)\n"
                  "    print(os.waitpid(pid, 0)[1] >> 8)\n"
                  "print(subprocess.check_output([%r, str(os.getpid()), 'eval', '6 * 7',"
                  " '--no-inject']).decode())\n" % installed.program)
    result = installed.run("-W", "default", name, PROBING=mode)
    assert (result.returncode, result.stderr) == (0, b""), result
    assert result.stdout.split() == [b"0", b"1", b"2", b"3", b"4", b"42"]


def test_served_at_a_port(installed, script):
    served = "import os, re, subprocess\n" \
             "status = subprocess.check_output([%r, str(os.getpid()), 'agent']).decode()\n" \
             "address = re.search('served_at *([0-9.:]+)', status).group(1)\n" \
             "print(subprocess.check_output([%r, '-t', address, 'eval', '6 * 7']).decode())\n" \
             "print(os.environ.get('PROBING_PORT'))\n" % ((installed.program,) * 2)
    token = "0123456789abcdef" * 2
    result = installed.run(script(served), PROBING_PORT="0", PROBING_AUTH_TOKEN=token)
    assert (result.returncode, result.stderr) == (0, b""), result
    assert result.stdout.split() == [b"42", b"None"]
    result = installed.run(script("import probing\nprobing.init(listen='127.0.0.1:0')\n"))
    lines = result.stderr.decode().splitlines()
    assert "is served at 127.0.0.1:" in lines[0] and lines[1].startswith("PROBING_AUTH_TOKEN=")
    result = installed.run(script("print('ran')\n"), PROBING="0", PROBING_PORT="0")
    assert (result.stdout, result.stderr) == (b"ran\n", b"")


def test_nothing_else_shows(installed, script):
    name = script(STATE)
    plain = installed.output(name)
    for mode in ("0", "1", "regex:train"):
        seen = installed.output(name, PROBING=mode)
        if mode != "1":
            seen = seen.replace("['PROBING']", "[]")
        assert seen == plain


def test_exit_status_and_streams(installed, script):
    name = script("import sys\nprint('out')\nsys.stderr.write('err')\nsys.exit(3)\n")
    result = installed.run(name, PROBING="1")
    assert (result.returncode, result.stdout, result.stderr) == (3, b"out\n", b"err")


@pytest.mark.parametrize("option, loaded", [("-E", False), ("-I", False), ("-S", False), ("-s", True)])
def test_isolated(installed, script, option, loaded):
    assert installed.output(option, script(REPORT), PROBING="1") == "%s\n" % loaded


def test_multiprocessing(installed, script):
    name = script("import multiprocessing as mp\nif __name__ == '__main__':\n"
                  "    for kind in 'spawn', 'fork', 'forkserver':\n"
                  "        with mp.get_context(kind).Pool(2) as pool:\n"
                  "            print(pool.map(abs, [-1, 2]))\n")
    for mode in ("1", "2"):
        result = installed.run("-W", "ignore", name, PROBING=mode)
        assert (result.returncode, result.stdout) == (0, b"[1, 2]\n" * 3), result


@pytest.mark.parametrize("variables, words", [
    ({"PROBING": "regex:("}, "is not a regular expression"),
    ({"PROBING": "1", "PROBING_AGENT": "/nowhere"}, "the agent's library is not at /nowhere"),
    ({"PROBING_PORT": "http"}, "'http' is no port")], ids=repr)
def test_errors_are_one_line_and_the_program_runs(installed, script, variables, words):
    result = installed.run(script("print('ran')\n"), **variables)
    assert (result.returncode, result.stdout) == (0, b"ran\n")
    error = result.stderr.decode()
    assert error.startswith("probing: ") and words in error and error.count("\n") == 1


def test_init_and_stop(installed, script):
    name = script("import os, probing\n"
                  "def count():\n    return len(os.listdir('/proc/self/task'))\n"
                  "probing.init()\nprobing.init()\nprint(count())\n"
                  "probing.stop()\nprint(count())\nprobing.init()\nprint(count())\n")
    assert installed.output(name) == "2\n1\n2\n"


def test_the_same_agent_as_injected(installed, script):
    name = script("import os, subprocess\npid = str(os.getpid())\n"
                  "for words in ['inject'], ['eject'], ['eval', 'pid + pid']:\n"
                  "    print(subprocess.check_output([%r, pid] + words).decode()"
                  ".replace(pid, 'PID').strip())\n" % installed.program)
    lines = installed.output(name, PROBING="1").splitlines()
    assert "already" in lines[0]
    assert lines[1] == "the agent of process PID has stopped, and its library is unmapped"
    assert lines[2] == "'PIDPID'"
    assert not os.path.exists(installed.folder / "core")


def test_crash_records_at_start(installed, script, tmp_path):
    name = script("import os, sys\nprint(len(os.listdir('/proc/self/task')))\nsys.stdout.flush()\n"
                  "def die():\n    os.abort()\ndie()\n")
    result = installed.run(name, PROBING_CRASH="count=3,folder=%s" % (tmp_path / "records"))
    assert (result.returncode, result.stdout) == (-6, b"1\n"), result
    assert b"crash record" in result.stderr and len(list((tmp_path / "records").iterdir())) == 1
    result = installed.run(script(REPORT), PROBING_CRASH="colour=3")
    assert (result.returncode, result.stdout) == (0, b"False\n")
    assert b"PROBING_CRASH is 1, or has" in result.stderr
    assert installed.output(script(REPORT), PROBING_CRASH="0") == "False\n"


def test_threads_of_a_program_with_crash_records(installed, script, tmp_path):
    """Their exceptions are recorded, and each gets a stack for handlers, which goes when it ends."""
    name = script("import sys\nbefore = 'threading' in sys.modules\nimport threading\n"
                  "def count():\n    with open('/proc/self/maps') as file:\n"
                  "        return len(list(file))\n"
                  "def fail():\n    raise ValueError('no luck')\n"
                  "def run(target):\n    thread = threading.Thread(target=target)\n"
                  "    thread.start()\n    thread.join()\n"
                  "run(int)\nfirst = count()\n"
                  "for _ in range(200):\n    run(int)\n"
                  "print(before, count() - first < 50)\n"
                  "run(fail)\n")
    records = tmp_path / "records"
    result = installed.run(name, PROBING_CRASH="folder=%s" % records)
    assert (result.returncode, result.stdout) == (0, b"False True\n"), result
    if installed.version < (3, 8):
        return
    path, = records.iterdir()
    listed = subprocess.run([installed.program, "crashes", str(records), "--json"],
                            stdout=subprocess.PIPE, check=True)
    assert [row["reason"] for row in json.loads(listed.stdout.decode())] == ["ValueError: no luck"]

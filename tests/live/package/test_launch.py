# SPDX-License-Identifier: GPL-3.0-or-later
"""`probing launch -- PROGRAM`: the agent is loaded, and the program cannot notice otherwise."""

import os
import pathlib
import signal
import subprocess

import pytest
import support
from wheels import installed, wheel  # noqa: F401

PROGRAM = os.environ["PROBING_BINARY"]
ROOT = pathlib.Path(__file__).resolve().parents[3]
AGENT = "'libprobing-agent' in open('/proc/self/maps').read()"
STATE = """import os, signal, sys, threading
print(sorted(sys.modules), sys.path, sorted(sys.path_importer_cache), sys.argv, sys.flags)
print([signal.getsignal(number) for number in range(1, 32)], len(threading.enumerate()))
print(sorted(os.environ.items()))
print(os.popen("env | sort").read())
"""
ONE_EACH = pytest.mark.parametrize("python", support.one_per_version(first=(3, 6)), ids=repr)


def run(words, program=PROGRAM, options=(), **more):
    """A launched program; without PROGRAM, one that is started as usual."""
    launch = [program, "launch", *options, "--"] if program else []
    env = {**os.environ, **more.pop("env", {})}
    return subprocess.run([*launch, *map(str, words)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=env, timeout=60, check=False, **more)


@ONE_EACH
def test_evaluates_without_injection(python, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import os, subprocess\nlr = 0.5\nprint(%s, os.getpid())\n"
                      "print(subprocess.check_output([%r, str(os.getpid()), 'eval', 'lr'])"
                      ".decode())\n" % (AGENT, PROGRAM))
    result = run([python.exe, script], env=python.env)
    there, pid, value = result.stdout.decode().split()
    assert (there, value, result.stderr, result.returncode) == ("True", "0.5", b"", 0), result
    assert int(pid) > 0


@ONE_EACH
@pytest.mark.parametrize("paths", [None, "/nowhere", "/nowhere:/tmp", ":"])
def test_the_program_sees_what_it_would_see(python, paths, tmp_path):
    script = tmp_path / "state.py"
    script.write_text(STATE)
    env = {**python.env, "PYTHONPATH": paths} if paths else python.env
    plain = run([python.exe, script, "a"], None, env=env)
    assert plain.returncode == 0
    launched = run([python.exe, script, "a"], env=env)
    assert (launched.stdout, launched.stderr) == (plain.stdout, plain.stderr)


@ONE_EACH
@pytest.mark.parametrize("code", ["import sys\nsys.mine = __name__\n", "1 / 0\n",
                                  "import nowhere_to_be_found\n"])
def test_the_sitecustomize_of_the_program_runs(python, code, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(code)
    words = [python.exe, "-c", "import sys; print(getattr(sys, 'mine', None))"]
    env = {**python.env, "PYTHONPATH": str(tmp_path)}
    plain, launched = run(words, None, env=env), run(words, env=env)
    assert (launched.stdout, launched.returncode) == (plain.stdout, plain.returncode)
    assert launched.stderr.splitlines()[:1] == plain.stderr.splitlines()[:1]


@ONE_EACH
def test_exit_code_signal_and_input_are_the_programs(python):
    def start(code, **more):
        return run([python.exe, "-c", code], env=python.env, **more)
    assert start("import sys; sys.exit(7)").returncode == 7
    assert start("import os; os.kill(os.getpid(), 9)").returncode == -signal.SIGKILL
    assert start("1 / 0").returncode == 1
    assert start("import sys; print(sys.stdin.read())", input=b"typed").stdout == b"typed\n"
    with subprocess.Popen([PROGRAM, "launch", "--", python.exe, "-c",
                           "import os, sys; print(os.getpid()); sys.stdout.flush(); "
                           "sys.stdin.read()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env={**os.environ, **python.env}) as process:
        assert int(process.stdout.readline()) == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM


@ONE_EACH
@pytest.mark.parametrize("options, there", [((), "False"), (("-r",), "True")])
def test_children(python, options, there):
    code = "import subprocess, sys; print(%s); sys.stdout.flush(); " \
        "subprocess.check_call([sys.executable, '-c', %r])" % (AGENT, "print(%s)" % AGENT)
    result = run([python.exe, "-c", code], options=options, env=python.env)
    assert (result.stdout.decode().split(), result.stderr) == (["True", there], b"")


def test_a_script_that_starts_python(tmp_path):
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/sh\nexec python3 \"$@\"\n")
    script.chmod(0o755)
    assert run([script, "-c", "print(%s)" % AGENT]).stdout == b"True\n"
    assert run(["env", "python3", "-c", "print(%s)" % AGENT]).stdout == b"True\n"


@pytest.mark.parametrize("options", [["-I"], ["-uE"], ["-W", "ignore", "-S"], ["-Xdev", "-sE"]],
                         ids=" ".join)
def test_options_that_prevent_it_are_refused(options):
    result = run(["python3", *options, "-c", "print('ran')"])
    assert (result.returncode, result.stdout) == (3, b"")
    assert b"Python's option -" + options[-1][-1].encode() in result.stderr


@pytest.mark.parametrize("options", [["-WIgnore"], ["-u", "-W", "IES"], ["-X", "IES"]],
                         ids=" ".join)
def test_letters_of_other_options_are_no_reason(options):
    result = run(["python3", *options, "-c", "print(%s)" % AGENT, "-I"])
    assert (result.returncode, result.stdout) == (0, b"True\n"), result


@pytest.mark.parametrize("words, code", [
    (["launch"], 2), (["launch", "--"], 2), (["launch", "python3"], 2),
    (["launch", "--", "/nowhere"], 127), (["launch", "--", "/etc/passwd"], 126),
    (["4242", "launch", "--", "python3"], 2)], ids=str)
def test_what_cannot_be_started(words, code):
    result = subprocess.run([PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            check=False)
    assert (result.returncode, result.stdout) == (code, b"")
    assert result.stderr.startswith(b"probing: ")


def test_an_agent_that_cannot_be_loaded_is_one_line(tmp_path):
    library = tmp_path / "agent.so"
    library.write_text("no library")
    result = run(["python3", "-c", "print('ran')"], env={"PROBING_AGENT": str(library)})
    assert (result.returncode, result.stdout) == (0, b"ran\n")
    assert result.stderr.startswith(b"probing: the agent cannot be loaded: ")
    assert result.stderr.count(b"\n") == 1
    missing = run(["python3", "-c", "print('ran')"], env={"PROBING_AGENT": "/nowhere"})
    assert (missing.returncode, missing.stdout) == (1, b"")


def test_from_where_make_installs_it(tmp_path):
    subprocess.run(["make", "-s", "install", "DESTDIR=%s" % tmp_path, "prefix=/usr",
                    "O=%s" % pathlib.Path(PROGRAM).parent], cwd=str(ROOT), check=True,
                   stdout=subprocess.DEVNULL)
    program = str(tmp_path / "usr/bin/probing")
    result = run(["python3", "-c", "print(%s)" % AGENT], program)
    assert (result.stdout, result.stderr) == (b"True\n", b"")
    # The program that serves it is found from there, too.
    served = "import os, re, subprocess; print(bool(re.search('served_at *[0-9.]+:', " \
        "subprocess.check_output([%r, str(os.getpid()), 'agent']).decode())))" % program
    result = run(["python3", "-c", served], program, env={"PROBING_PORT": "0", "PROBING_AUTH_TOKEN": "a-token-for-the-tests"})
    assert (result.stdout, result.stderr) == (b"True\n", b"")


def test_from_the_wheel(installed):
    result = run([installed.python, "-c", "print(%s)" % AGENT], installed.program)
    assert (result.stdout, result.stderr) == (b"True\n", b"")

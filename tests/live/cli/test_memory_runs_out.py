# SPDX-License-Identifier: GPL-3.0-or-later
"""A call for memory that fails is an error of the command that made it: no crash, and no answer without a part.

Each command, and a program with libprobing, runs with the first, second, … call failing, and with all calls failing
from there on: some of them in `make check`, more in `make check-all`, each in the long form."""
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

import support

LIBRARY = pathlib.Path(support.BINARY).parent / "libprobing.so"
# By command: what is run, where FIRST and SECOND are processes, BOTH matches the two, and FOLDER is empty.
# What is behind "same" prints the same each time.
COMMANDS = {
    "debug": ["FIRST", "debug", "--dump", "--locals"],
    "backtrace": ["FIRST", "backtrace", "--native"],
    "print": ["same", "FIRST", "print", "__name__"],
    "dump": ["FIRST", "dump", "--json"],
    "list": ["list"],
    "overview": ["overview", "--json"],
    "why": ["why", "--json"],
    "run": ["same", "run", "--", "true"],
    "check": ["check", "FIRST"],
    "server": ["same", "server", "FIRST"],
    "query": ["same", "-t", "FIRST", "-t", "SECOND", "query", "-f", "csv",
              "SELECT t._pid, t.name, s.func FROM python.threads t JOIN python.stacks s USING (tid) ORDER BY 1, 2, 3"],
    "tables": ["same", "tables"],
    "ring": ["FIRST", "ring"],
    "crashes": ["same", "crashes", "FOLDER"],
    "performance": ["-t", "FIRST", "performance", "--mode=wall", "--cc", "--duration", "50ms"],
    "performance --all": ["performance", "-t", "BOTH", "--all", "--mode=wall", "--duration", "50ms"],
    "flamegraph": ["-t", "FIRST", "flamegraph", "--mode=wall", "--duration", "50ms", "-o", "-"],
    "symbolize": ["RECORDING", "symbolize", "--from", "LIBRARIES", "-o", "named.profile"],
    "top": ["top", "FIRST", "--batch", "--count", "1", "--interval", "50ms"],
    "memory": ["FIRST", "memory"],
    "cluster": ["cluster", "nodes", "FIRST", "SECOND"],
    "snapshot": ["FIRST", "snapshot", "-o", "-"],
    "inject": ["FIRST", "inject"],
    "launch": ["launch", "--", "true"],
    "skill": ["same", "skill", "list"],
    "export": ["export", "prometheus", "FIRST"],
    "eval": ["same", "FIRST", "eval", "6 * 7"],
    "config": ["same", "FIRST", "config"],
    "trace": ["FIRST", "trace", "--list"],
    "resume": ["FIRST", "resume"],
    "step": ["FIRST", "step"],
    "agent": ["FIRST", "agent"],
    "doctor": ["doctor", "FIRST"],
    "gdb": ["same", "gdb", "--print"],
    "lldb": ["same", "lldb", "--print"],
    "completion": ["same", "completion", "bash"],
    "help": ["same", "help", "performance"],
}
LEFT_OUT = {"record": "it runs until the processes end", "watch": "the same", "node": "it runs for good", "serve": "it runs until it is stopped",
            "mcp": "it runs commands that are here", "repl": "it reads a terminal",
            "break": "it waits for a line", "dap": "it waits for an editor", "script": "that is Python", "diff": "the same",
            "eject": "it leaves nothing to eject for the next run"}


def points(count):
    """Which calls fail: the first ones, and as many of all as there is time for."""
    most = 12 if os.environ.get("PROBING_MAIN_PATH") else support.count(30, count)
    return sorted({*range(1, min(count, most // 2) + 1), *range(1, count + 1, max(1, count // most))})


@pytest.fixture(scope="module")
def fails(build):
    return build.program("fail_malloc", "-shared", "-fPIC")


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    interpreter = support.INTERPRETERS[-1]
    script = tmp_path_factory.mktemp("program") / ("sleeper-%d.py" % os.getpid())
    shutil.copy(support.HERE / "programs" / "sleeper.py", script)
    with support.Target(interpreter, script) as first, support.Target(interpreter, script) as second:
        for process in (first, second):
            support.wait_for_sleep(process.pid, "pipe_read")
        subprocess.run([support.BINARY, str(first.pid), "eval", "1"], stdout=subprocess.DEVNULL, check=True)
        recording = tmp_path_factory.mktemp("recording") / "run.profile"
        subprocess.run([support.BINARY, str(first.pid), "perf", "--cc", "--duration", "50ms", "-o", recording],
                       stdout=subprocess.DEVNULL, check=True)
        yield {"RECORDING": str(recording), "LIBRARIES": os.path.dirname(support.BINARY), "FIRST": str(first.pid), "SECOND": str(second.pid), "BOTH": "/%s/" % script.stem,
               "FOLDER": str(tmp_path_factory.mktemp("empty"))}
        assert first.alive() and second.alive()


def run(command, fails, folder, **variables):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                          check=False, cwd=folder, env=dict(os.environ, LD_PRELOAD=str(fails), PROBING_TARGET="",
                                                            XDG_CACHE_HOME=str(folder), **variables))


def try_each(command, fails, folder, same):
    run(command, fails, folder)  # now there is a cache for the next run
    whole = run(command, fails, folder, FAIL_COUNT=str(folder / "count"))
    count, wrong = int((folder / "count").read_text()), []
    for number in points(count):
        for more in ({}, {"FAIL_ALL": "1"}):
            done = run(command, fails, folder, FAIL_AT=str(number), **more)
            if done.returncode < 0:
                wrong.append((number, more, signal.Signals(-done.returncode).name))
            elif same and not done.returncode and not done.stderr and done.stdout != whole.stdout:
                wrong.append((number, more, "an answer without a part", done.stdout[-200:]))
            elif done.returncode and not (done.stderr or done.stdout):
                wrong.append((number, more, "failed without a word", done.returncode))
    assert not wrong, "of %d calls: %s" % (count, wrong[:5])


def test_all_commands_are_here():
    told = subprocess.run([support.BINARY, "--help"], stdout=subprocess.PIPE, check=True).stdout.decode()
    names = set(re.findall(r"^  ([a-z]+)(?:, [a-z, ]+)?  +[A-Z]", told.split("Commands:")[1].split("A target is")[0], re.M))
    assert len(names) > 35 and names == {name.split()[0] for name in COMMANDS} | set(LEFT_OUT)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command(name, fails, processes, tmp_path):
    words = COMMANDS[name]
    same = words[0] == "same"
    try_each([support.BINARY, *(processes.get(word, word) for word in words[same:])], fails, tmp_path, same)


def test_a_program_with_the_library(fails, processes, tmp_path):
    program = tmp_path / "stacks"
    subprocess.run(["cc", "-I", support.ROOT / "lib", support.ROOT / "docs/examples/stacks.c", "-o", program, LIBRARY,
                    "-Wl,-rpath," + str(LIBRARY.parent)], check=True)
    try_each([program, processes["FIRST"]], fails, tmp_path, True)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Pythons inside of other programs, several of them in one process, and subinterpreters."""
import json
import os
import shutil
import subprocess
import sys

import pytest

import environment
import support
from environment import (ONE_EACH, OK, PROGRAMS, SCRIPT, Started, assert_read, assert_untouched,
                         embed, outline, python, strip)

WITH_LIBRARY = [i for i in support.one_per_version() if environment.libraries(i)[0]]
NEWEST_LIBRARY = pytest.mark.parametrize("interpreter", WITH_LIBRARY[-1:], ids=repr)
WITH_LIBRARY_OR_ARCHIVE = pytest.mark.parametrize("interpreter, static", [
    pytest.param(interpreter, static, id="%s-%s" % (interpreter, "static" if static else "shared"))
    for interpreter in support.one_per_version() for static in (False, True)
    if environment.libraries(interpreter)[static]])


@pytest.fixture
def read(probing):
    """read(PID, *options): the dump as Python data."""

    def read_it(pid, *options):
        result = probing("-p", pid, "debug", "--dump", "--json", *options)
        assert result.code == OK, result
        found = json.loads(result.out)
        assert not found["warnings"], found
        return found

    return read_it


def main_of(found):
    return next(thread for thread in found["threads"] if thread["name"] == "MainThread")


# One Python in a server

@WITH_LIBRARY_OR_ARCHIVE
def test_server(interpreter, static, read):
    """Python's main thread is not that of the process, which has no Python state at all."""
    server, env = embed(interpreter, "env_embed.c", static)
    with Started([server, SCRIPT], rest=3, env=dict(env, BUSY="1")) as process:
        for options in (), ("--nonblocking",), ("--freeze",):
            found = read(process.python, *options)
            assert_read(found, busy=True, reads=("idle", "stopped"))
            assert main_of(found)["tid"] != process.python
            assert process.python not in [thread["tid"] for thread in found["threads"]]
        native = read(process.python, "--native")
        first = next(t for t in native["threads"] if t["tid"] == process.python)
        assert first["interpreter"] is None and python(first) == []
        assert "main" in [frame["func"] for frame in first["frames"]], first
        assert_untouched(process.python)


@WITH_LIBRARY_OR_ARCHIVE
def test_server_whose_first_thread_has_ended(interpreter, static, read):
    """The process looks like a zombie, but is alive."""
    server, env = embed(interpreter, "env_embed.c", static)
    with Started([server, SCRIPT, "exit"], env=dict(env, BUSY="1")) as process:
        assert support.thread_status(process.python)["State"][0] == "Z"
        for options in (), ("--nonblocking",), ("--native",), ("--freeze",):
            found = read(process.python, *options)
            found["threads"] = [t for t in found["threads"] if t["interpreter"] is not None]
            assert_read(found, busy=True, reads=("idle", "stopped"))
        assert_untouched(process.python, "RSZ")


@NEWEST_LIBRARY
def test_backtrace_of_a_server(interpreter, probing):
    """Without --tid, the thread that is Python's main one."""
    server, env = embed(interpreter, "env_embed.c")
    with Started([server, SCRIPT], env=env) as process:
        result = probing("-p", process.python, "backtrace", "--json")
        assert result.code == OK, result
        thread, = json.loads(result.out)["threads"]
        assert thread["name"] == "MainThread" and python(thread)[0] == "rest"


@NEWEST_LIBRARY
def test_list_has_servers(interpreter, probing):
    server, env = embed(interpreter, "env_embed.c")
    with Started([server, SCRIPT], env=env) as process:
        result = probing("list", "--json")
        assert result.code == OK, result
        listed = {listed["pid"]: listed for listed in json.loads(result.out)}
        version = listed[process.python]["version"]
        assert version.startswith("%d.%d" % interpreter.version)


# Several Pythons

def homes(*interpreters):
    for interpreter in interpreters:
        yield environment.libraries(interpreter)[0]
        yield environment.parts(interpreter)[2]


SEVERAL = [i for i in WITH_LIBRARY if (3, 8) <= i.version < (3, 14)]


@pytest.mark.skipif(len(SEVERAL) < 3, reason="less than three shared libraries of Python here")
@pytest.mark.parametrize("how", ["dlopen", "dlmopen"])
def test_several_in_one_process(how, read, probing):
    program = environment.build("env_several.c", "env_several", "-ldl", "-lpthread")
    chosen = [SEVERAL[0], SEVERAL[len(SEVERAL) // 2], SEVERAL[-1]]
    with Started([program, how, *homes(*chosen)], rest=3) as process:
        for options in (), ("--nonblocking",), ("--freeze",), ("--native",):
            found = read(process.python, *options)
            inner = [python(thread)[0] for thread in found["threads"] if python(thread)]
            assert sorted(inner) == ["first", "second", "third"], found
            for thread in found["threads"]:
                assert thread["error"] is None, thread
        assert_untouched(process.python)
        if how == "dlmopen":
            answer = probing(process.python, "eval", "1 + 1")
            assert answer.code and "a namespace of its own" in answer.err, answer


@pytest.mark.skipif(len(WITH_LIBRARY) < 2, reason="less than two shared libraries of Python here")
@pytest.mark.parametrize("interpreter", support.INTERPRETERS, ids=repr)
def test_second_library_that_is_not_initialised(interpreter, read):
    """Mapped before or behind the true one, it must not be taken for it."""
    if not interpreter.has_ctypes:
        pytest.skip("no ctypes in this build")
    other = next(i for i in reversed(WITH_LIBRARY) if i.version != interpreter.version)
    library = environment.libraries(other)[0]
    if not environment.runs(interpreter.exe, "-c", "import ctypes; ctypes.CDLL(%r)" % library,
                            env=interpreter.env):
        pytest.skip("its C library is too old for the libpythons here")
    with Started([interpreter.exe, PROGRAMS / "env_lone_library.py", library, SCRIPT],
                 env=interpreter.env) as process:
        with open("/proc/%d/maps" % process.python, encoding="utf-8") as maps:
            assert library in maps.read()
        found = read(process.python)
        assert_read(found)
        assert found["target"]["python"]["version"].startswith("%d.%d." % interpreter.version)


# Subinterpreters

@WITH_LIBRARY_OR_ARCHIVE
def test_subinterpreters(interpreter, static, read):
    """Made in C: each has a thread of C and one of threading."""
    program, env = embed(interpreter, "env_interpreters.c", static)
    with Started([program], env=env) as process:
        process.line()
        process.line()
        environment.settle(process.python, 6)
        for options in (), ("--nonblocking",), ("--freeze",), ("--locals", "--native"):
            found = read(process.python, *options)
            seen = {}
            for thread in found["threads"]:
                if python(thread):
                    seen.setdefault(thread["interpreter"], []).append(
                        (thread["name"], python(thread)[0]))
                assert thread["error"] is None, thread
            assert {i: sorted(threads) for i, threads in seen.items()} == {
                i: [("MainThread", "interpreter_%d" % i), ("helper-%d" % i, "thread_of_%d" % i)]
                for i in range(3)}, found
        assert_untouched(process.python)


@pytest.mark.parametrize("interpreter", support.one_per_version((3, 8)), ids=repr)
def test_interpreters_made_by_python(interpreter, read):
    """A thread that runs code in another interpreter is listed in both."""
    with Started([interpreter.exe, PROGRAMS / "env_interpreters.py"], env=interpreter.env,
                 rest=3) as process:
        for options in (), ("--nonblocking",), ("--freeze",):
            found = read(process.python, *options)
            for number in 1, 2:
                inner = [t for t in found["threads"] if "inside_%d" % number in python(t)]
                assert len(inner) == 1, found
                assert outline(inner[0], 1) == [("inside_%d" % number, "<script>", 5)] or \
                    outline(inner[0], 1) == [("inside_%d" % number, "<string>", 5)], inner
                assert inner[0]["interpreter"] == number, inner
                outer = [t for t in found["threads"] if t["name"] == "runs-%d" % number]
                assert [t["interpreter"] for t in outer] == [0], found
                assert "run" in python(outer[0]) and outer[0]["tid"] == inner[0]["tid"], found


# One file that unpacks itself

def unpacked(interpreter, folder):
    """As PyInstaller's programs: a launcher of another name, and a libpython in a folder of /tmp
    that is gone while it runs."""
    shared = environment.libraries(interpreter)[0]
    folder.mkdir()
    library = folder / os.path.basename(shared)
    shutil.copy(shared, str(library))
    strip(library)
    launcher = folder / "trainer"
    subprocess.run(["cc", "-o", str(launcher), str(PROGRAMS / "env_embed.c"), str(library),
                    "-lpthread", "-Wl,-rpath," + str(folder)], check=True)
    strip(launcher)
    return launcher


@pytest.mark.parametrize("interpreter", WITH_LIBRARY, ids=repr)
def test_unpacked_program(interpreter, read, tmp_path):
    launcher = unpacked(interpreter, tmp_path / "_MEI123")
    env = dict(interpreter.env, PYTHONHOME=environment.parts(interpreter)[2],
               LD_LIBRARY_PATH=str(launcher.parent), BUSY="1")
    with Started([launcher, SCRIPT], env=env) as process:
        shutil.rmtree(str(launcher.parent))
        for options in (), ("--nonblocking",):
            assert_read(read(process.python, *options), busy=True)


@environment.needs("PyInstaller is not installed", sys.executable, "-m", "PyInstaller", "--version")
def test_pyinstaller(read, tmp_path):
    subprocess.run([sys.executable, "-m", "PyInstaller", "--onefile", "--name", "trainer",
                    "--distpath", str(tmp_path), "--workpath", str(tmp_path / "work"),
                    "--specpath", str(tmp_path), str(SCRIPT)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with Started([tmp_path / "trainer"], env=dict(os.environ, BUSY="1")) as process:
        found = read(process.python)
        threads = {thread["name"]: thread for thread in found["threads"]}
        assert python(threads["MainThread"])[:2] == ["rest", "main"], found
        assert python(threads["worker"])[0] == "compute", found


# Compiled programs

def test_compiled_by_nuitka(read, tmp_path):
    """Its frames say that generators own them, which no chain of frames may end in."""
    having = [i for i in support.INTERPRETERS if i.version >= (3, 11) and
              environment.runs(i.exe, "-c", "import nuitka", env=i.env)]
    if not having:
        pytest.skip("no interpreter here has Nuitka")
    source = tmp_path / "compiled.py"
    source.write_text("import time\n\ndef numbers():\n    yield 1\n    time.sleep(600)\n\n"
                      "def use():\n    for _ in numbers():\n        print('ready', flush=True)\n\n"
                      "use()\n")
    subprocess.run([having[0].exe, "-m", "nuitka", source], cwd=tmp_path, env=having[0].env,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    with support.Program([tmp_path / "compiled.bin"]) as process:
        assert process.line() == "ready"
        support.wait_for_sleep(process.pid, "hrtimer_nanosleep")
        found = read(process.pid)
        assert found["threads"][0]["error"] is None
        assert [frame["func"] for frame in found["threads"][0]["frames"]] == \
            ["numbers", "use", "<module>"]

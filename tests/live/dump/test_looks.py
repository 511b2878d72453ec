# SPDX-License-Identifier: GPL-3.0-or-later
"""The layout of a dump: the start of threads in one line, colours, source on a terminal, C functions."""

import contextlib
import json
import re
import subprocess

import pytest

from support import Program

LIBRARY = """
long crunch_numbers(long rounds)
{
	volatile long sum = 0;
	for (long i = 0; i < rounds; i++)
		sum += i;
	return sum;
}
"""
SCRIPT = """
import ctypes, sys, threading, time
library = ctypes.CDLL(%r)
library.crunch_numbers.argtypes = [ctypes.c_long]
started = threading.Event()

class Own(threading.Thread):
    def run(self):
        started.set()
        time.sleep(1000)

def crunch():
    while True:
        library.crunch_numbers(1 << 40)

Own(daemon=True, name="own").start()
started.wait()
threading.Thread(target=crunch, daemon=True, name="cruncher").start()
print("ready", flush=True)
time.sleep(1000)
"""


@contextlib.contextmanager
def running(folder, python, symbol):
    """A program with a thread in a C function of that name."""
    (folder / "crunch.c").write_text(LIBRARY.replace("crunch_numbers", symbol))
    library = folder / "libcrunch.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, folder / "crunch.c"], check=True)
    (folder / "looks.py").write_text((SCRIPT % str(library)).replace("crunch_numbers", symbol))
    with Program([python.exe, folder / "looks.py"], env=python.env) as program:
        program.line()
        yield program


@pytest.fixture(scope="module")
def crunching(tmp_path_factory, newest):
    with running(tmp_path_factory.mktemp("looks"), newest, "crunch_numbers") as program:
        yield program


def shown(probing, process, *options):
    """Text of a dump; the thread that computes may not have got there yet."""
    while True:
        text = probing(process.pid, "debug", "--dump", *options).out
        if re.search(r"^\d+ cruncher +running.*\n    (_?\w+crunch|crunch) ", text, re.M):
            return text


def block(text, name):
    """The lines of one thread, without the first."""
    return re.search(r"^\d+ %s .*\n((?:    .*\n)+)" % name, text, re.M).group(1).splitlines()


def test_the_start_of_threads_is_one_line(probing, crunching):
    text = shown(probing, crunching)
    assert re.fullmatch(r"    Thread\.run +threading\.py:\d+   \(and 2 calls that start the thread\)",
                        block(text, "cruncher")[-1]), text
    own = block(text, "own")
    assert own[0].startswith("    Own.run ") and len(own) == 2, text
    assert own[1].endswith("   (and 1 call that starts the thread)") and "_bootstrap_inner" in own[1]
    whole = block(shown(probing, crunching, "--no-fold"), "cruncher")
    assert [line.split()[0] for line in whole[-3:]] == [
        "Thread.run", "Thread._bootstrap_inner", "Thread._bootstrap"], whole
    # Frames with details are shown.
    for option in ("--source", "--locals"):
        text = shown(probing, crunching, option)
        assert "that start" not in text and "Thread._bootstrap " in text, text


def test_json_folds_nothing(probing, crunching):
    found = json.loads(probing(crunching.pid, "debug", "--dump", "--json").out)
    stacks = {t["name"]: [frame["func"] for frame in t["frames"]] for t in found["threads"]}
    assert stacks["cruncher"][-3:] == ["run", "_bootstrap_inner", "_bootstrap"]
    assert stacks["own"] == ["run", "_bootstrap_inner", "_bootstrap"]


@pytest.mark.parametrize("options", [[], ["--freeze"], ["--native"]])
def test_the_c_function_that_runs(probing, crunching, options):
    text = shown(probing, crunching)
    while " in C: " not in text:  # it may be on its way there
        text = shown(probing, crunching)
    assert re.search(r"^\d+ cruncher +running in C: crunch_numbers$", text, re.M), text
    while True:
        found = json.loads(probing(crunching.pid, "dump", "--json", *options).out)
        said = {thread["name"]: thread["in_c"] for thread in found["threads"]}
        if said["cruncher"]:
            break
    assert said == {"MainThread": None, "own": None, "cruncher": "crunch_numbers"}


def test_the_function_of_cxx_that_runs(probing, newest, tmp_path):
    """With the name that its programmer has given it."""
    with running(tmp_path, newest, "_ZN4math6crunchEl") as program:
        text = shown(probing, program)
        while " in C: " not in text:  # it may be on its way there
            text = shown(probing, program)
        assert re.search(r"^\d+ cruncher +running in C: math::crunch\(long\)$", text, re.M), text


def test_a_snapshot_has_it(probing, crunching, tmp_path):
    file = tmp_path / "crunch.snap"
    while True:
        result = probing(crunching.pid, "snapshot", "-o", file)
        assert result.code == 0, result
        text = probing(file, "dump").out
        if " in C: " in text:
            break
        file.unlink()
    assert re.search(r"^\d+ cruncher +running in C: crunch_numbers$", text, re.M), text


def test_colours_and_the_innermost_source_on_a_terminal(probing, probing_in_terminal, crunching):
    shown(probing, crunching)
    words = [crunching.pid, "debug", "--dump"]
    text = probing_in_terminal(*words).replace("\r", "")
    name = r"^    \x1b\[36mOwn\.run +\x1b\[0m  looks\.py:\d+\n        time\.sleep\(1000\)\n"
    assert re.search(name, text, re.M), text
    # One line of source for each thread, or two with the underlined expression.
    assert text.count("time.sleep(1000)") == 2 and "self._target" not in text, text
    assert "(and 2 calls that start the thread)" in text
    plain = probing_in_terminal(*words, env={"NO_COLOR": "1"}).replace("\r", "")
    assert "\x1b[" not in plain and "        time.sleep(1000)\n" in plain, plain
    assert "time.sleep" not in probing(*words).out
    assert '"source"' not in probing_in_terminal(*words, "--json")

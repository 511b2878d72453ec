# SPDX-License-Identifier: GPL-3.0-or-later
"""The source of code that is in no file, from the program's own linecache."""
import subprocess

import packages
import pytest
import support
from test_debug_adapter import Editor

MADE = r"""
import linecache, os
text = "def waits(count):\n    os.write(1, b'ready\\n')\n    os.read(0, count)\nwaits(1)\n"
linecache.cache["<made 1>"] = (len(text), None, text.splitlines(True), "<made 1>")
exec(compile(text, "<made 1>", "exec"))
"""

CELLS = """
from IPython.core.interactiveshell import InteractiveShell
InteractiveShell.instance().run_cell(
    "import os\\ndef waits(count):\\n    os.write(1, b'ready\\\\n')\\n    os.read(0, count)\\nwaits(1)\\n")
"""

TURNS = """
from IPython.core.interactiveshell import InteractiveShell
InteractiveShell.instance().run_cell(
    "import time\\ndef turn(count):\\n    half = count / 2\\n    time.sleep(.001)\\n    return half\\n"
    "print('ready', flush=True)\\nwhile True:\\n    turn(8)\\n")
"""

HOSTILE = r"""
import linecache, os
class Lines(list):
    def __iter__(self):
        raise AssertionError("code of the program runs")
code = compile("os.write(1, b'ready\\n')\nos.read(0, 1)\n", "<made 1>", "exec")
linecache.cache["<made 1>"] = (1, None, Lines([7, None, "x" * 5000000, "\x1b[31m"] * 1000), "<made 1>")
exec(code)
"""


def dumped(process):
    assert process.line() == "ready"
    support.wait_for_sleep(process.pid, "pipe_read")
    return subprocess.check_output([support.BINARY, "dump", "--source", str(process.pid)], text=True)


def written(tmp_path, text):
    program = tmp_path / "made.py"
    program.write_text(text)
    return program


@pytest.mark.every_interpreter
@pytest.mark.parametrize("interpreter", support.one_per_version((3, 6)), ids=repr)
def test_source_of_code_that_was_made(interpreter, tmp_path):
    with support.Target(interpreter, written(tmp_path, MADE)) as process:
        text = dumped(process)
    assert "<made 1>:3\n        os.read(0, count)\n" in text, text
    assert "<made 1>:4\n        waits(1)\n" in text, text


def test_source_of_a_cell(tmp_path):
    with support.Program([packages.need("IPython"), "-I", written(tmp_path, CELLS)]) as process:
        text = dumped(process)
    assert ":4\n        os.read(0, count)\n" in text and ":5\n        waits(1)\n" in text, text


def test_lines_that_are_none(newest, tmp_path):
    with support.Target(newest, written(tmp_path, HOSTILE)) as process:
        text = dumped(process)
    assert "<made 1>:2\n    <module>" in text and "\x1b" not in text, text


def test_a_breakpoint_in_a_cell(tmp_path):
    """At its lines, which the prompt lists."""
    with support.Program([packages.need("IPython"), "-I", written(tmp_path, TURNS)]) as process:
        assert process.line() == "ready"
        done = subprocess.run([support.BINARY, "-t", str(process.pid), "debug", "--within", "30s"],
                              input="b turn\nc\nn\np half * 2\nl\nq\n", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              encoding="utf-8", timeout=120, check=False)
        assert done.returncode == 0 and "\n8.0\n" in done.stdout, done
        assert "->    4      time.sleep(.001)\n" in done.stdout, done.stdout
        with Editor("-t", process.pid, "dap", "--within", "30s") as editor:
            editor.begin(stopOnEntry=True)
            editor.event("stopped")
            editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "turn"}])
            editor.ask("continue", threadId=process.pid)
            tid, *place = editor.stopped("function breakpoint")
            assert place == ["turn", 3]
            source = editor.ask("stackTrace", threadId=tid)["stackFrames"][0]["source"]
            assert "    half = count / 2\n" in editor.ask("source", **source, source=source)["content"]
            editor.leave()
        assert process.alive()

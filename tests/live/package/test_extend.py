# SPDX-License-Identifier: GPL-3.0-or-later
"""Extensions: commands, tables, texts and words for waits of the user's own, and whose files are used."""

import os
import pty
import re
import time

import pytest
import support
from scripts import run

EXTENSION = """
import probing

@probing.command
def slow_ones(p, first, seconds: float = 0.0, names=False):
    \"\"\"Threads that wait.

    In more words.\"\"\"
    for t in p.threads():
        print(first, t.name if names else t.tid, seconds)
    return 3

@probing.table("depths")
def depths(p):
    for t in p.threads():
        yield {"thread": t.name, "half": 0.5, "quoted": "it's", "cell": None}

@probing.table("empty", columns=["a", "b"])
def empty(p):
    return []

@probing.printer("__main__.Slotted")
def slotted(v):
    return "Slotted of %d weights" % len(v.weights)

@probing.wait("walked.py:want")
def want(frame):
    return "the lock of the trainer"
"""
QUERY = "print([r['thread'] for r in p.query('SELECT * FROM depths ORDER BY thread')])"


@pytest.fixture
def own(tmp_path):
    """An environment with a folder of extensions, and the file in it."""
    folder = tmp_path / "config" / "probing"
    folder.mkdir(parents=True)
    file = folder / "mine.py"
    file.write_text(EXTENSION)
    return {"XDG_CONFIG_HOME": str(folder.parent)}, file


@pytest.fixture
def walked(target, newest):
    process = target("walked.py")
    end = time.monotonic() + 30
    while "Lock" not in run(process.pid, "script", "-c", "print(p.thread('wanter').waits_for)").out:
        assert time.monotonic() < end
    return process


def test_a_command(walked, own):
    env, _ = own
    for words in (["slow-ones", walked.pid, "--seconds", "2.5", "--names"],
                  [walked.pid, "slow-ones", "--names", "--seconds", "2.5"],
                  ["slow-ones", "-t", walked.pid, "--seconds", "2.5", "--names"]):
        words.append("x")
        result = run(*words, env=env)
        assert (result.out, result.code) == ("x MainThread 2.5\nx wanter 2.5\n", 3), result
    text = run("slow-ones", "--help", env=env).out
    assert "Threads that wait." in text and "--seconds" in text and "In more words." in text, text
    result = run("slow-ones", "y", env=dict(env, PROBING_TARGET=str(walked.pid)))
    assert result.out.startswith("y %d 0.0\n" % walked.pid), result
    result = run("slow-ones", env=env)
    assert result.code == 2 and "TARGET" in result.err, result
    assert run("slow-ones", walked.pid, "--no", env=env).code == 2
    assert "slow-ones      Threads that wait.\n" in run("script", "--list", env=env).out
    result = run("slow-one", walked.pid, env=env)
    assert result.code == 2 and "there is no command 'slow-one'" in result.err, result


def test_tables_texts_and_words(walked, own):
    env, _ = own
    code = "; ".join((
        QUERY, "print(p.query('WITH x AS (SELECT 7 AS seven) SELECT half, quoted, cell, seven "
        "FROM depths, x')[0])", "print(p.query('SELECT count(*) AS n FROM empty'))",
        "print(p.thread().frames[0].locals['self'].model, p.thread('wanter').waits_for.text)"))
    result = run(walked.pid, "script", "-c", code, env=env)
    assert result.out == "['MainThread', 'wanter']\n" \
        "{'half': 0.5, 'quoted': \"it's\", 'cell': None, 'seven': 7}\n[{'n': 0}]\n" \
        "Slotted of 3 weights the lock of the trainer\n", result


def test_a_named_file(walked, own, tmp_path):
    _, file = own
    moved = file.rename(tmp_path / "elsewhere.py")
    result = run("script", "--script", moved, "slow-ones", walked.pid, "x")
    assert result.out.count("x ") == 2 and result.code == 3, result
    result = run("script", "--script", tmp_path / "missing.py", "-c", "1")
    assert result.code == 1 and "missing.py" in result.err, result


def test_a_named_file_that_fails(walked, tmp_path):
    """Nothing else is done then; the traceback has its frames alone."""
    file = tmp_path / "fails.py"
    for text, last in (("def f():\n    1 / 0\nf()\n", "ZeroDivisionError: division by zero"),
                       ("if\n", "SyntaxError: invalid syntax")):
        file.write_text(text)
        result = run("script", "--script", file, "-c", "print('ran')", walked.pid)
        assert (result.out, result.code) == ("", 1) and result.err.splitlines()[-1] == last, result
        assert "_load.py" not in result.err and "_script.py" not in result.err, result
        assert 'File "%s", line' % file in result.err, result


def test_one_that_fails_is_left_out(walked, own):
    env, file = own
    file.with_name("broken.py").write_text("import probing\n1 / 0\n")
    result = run(walked.pid, "script", "-c", QUERY, env=env)
    assert result.out == "['MainThread', 'wanter']\n" and "ZeroDivisionError" in result.err, result
    assert "broken.py failed, and is left out" in result.err, result


def test_a_program_in_path(tmp_path, walked):
    program = tmp_path / "probing-greet"
    program.write_text("#!/bin/sh\necho hello \"$@\"\nexit 5\n")
    program.chmod(0o755)
    env = {"PATH": "%s:%s" % (tmp_path, os.environ["PATH"])}
    for words, out in ((["greet", "4242", "-x"], "hello 4242 -x\n"),
                       (["4242", "greet", "a b"], "hello 4242 a b\n")):
        result = run(*words, env=env)
        assert (result.out, result.code) == (out, 5), result


def refused(env):
    result = run("script", "-c", "print('ran')", env=env)
    assert result.out == "ran\n" and "EXTENSION RAN" not in result.err, result
    return result.err


def test_files_that_others_may_write(own):
    env, file = own
    file.write_text("import sys\nsys.stderr.write('EXTENSION RAN')\n")
    assert "EXTENSION RAN" in run("script", "-c", "1", env=env).err
    file.chmod(0o666)
    assert "others may write it" in refused(env)
    file.chmod(0o644)
    file.parent.chmod(0o777)
    assert "others may write it" in refused(env)
    file.parent.chmod(0o755)
    elsewhere = file.parent.parent / "elsewhere.py"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    assert "mine.py is not used" in refused(env)
    file.unlink()
    os.mkfifo(file)
    assert "it is no file" in refused(env)
    assert run("EXTENSION", "4242", env=env).code == 2
    assert run("mine", "4242", env=env).code == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("what", ("file", "folder", "both"))
def test_files_of_another_user(own, what):
    """Files that sudo leaves in $HOME: root runs none of them."""
    env, file = own
    file.write_text("# def evil\nimport sys\nsys.stderr.write('EXTENSION RAN')\n")
    if what != "folder":
        os.chown(file, 65534, 65534)
    if what != "file":
        os.chown(file.parent, 65534, 65534)
    assert "belongs to the user 65534" in refused(env)
    assert "EXTENSION RAN" not in run("evil", "4242", env=env).err
    assert "EXTENSION RAN" not in run("script", "--list", env=env).err


def test_a_prompt_that_reads_a_pipe(walked):
    import subprocess
    done = subprocess.run([support.BINARY, "script", str(walked.pid)], check=True, timeout=60,
                          input="t = p.thread()\nt.name\n1 / 0\nprint('end')\n",
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    assert done.stdout == "'MainThread'\nend\n", done
    assert done.stderr.count("Traceback") == 1 and "ZeroDivisionError" in done.stderr, done


class Terminal:
    """A prompt on a terminal."""

    def __init__(self, *words, env):
        self.pid, self.master = pty.fork()
        if not self.pid:
            os.environ.update(env)
            os.execv(support.BINARY, [support.BINARY, *map(str, words)])
        self.out = b""

    def until(self, text):
        end = time.monotonic() + 60
        while text not in self.out:
            assert time.monotonic() < end, self.out
            try:
                self.out += os.read(self.master, 4096)
            except OSError:
                break
        assert text in self.out, self.out
        found, self.out = self.out, b""
        return found

    def type(self, text):
        os.write(self.master, text.encode())


def test_completion_and_history(walked, tmp_path):
    terminal = Terminal("script", walked.pid, env={"XDG_STATE_HOME": str(tmp_path), "TERM": "dumb"})
    terminal.until(b">>> ")
    terminal.type("v = p.thread().frames[0].locals\n")
    terminal.until(b">>> ")
    terminal.type("v['se\tmodel.we\t\n".replace("\tmodel", "\t.model"))
    out = terminal.until(b"]\r\n>>> ")
    assert b"1.5, -2, 1208925819614629174706176" in out, out
    terminal.type("\x04")
    os.waitpid(terminal.pid, 0)
    os.close(terminal.master)
    saved = tmp_path / "probing" / "script_history"
    assert "frames[0].locals" in saved.read_text() and saved.stat().st_mode & 0o77 == 0


def test_one_traceback_of_the_scripts_own_frames(walked, tmp_path):
    file = tmp_path / "fails.py"
    file.write_text("def f():\n    return p.thread().frames[0].locals['self'].model.computed\nf()\n")
    result = run("script", file, walked.pid)
    assert result.code == 1 and result.err.count("Traceback") == 1, result
    assert re.findall(r'File "(.*)", line', result.err) == [str(file)] * 2, result
    assert "NeedsCode" in result.err.splitlines()[-1], result


def test_a_terminal_is_not_controlled_by_the_target(walked, tmp_path):
    code = "print('a\\x1b]0;title\\x07b\\x9b31m\\u202ec\\udc80\\td'); raise ValueError('\\x1b[2J')"
    terminal = Terminal(walked.pid, "script", "-c", code, env={"TERM": "xterm"})
    out = terminal.until(b"ValueError: \\x1b[2J")
    assert b"a\\x1b]0;title\\x07b\\x9b31m\\u202ec\\udc80\t" in out.replace(b" " * 7 + b"d", b"\td"), out
    assert b"\x1b" not in out and b"\x07" not in out, out
    os.waitpid(terminal.pid, 0)
    os.close(terminal.master)

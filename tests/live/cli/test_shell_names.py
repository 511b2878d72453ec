# SPDX-License-Identifier: GPL-3.0-or-later
"""zsh and fish complete the names of values from the process, as bash does."""

import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

import support

PROGRAM = """
import sys
class Trainer:
    def __init__(self):
        self.model, self.mode, self.steps = [1], 2, 3
    def run(self):
        print("ready", flush=True)
        sys.stdin.read()
Trainer().run()
"""


@pytest.fixture
def pid(newest):
    with support.Program([newest.exe, "-c", PROGRAM], env=newest.env) as program:
        program.line()
        yield program.pid


def environment(folder):
    """With our command first in PATH, and without files of the user's."""
    path = "%s:%s" % (Path(support.BINARY).resolve().parent, os.environ["PATH"])
    return dict(os.environ, PATH=path, HOME=str(folder), TERM="dumb")


class Zsh:
    """An interactive zsh."""

    def __init__(self, folder):
        self.pid, self.file = pty.fork()
        if not self.pid:
            os.execvpe("zsh", ["zsh", "-f", "-i"], environment(folder))
        self.type("PS1=; autoload -U compinit; compinit -u -D; unsetopt prompt_sp\n"
                  "source <(probing completion zsh); print RE''ADY\n")
        self.until("READY\r\n")

    def type(self, text):
        os.write(self.file, text.encode())

    def until(self, text):
        shown, end = "", time.monotonic() + 60
        while text not in shown:
            assert time.monotonic() < end, shown
            if select.select([self.file], [], [], 1)[0]:
                shown += os.read(self.file, 4096).decode(errors="replace")
        return shown

    def end(self):
        os.close(self.file)
        os.waitpid(self.pid, 0)


def test_zsh(tmp_path, pid):
    if not shutil.which("zsh"):
        pytest.skip("zsh is not installed")
    zsh = Zsh(tmp_path)
    try:
        for words in ("probing %d print self.st", "probing -p %d print self.st"):
            zsh.type(words % pid + "\t")
            zsh.until("self.steps")
            zsh.type("\x15")
        zsh.type("probing %d snap\t" % pid)
        zsh.until("snapshot ")
    finally:
        zsh.end()


def test_fish(probing, tmp_path, pid):
    if not shutil.which("fish"):
        pytest.skip("fish is not installed")

    def completes(line):
        script = probing("completion", "fish").out + "\ncomplete -C '%s'\n" % line
        done = subprocess.run(["fish", "--no-config", "-c", script], check=True,
                              stdout=subprocess.PIPE, env=environment(tmp_path))
        return [row.split("\t")[0] for row in done.stdout.decode().splitlines()]

    assert completes("probing %d print self.mo" % pid) == ["self.mode", "self.model"]
    assert completes("probing -p %d print self.st" % pid) == ["self.steps"]

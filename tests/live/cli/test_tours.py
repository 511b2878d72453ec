# SPDX-License-Identifier: GPL-3.0-or-later
"""The tours, as somebody types them: those that are not replayed with all they print."""
import re
import shlex
import signal
import subprocess

import pytest
import support

TOURS = support.ROOT / "docs/tours"
WORDS = {"slow": "search", "grows": "SESSIONS"}


def commands(tour):
    """What stands in its blocks behind a `$`, or without one in those of sh."""
    for block in re.findall(r"```(?:sh|console)\n(.*?)```", (TOURS / (tour + ".md")).read_text(), re.S):
        yield from re.findall(r"^(?:\$ )?probing \d+ (.*)$", block, re.M)


@pytest.mark.parametrize("tour", WORDS)
def test_commands_work(tour, tmp_path):
    program, = re.findall(r"^\[(\w+\.py)\]", (TOURS / (tour + ".md")).read_text(), re.M)
    newest = support.one_per_version((3, 11), (3, 13))[-1]
    (tmp_path / program).write_text((TOURS / program).read_text())
    with support.Program([newest.exe, program], cwd=str(tmp_path)) as process:
        assert process.line() == "ready"
        typed = list(commands(tour))
        assert len(typed) >= 2, typed
        for command in typed:
            run(process.pid, shlex.split(command), tmp_path, WORDS[tour] if command == typed[0] else "")


def run(pid, words, folder, says):
    """One that does not end by itself ends with Ctrl-C, at its first line."""
    with subprocess.Popen([support.BINARY, str(pid), *words], cwd=str(folder), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True) as command:
        first = ""
        if words[0] == "trace":
            first = command.stdout.readline()
            command.send_signal(signal.SIGINT)
        out, err = command.communicate(timeout=200)
        assert command.returncode in (0, 130 if first else 0) and says in first + out, (words, command.returncode, out, err)
        assert first or words[0] != "trace", err
        assert "-o" not in words or (folder / words[words.index("-o") + 1]).exists(), words

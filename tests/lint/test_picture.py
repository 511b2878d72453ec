# SPDX-License-Identifier: GPL-3.0-or-later
"""The picture in the README is what the commands in it print on a terminal.

The test runs the commands again, on docs/demo.py, and compares text and colours; pids, times,
addresses and the like are masked as in test_docs.py. Run as a program, it draws the picture anew.
"""

import pathlib
import re
import shlex
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / folder) for folder in ("lint", "live", "tools")]

import terminal_svg  # noqa: E402
from environment import wait_until  # noqa: E402
from terminal import Terminal  # noqa: E402
from test_docs import BINARY, PYTHON, Program, needs_binary, normal, skip_other_python  # noqa: E402

# The picture is of a thread that runs: it is looked at until it is at that place.
TRIES = 200

PICTURE = ROOT / "docs/images/terminal.svg"
LABEL = "A terminal: probing shows the stack of a running program and what its threads wait for"
COMMANDS = [
    "probing PID backtrace --source",
    "probing PID query 'SELECT name, state, waits_for FROM python.threads'",
]


def on_terminal(program, line):
    """What the command prints on a terminal, with its colours."""
    with Terminal(*shlex.split(line.replace("PID", str(program.pid)))[1:], size=(60, 110),
                  TERM="xterm", HOME=program.folder.name) as terminal:
        text, status = terminal.end()
    assert status == 0, text
    return text.rstrip("\n")


def transcript(program):
    parts = []
    for line in COMMANDS:
        command = line.replace("PID", str(program.pid))
        parts.append("$ \033[1m%s\033[0m\n%s\n" % (command, on_terminal(program, line)))
    return "\n".join(parts)


def masked(svg):
    """Its lines without what differs each time, and the colours of those that have any."""
    lines = terminal_svg.text_of(svg)
    return normal("\n".join(text for text, _ in lines)), [names for _, names in lines if names]


@needs_binary
def test_picture_is_what_is_printed():
    skip_other_python()
    committed = masked(PICTURE.read_text())
    with Program("docs/demo.py") as program:
        for _ in range(TRIES):
            printed = masked(terminal_svg.draw(transcript(program), LABEL))
            if printed == committed:
                break
    assert printed == committed


@needs_binary
def test_picture_of_top():
    """Its columns are those of now, and its functions those of the example."""
    lines = [text for text, _ in terminal_svg.text_of((ROOT / "docs/images/top.svg").read_text())]
    with subprocess.Popen(["python3", "docs/examples/train.py"], executable=PYTHON, cwd=ROOT) as program:
        try:
            wait_until(lambda: "train_step" in subprocess.run([str(BINARY), str(program.pid), "dump"], text=True,
                                                              capture_output=True, check=False).stdout)
            now = subprocess.run([str(BINARY), str(program.pid), "top", "-b", "-n", "1", "-i", "500ms"],
                                 capture_output=True, text=True, check=True).stdout.split("\n")
        finally:
            program.kill()
    assert lines[0].endswith(" top") and lines[1].endswith("python3 docs/examples/train.py")
    assert lines[4] == now[3] and any("Model.forward." in line for line in lines[5:])
    assert re.sub(r"[\d.]+ m?s", "T", lines[3].partition(" · cost")[0]) == \
        re.sub(r"[\d.]+ m?s", "T", now[2].partition(" · cost")[0])


def test_drawing_keeps_text_and_colours():
    svg = terminal_svg.draw("$ \033[1ma < b\033[0m\n  \033[32mrunning\033[0m, \033[1;33mGIL\033[0m",
                            "x")
    assert terminal_svg.text_of(svg) == [("$ a < b", ["command"]), ("  running, GIL", ["run", "gil"])]


def test_drawing_refuses_unknown_escapes():
    with pytest.raises(KeyError):
        terminal_svg.draw("\033[35mx\033[0m", "x")
    with pytest.raises(AssertionError):
        terminal_svg.draw("\033[2Kx", "x")


def main():
    """Draws the usual state: the busy thread inside of the innermost function."""
    with Program("docs/demo.py") as program:
        for _ in range(20):
            text = transcript(program)
            plain = re.sub(r"\033\[[\d;]*m", "", text)
            if "Trainer.forward  " in plain and "genexpr" not in plain:
                break
        svg = terminal_svg.draw(text, LABEL)
    if masked(svg) != (masked(PICTURE.read_text()) if PICTURE.exists() else None):
        PICTURE.write_text(svg)
        print("%s: written" % PICTURE.relative_to(ROOT))


if __name__ == "__main__":
    main()

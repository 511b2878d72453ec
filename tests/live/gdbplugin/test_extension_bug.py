# SPDX-License-Identifier: GPL-3.0-or-later
"""The session of docs/debuggers.md in which a bug of an extension is found, with that extension."""
import re
import subprocess

import pytest

import debuggers
import support

# Later versions run a comprehension in the frame of its function.
VERSIONS = [each for each in support.INTERPRETERS if each.version == (3, 11)][:1]
COMMAND = "(gdb) "


def session():
    """[(command, lines of its output)]"""
    page = (support.ROOT / "docs" / "debuggers.md").read_text(encoding="utf-8")
    block = page.split("## A bug in an extension")[1].split("```")[1].strip()
    parts = [part.splitlines() for part in ("\n" + block).split("\n" + COMMAND)[1:]]
    return [(lines[0], [line for line in lines[1:] if line != "…"]) for lines in parts]


def plain(line):
    """Without what differs from run to run."""
    line = re.sub(r"0x[0-9a-f]+", "0x", re.sub(r"\S*/(?=\w+\.(py|c):)", "", line))
    return re.sub(r"^\$\d+", "$", re.sub(r"\s+", " ", line)).strip()


@debuggers.needs_gdb
@pytest.mark.parametrize("interpreter", VERSIONS, ids=repr)
def test_as_shown(interpreter, tmp_path):
    shown = session()
    asked = "import sysconfig as s; print(s.get_path('include')); print(s.get_config_var('EXT_SUFFIX'))"
    include, suffix = subprocess.check_output([interpreter.exe, "-c", asked]).decode().split()
    done = subprocess.run(["cc", "-g", "-O0", "-fPIC", "-shared", "-I" + include, "-o", "window" + suffix,
                           debuggers.PROGRAMS / "window.c"], cwd=tmp_path, stderr=subprocess.PIPE, check=False)
    if b"Python.h" in done.stderr:
        pytest.skip("no headers of this Python, or no ctypes")
    assert not done.returncode, done.stderr
    (tmp_path / "smooth.py").write_text((debuggers.PROGRAMS / "smooth.py").read_text())
    commands = [each for number, (command, _) in enumerate(shown) for each in (("at%d" % number,), command)]
    # What lies in front of the list is the C library's, then, and no object.
    ran = debuggers.gdb("set environment PYTHONMALLOC malloc", *commands, ("end",), arguments=["--args", interpreter.exe],
                        cwd=tmp_path)
    assert len(shown) >= 5 and not ran.code, ran
    for number, (command, lines) in enumerate(shown):
        found = [plain(line) for line in ran.part("at%d" % number).splitlines()]
        for line in lines:
            assert plain(line) in found, (command, plain(line), found)
            found = found[found.index(plain(line)) + 1:]

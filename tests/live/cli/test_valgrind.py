# SPDX-License-Identifier: GPL-3.0-or-later
"""Our commands under valgrind: nothing is leaked, and nothing read that was not written."""
import shutil
import subprocess

import pytest

import support

pytestmark = pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind")

FOUND = 99  # no command ends with it
VALGRIND = ["valgrind", "-q", "--error-exitcode=%d" % FOUND, "--leak-check=full",
            "--errors-for-leak-kinds=definite,possible"]
EACH = support.INTERPRETERS if support.LONG else support.one_per_version()[-1:]
COMMANDS = [
    ("debug", "--dump", "--locals", "--json"), ("eval", "1 + 1"),
    ("query", "SELECT * FROM python.stacks; SELECT * FROM process.fds"),
]
MORE = [
    ("debug", "--dump", "--native"), ("backtrace",),
    ("query", "SELECT * FROM python.types ORDER BY count DESC LIMIT 5"),
    ("query", "SELECT nonsense"), ("eval", "1 / 0"), ("agent", "status"),
    ("eject",), ("list",), ("tables",),
]


@pytest.mark.parametrize("interpreter", EACH, ids=repr)
def test_commands(interpreter, target):
    process = target("evaluated.py", "idle", interpreter=interpreter)
    for command in COMMANDS + (MORE if support.LONG else []):
        of_target = [] if command[0] in ("list", "tables") else ["-t", str(process.pid)]
        done = subprocess.run([*VALGRIND, support.BINARY, *of_target, *command],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, timeout=600, check=False)
        errors = done.stderr.decode(errors="replace")
        assert done.returncode != FOUND and "==" not in errors, (command, errors)
    assert process.alive()

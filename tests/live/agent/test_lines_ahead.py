# SPDX-License-Identifier: GPL-3.0-or-later
"""Which lines of a running module can still be reached, as breakpoints want to know: never too few."""
import os
import subprocess

import pytest
import support

BREAKS = support.ROOT / "agent" / "trace" / "breaks.py"


@pytest.mark.every_interpreter
@pytest.mark.parametrize("interpreter", support.one_per_version((3, 6)), ids=repr)
def test_no_line_that_runs_is_past(interpreter):
    seed, count = "1", "60"
    out = subprocess.run([interpreter.exe, support.HERE / "programs" / "lines_ahead.py", BREAKS, seed, count],
                         env=dict(os.environ, **interpreter.env), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         encoding="utf-8", timeout=120, check=True).stdout
    programs, marks, wrong = (int(word) for word in out.splitlines()[-1].replace(",", "").split() if word.isdigit())
    assert (programs, wrong) == (60, 0) and marks > 150, out

# SPDX-License-Identifier: GPL-3.0-or-later
"""Dumps of a process that another command reads at the same time."""
import json
import subprocess

import pytest

import profiles
import support

PROGRAM = "print('ready', flush=True)\nwhile True: sum(range(1000))"


@pytest.mark.parametrize("options", [[], ["--freeze"]], ids=" ".join)
@pytest.mark.parametrize("interpreter", support.one_per_version((3, 6)), ids=repr)
def test_beside_a_recording(interpreter, options, tmp_path):
    """It stops the thread a thousand times a second: a dump waits its turn, and is as exact as ever."""
    with support.Program([interpreter.exe, "-c", PROGRAM], env=interpreter.env) as program:
        assert program.line() == "ready"
        recording = profiles.Recording(program.pid, "-r", "1000", "-o", tmp_path / "x.profile")
        recording.samples()
        count, exact = support.count(30, 300), 0
        for _ in range(count):
            done = subprocess.run([support.BINARY, str(program.pid), "dump", "--json", *options],
                                  stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)
            exact += done.returncode == 0 and not json.loads(done.stdout)["warnings"]
        # The sampler may have lost its processor while it had the thread.
        assert exact >= 0.9 * count
        recording.interrupt()
        assert recording.end()[0] == 0

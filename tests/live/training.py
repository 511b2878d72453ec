# SPDX-License-Identifier: GPL-3.0-or-later
"""The training program of the tests of torch."""
import json
import subprocess

import pytest

import support
from environment import PROGRAMS

PYTHON = "/usr/bin/python3"


def check():
    """Skips a test that needs torch where there is none."""
    if subprocess.run([PYTHON, "-c", "import torch"], stderr=subprocess.DEVNULL,
                      check=False).returncode:
        pytest.skip("torch is not installed for " + PYTHON)


def start():
    """The program, in its first steps."""
    check()
    return support.Program([PYTHON, PROGRAMS / "training" / "transformer.py"])


def rest(program):
    """What the model is made of; it is in no step from now on."""
    program.send(b"rest\n")
    found = json.loads(program.line(timeout=100))
    support.wait_for_sleep(program.pid, "pipe_read", program.pid)
    return found

# SPDX-License-Identifier: GPL-3.0-or-later
"""The training program of the tests of torch."""
import json
import subprocess

import pytest

import support
from environment import PROGRAMS

PYTHON = "/usr/bin/python3"
# Queries as users type them.
TYPED = [
    "SELECT * FROM python.torch_trace LIMIT 10",
    "SELECT step, module, SUM(allocated) as total_memory_mb, COUNT(*) as operation_count FROM python.torch_trace "
    "WHERE step > 100 GROUP BY step, module ORDER BY total_memory_mb DESC LIMIT 10",
    "SELECT step, AVG(allocated) as avg_memory, MAX(allocated) as peak_memory FROM python.torch_trace WHERE step >= "
    "(SELECT MAX(step) - 20 FROM python.torch_trace) GROUP BY step ORDER BY step",
    "SELECT module, stage, AVG(allocated) as avg_memory, COUNT(*) as frequency FROM python.torch_trace WHERE step >= "
    "(SELECT MAX(step) - 5 FROM python.torch_trace) GROUP BY module, stage ORDER BY avg_memory DESC LIMIT 10",
    "SELECT operation_name, AVG(duration_ms) as avg_duration, COUNT(*) as call_count FROM python.torch_trace "
    "WHERE timestamp > now() - interval '5 minutes' GROUP BY operation_name ORDER BY avg_duration DESC LIMIT 10",
]


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

# SPDX-License-Identifier: GPL-3.0-or-later
"""The training program of the tests of torch."""
import functools
import json
import os
import subprocess
from pathlib import Path

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


CACHE = Path(os.environ.get("PROBING_TEST_INTERPRETERS", "/var/cache/probing-test-interpreters"))


@functools.lru_cache(maxsize=None)
def imports(exe):
    """Whether it has torch; that takes a second of a processor."""
    return not subprocess.run([exe, "-c", "import torch"], stderr=subprocess.DEVNULL, check=False).returncode


class Torch:
    """A Python with torch."""

    def __init__(self, name, exe, env, there=True):
        self.name, self.exe, self.env, self.there = name, exe, env, there

    def __repr__(self):
        return self.name

    def check(self):
        """Skips a test where it is not installed."""
        if not self.there:
            pytest.skip("no other torch is here: 'make test-torch' gets some")
        if self.name == "system" and not imports(self.exe):
            pytest.skip("torch is not installed for " + self.exe)

    def start(self, program, *arguments, env=None):
        """A program of programs/training."""
        self.check()
        return support.Program([self.exe, PROGRAMS / "training" / program, *arguments],
                               env=dict(os.environ, **dict(self.env, **(env or {}))))


def _others():
    for path in sorted(CACHE.glob("*/torch.json")):
        fields = json.loads(path.read_text())
        yield Torch(fields["name"], fields["exe"], fields["env"])


SYSTEM = Torch("system", PYTHON, {})
# The long form has the versions of tests/tools/test-torch, too, and so has any with PROBING_TORCHES=1.
OTHERS = list(_others()) or [Torch("other", "", {}, False)]
if not support.LONG and not os.environ.get("PROBING_TORCHES"):
    OTHERS = []
TORCHES = [SYSTEM] + OTHERS


@functools.lru_cache(maxsize=None)
def has_kineto(torch):
    """Whether it was built with its own profiler."""
    code = "import sys, torch; sys.exit(not torch.autograd.kineto_available())"
    return torch.there and not subprocess.run([torch.exe, "-c", code], env=dict(os.environ, **torch.env),
                                              stderr=subprocess.DEVNULL, check=False).returncode


def with_kineto():
    """Some torch that has it, also in the short form: Debian's have none."""
    for torch in (SYSTEM, *_others()):
        if has_kineto(torch):
            return torch
    return Torch("other", "", {}, False)


def check():
    """Skips a test that needs torch where there is none."""
    SYSTEM.check()


def start(torch=SYSTEM):
    """The program, in its first steps."""
    return torch.start("transformer.py")


def rest(program):
    """The objects of the model; it is in no step from now on."""
    program.send(b"rest\n")
    found = json.loads(program.line(timeout=100))
    support.wait_for_sleep(program.pid, "pipe_read", program.pid)
    return found

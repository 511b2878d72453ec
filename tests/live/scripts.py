# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs `probing script` as a user does."""

import os
import subprocess
from types import SimpleNamespace

import support


def run(*words, env=None, cwd=None):
    """How `probing WORDS…` ended: .out, .err and .code."""
    result = subprocess.run([support.BINARY, *map(str, words)], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120,
                            env={**os.environ, **(env or {})}, cwd=cwd, check=False,
                            universal_newlines=True)
    return SimpleNamespace(out=result.stdout, err=result.stderr, code=result.returncode)

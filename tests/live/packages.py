# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages that tests/tools/test-packages has installed."""

import functools
import os
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("PROBING_TEST_PACKAGES", "/var/cache/probing-test-packages"))
BIN = FOLDER / "system" / "bin"
PYTHON = BIN / "python3"


@functools.lru_cache(None)
def _has(name):
    return PYTHON.exists() and not subprocess.run(
        [PYTHON, "-c", "import " + name], stderr=subprocess.DEVNULL, check=False).returncode


def need(name):
    """The interpreter that has a package."""
    if not _has(name):
        pytest.skip("no %s here: 'make test-packages' gets it" % name)
    return str(PYTHON)

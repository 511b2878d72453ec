# SPDX-License-Identifier: GPL-3.0-or-later
"""The gdb that tests run as `gdb`: this machine's own, or a replacement.

On a processor with AMX a gdb before 14 cannot write registers: each call of a function fails, and
the program's system call that it interrupted, too. `make check-live` gets another one there."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FIRST_WITH_AMX = 14


def _is_too_old(gdb):
    done = subprocess.run([gdb, "--version"], stdout=subprocess.PIPE, check=True)
    first = done.stdout.decode().splitlines()[0]
    return int(re.search(r"(\d+)\.\d+", first.rpartition(")")[2])[1]) < FIRST_WITH_AMX


def writes_registers(gdb):
    """Also of a gdbserver."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return "amx_tile" not in file.read() or not _is_too_old(gdb)


def _others():
    done = subprocess.run([sys.executable, str(ROOT / "tests/tools/test-debuggers"), "--json"],
                          stdout=subprocess.PIPE, check=True)
    return [each for each in json.loads(done.stdout.decode()) if "gdb" in each]


def choose():
    """Puts a replacement first in PATH, with its gdbserver, if this machine's own cannot be used. Returns
    True if a replacement is used, which the workers of pytest-xdist inherit."""
    own = shutil.which("gdb")
    if not own:
        return False
    others = _others()
    if own in [other["gdb"] for other in others]:
        return True
    if writes_registers(own):
        return False
    for other in others:
        folder = Path(other["gdb"]).parent
        if _is_too_old(other["gdb"]):
            continue
        try:
            (folder / "gdbserver").symlink_to(other["gdbserver"])
        except FileExistsError:
            pass
        os.environ["PATH"] = "%s:%s" % (folder, os.environ["PATH"])
        return True
    return False


stands_in = choose()

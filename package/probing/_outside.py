# SPDX-License-Identifier: GPL-3.0-or-later
"""The program `probing`, for what the library does not do: recordings, and targets elsewhere."""

import os
import re
import shutil
import subprocess
import tempfile

import probing_startup

from ._errors import Error
from ._library import LIBRARY

ELSEWHERE = re.compile(r"ssh://|(\[[0-9a-fA-F:.]+\]|[\w.-]+)?:\d+$")


def program():
    """Where the program is: named, beside the library, or in $PATH."""
    folder = os.path.dirname(LIBRARY._name)
    for path in (probing_startup.variable("PROBING_PROGRAM"), os.path.join(folder, "probing"),
                 os.path.join(folder, "..", "bin", "probing"), shutil.which("probing")):
        if path and os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
    raise Error("the program 'probing' is neither beside the library nor in $PATH, nor does "
                "$PROBING_PROGRAM name it")


def run(*words):
    """Runs the program and returns its output. Its message on failure is the error."""
    done = subprocess.run([program(), *map(str, words)], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        lines = done.stderr.decode("utf-8", "surrogateescape").strip().splitlines()
        text = lines[-1] if lines else "'probing %s' failed" % words[0]
        raise Error(text[len("probing: "):] if text.startswith("probing: ") else text)
    return done.stdout.decode("utf-8", "surrogateescape")


def is_elsewhere(target):
    """Whether it is "host:port" or "ssh://…"."""
    return bool(ELSEWHERE.match(target)) and not os.path.exists(target)


def snapshot_of(target):
    """(path, folder): a snapshot with all objects, in a folder that ends with its owner."""
    folder = tempfile.TemporaryDirectory(prefix="probing-")
    path = os.path.join(folder.name, "target.snapshot")
    run("-t", target, "snapshot", "--heap", "-o", path)
    return path, folder

# SPDX-License-Identifier: GPL-3.0-or-later
"""A root folder in which there is the command, the libraries that it needs, and nothing else: no
interpreter, no sources, no cache, no /proc."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import support
from environment import runs


def libraries(binary):
    """The libraries it is linked with, according to the dynamic linker."""
    listing = subprocess.run([binary], env={"LD_TRACE_LOADED_OBJECTS": "1"}, check=True,
                             stdout=subprocess.PIPE).stdout.decode()
    return re.findall(r"(/\S+) \(0x", listing)


class Bare:
    def __init__(self, root):
        self.root = root
        files = [support.BINARY] + libraries(support.BINARY)
        # Sanitizers do not work without /proc; with them only the cache is missing.
        self.sanitized = any("/libasan" in file for file in files)
        for file in files:
            place = root / Path(file).relative_to("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)

    def replay(self, snapshot, *options):
        """The output of `probing -t snapshot …` there, as bytes."""
        copy = Path(shutil.copy(snapshot, self.root / "snapshot"))
        environment = {"PATH": os.environ["PATH"] + ":/usr/sbin:/sbin", "XDG_CACHE_HOME": "/nonexistent"}
        command = [support.BINARY, "-t", copy, *options]
        if not self.sanitized:
            command[2] = "/snapshot"
            command[:0] = ["chroot", self.root]
            if os.getuid():
                if not runs("unshare", "--map-root-user", "true"):
                    pytest.skip("no user namespaces here")
                command[:0] = ["unshare", "--map-root-user"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=environment, check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr.decode()
        return done.stdout

# SPDX-License-Identifier: GPL-3.0-or-later
"""A root folder in which there is the command, the libraries that it needs, and nothing else: no
interpreter, no sources, no cache, no /proc."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import support


def libraries(binary):
    """What it is linked with, as the dynamic linker itself says."""
    listing = subprocess.run([binary], env={"LD_TRACE_LOADED_OBJECTS": "1"}, check=True,
                             stdout=subprocess.PIPE).stdout.decode()
    return re.findall(r"(/\S+) \(0x", listing)


class Bare:
    def __init__(self, root):
        self.root = root
        for file in [support.BINARY] + libraries(support.BINARY):
            place = root / Path(file).relative_to("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)

    def replay(self, snapshot, *options):
        """What `probing -t snapshot …` prints there, as bytes."""
        shutil.copy(snapshot, self.root / "snapshot")
        command = ["chroot", self.root, support.BINARY, "-t", "/snapshot", *options]
        if os.getuid():
            command[:0] = ["unshare", "--map-root-user"]
        # A build with sanitizers finds no leaks without /proc.
        environment = {"PATH": os.environ["PATH"], "ASAN_OPTIONS": "detect_leaks=0"}
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=environment,
                              check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr.decode()
        return done.stdout

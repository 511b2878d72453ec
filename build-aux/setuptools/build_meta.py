# SPDX-License-Identifier: GPL-3.0-or-later
"""What pip calls to build the package from its sources (PEP 517): the goals of the makefile."""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def make(goal, found, folder):
    """Runs @goal of the makefile, and copies the file it leaves to @folder: its name."""
    done = subprocess.run(["make", "-s", "-j%d" % (os.cpu_count() or 1), goal], cwd=str(ROOT), stdout=sys.stderr, check=False)
    if done.returncode:
        sys.exit("probing: 'make %s' failed: see the message above; 'sudo make deps' installs what building needs "
                 "on Debian and Ubuntu" % goal)
    file, = ROOT.glob(found)
    shutil.copy(str(file), folder)
    return file.name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return make("wheel", "dist/*.whl", wheel_directory)


def build_sdist(sdist_directory, config_settings=None):
    return make("sdist", "dist/*.tar.gz", sdist_directory)

# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts children that work: by a fork, another Python, and a shell that runs none."""
import os
import subprocess
import sys
import time


def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(500))


def forked():
    work(0.6)


if len(sys.argv) > 1:
    work(0.6)
    sys.exit()
CHILD = os.fork()
if not CHILD:
    forked()
    os._exit(0)
OTHER = subprocess.Popen([sys.executable, __file__, "work"])
SHELL = subprocess.Popen(["sh", "-c", "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"])
os.waitpid(CHILD, 0)
OTHER.wait()
SHELL.wait()
sys.exit(3)

# SPDX-License-Identifier: GPL-3.0-or-later
"""A parent with two children that it forked, as a data loader has them; says the pids of all. They end with it."""
import os
import sys

alive, held = os.pipe()
pids = [os.getpid()]
for _ in range(2):
    pids.append(os.fork())
    if not pids[-1]:
        os.close(held)
        os.read(alive, 1)
        os._exit(0)
sys.stdout.write("ready " + " ".join(str(pid) for pid in pids) + "\n")
sys.stdout.flush()
sys.stdin.read(1)
